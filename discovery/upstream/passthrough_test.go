package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

func TestTheDataOfAJSONRPCErrorIsAsTheServerSentIt(t *testing.T) {
	for story, target := range map[string]upstream.Target{
		"over stdio":                   target(mcptest.Fake{}),
		"over stdio, 2026-07-28":       target(mcptest.Fake{Era: mcptest.Modern}),
		"over streamable HTTP":         remote(mcptest.NewHTTP(t, mcptest.HTTP{})),
		"over streamable HTTP, framed": remote(mcptest.NewHTTP(t, mcptest.HTTP{Events: true})),
	} {
		t.Run(story, func(t *testing.T) {
			s := open(t, target)
			_, err := s.CallTool(context.Background(), "refuse", nil, upstream.CallOptions{})
			var failure *upstream.Failure
			if !errors.As(err, &failure) || failure.RPC == nil {
				t.Fatalf("got %v", err)
			}
			if got := string(failure.RPC.Data); failure.RPC.Code != -32042 || got != `{"n":9007199254740993}` {
				t.Errorf("code %d, data %s", failure.RPC.Code, got)
			}
		})
	}
}

func TestAQuestionIsPassedOnAsItIs(t *testing.T) {
	s := open(t, target(mcptest.Fake{}))
	got, err := s.Ask(context.Background(), "tools/call", json.RawMessage(`{"name":"echo","arguments":{"n":9007199254740993}}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"n":9007199254740993}`; member(t, got, "structuredContent") != want {
		t.Errorf("got %s", got)
	}
	_, err = s.Ask(context.Background(), "resources/list", nil)
	var failure *upstream.Failure
	if !errors.As(err, &failure) || failure.RPC == nil || failure.RPC.Code != -32601 || failure.Evidence.ErrorKind != events.KindJSONRPC {
		t.Errorf("a method that is not there: %v", err)
	}
	if _, err = s.Ask(context.Background(), "resources/list", json.RawMessage(`[]`)); !errors.As(err, &failure) || failure.RPC != nil {
		t.Errorf("params that are no object: %v", err)
	}
}

func member(t *testing.T, object json.RawMessage, name string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatal(err)
	}
	return string(members[name])
}
