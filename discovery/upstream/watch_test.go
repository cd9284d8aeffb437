package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcpledger/discovery/upstream"
)

func TestAServerTellsOfTheUpdatesThatItWasAskedFor(t *testing.T) {
	for name, peer := range peers(t, "go-sdk") {
		t.Run(name, func(t *testing.T) {
			updated := make(chan string, 100)
			peer.OnToolsChanged = func() {}
			peer.OnNotice = func(n upstream.Notice) {
				if n.Method == "notifications/resources/updated" {
					updated <- string(n.Params)
				}
			}
			s := open(t, peer)
			if !upstream.OffersUpdates(s.Info().Capabilities) {
				t.Errorf("capabilities %s", s.Info().Capabilities)
			}
			ask := func(method, uri string) {
				t.Helper()
				if got, err := s.Ask(t.Context(), "resources/"+method, json.RawMessage(`{"uri":"`+uri+`"}`)); err != nil {
					t.Fatalf("%s %s: %s, %v", method, uri, got, err)
				}
			}
			touch := func(uri string) {
				t.Helper()
				if _, err := s.CallTool(t.Context(), "touch", json.RawMessage(`{"uri":"`+uri+`"}`), upstream.CallOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			ask("subscribe", "file:///a")
			ask("subscribe", "file:///a")
			ask("subscribe", "file:///b")
			// The stream for notices of older revisions may open late.
			eventually(t, "the update is told", func() bool {
				touch("file:///a")
				select {
				case told := <-updated:
					return strings.Contains(told, `"uri":"file:///a"`)
				case <-time.After(100 * time.Millisecond):
					return false
				}
			})
			ask("unsubscribe", "file:///a")
			ask("unsubscribe", "file:///a")
			// What the server was told on another stream it may learn after the next call.
			eventually(t, "only the other's updates are told", func() bool {
				for len(updated) > 0 {
					<-updated
				}
				touch("file:///a")
				touch("file:///b")
				told := <-updated
				return strings.Contains(told, `"uri":"file:///b"`)
			})
		})
	}
}

func TestAServerThatGrantsNoUpdatesSaysSo(t *testing.T) {
	for name, refusal := range map[string]string{"2025-11-25": "method not found", "2026-07-28": "does not tell of the updates"} {
		t.Run(name, func(t *testing.T) {
			peer := peers(t, "go-sdk")["stdio"]
			peer.Env = []string{envPeer + "=" + peerWithoutUpdates}
			if name == "2026-07-28" {
				peer.Era = upstream.EraModern
			}
			s := open(t, peer)
			for range 2 {
				_, err := s.Ask(t.Context(), "resources/subscribe", json.RawMessage(`{"uri":"file:///a"}`))
				if err == nil || !strings.Contains(err.Error(), refusal) {
					t.Errorf("subscribed to what is not told: %v", err)
				}
			}
		})
	}
}
