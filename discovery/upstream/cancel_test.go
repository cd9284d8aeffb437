package upstream_test

import (
	"context"
	"encoding/json"
	"testing"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
)

// A server that is asked for a resource may work on it for long.
func TestAnyRequestThatNobodyWaitsForIsCancelledAtTheServer(t *testing.T) {
	for story, ask := range map[string]func(context.Context, *upstream.Session) error{
		"a call": func(ctx context.Context, s *upstream.Session) error {
			_, err := s.CallTool(ctx, "wait", nil, upstream.CallOptions{})
			return err
		},
		"a question": func(ctx context.Context, s *upstream.Session) error {
			_, err := s.Ask(ctx, "tools/call", json.RawMessage(`{"name":"wait"}`))
			return err
		},
	} {
		t.Run(story, func(t *testing.T) {
			checkLeaks(t)
			server := mcptest.NewHTTP(t, mcptest.HTTP{})
			s := open(t, remote(server))
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() { failed <- ask(ctx, s) }()
			eventually(t, "the server is asked", func() bool { return server.Count("tools/call") == 1 })
			cancel()
			if err := <-failed; err == nil {
				t.Error("it was answered")
			}
			eventually(t, "the server is told that nobody waits", func() bool { return server.Count("notifications/cancelled") == 1 })
		})
	}
}
