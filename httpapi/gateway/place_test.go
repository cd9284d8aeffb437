package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/httpapi/gateway"
	"mcpledger/projections"
)

// modernList asks for the tools as clients of 2026-07-28 do.
func (w *world) modernList(path string) (status int, body []byte) {
	w.Helper()
	c := &rawClient{world: w, path: path, header: http.Header{"Mcp-Protocol-Version": {string(modern)}, "Mcp-Method": {"tools/list"}}}
	status, _, body = c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
	return status, body
}

func TestAnAddressOfNoConfiguredServerSaysSo(t *testing.T) {
	w := newWorld(t)
	w.program("here", mcptest.Fake{})
	w.program("leaving", mcptest.Fake{})
	w.start()
	w.await("leaving", projections.StateReady)
	delete(w.entries, "leaving")
	w.reload()
	const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}`
	for path, want := range map[string]string{
		"/nobody":                 `no server named "nobody" is configured;`,
		"/no%2Fbody/":             `no server named "no/body" is configured;`,
		"/leaving":                `no server named "leaving" is configured any more, it was removed from the config at 20`,
		"?servers=nobody":         `no server named "nobody" is configured;`,
		"?servers=,":              `no server named "" is configured;`,
		"?servers=nobody,leaving": `none of the servers ["leaving" "nobody"] is configured;`,
	} {
		c := &rawClient{world: w, path: path, header: http.Header{}}
		for story, message := range map[string]string{
			"initialize": hello, "a request": `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "no JSON": `{`,
		} {
			status, header, body := c.send(message)
			var said struct{ Code, Detail string }
			if err := json.Unmarshal(body, &said); err != nil || status != http.StatusNotFound || said.Code != "server_not_found" || !strings.Contains(said.Detail, want) {
				t.Errorf("%s at %q: %d %s, want %s", story, path, status, body, want)
			}
			if header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s at %q began a session", story, path)
			}
		}
		if status, body := w.modernList(path); status != http.StatusNotFound {
			t.Errorf("%q in the modern era: %d %s", path, status, body)
		}
		if status := c.do(http.MethodGet); status != http.StatusNotFound {
			t.Errorf("a stream at %q: %d", path, status)
		}
	}
}

func TestAServerThatIsConfiguredLaterIsOfferedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.start()
	if status, body := w.modernList("/late"); status != http.StatusNotFound {
		t.Fatalf("before: %d %s", status, body)
	}
	w.program("late", mcptest.Fake{})
	w.reload()
	w.await("late", projections.StateReady)
	inBothEras(t, w, func(t *testing.T, e era) {
		if names := toolNames(t, w.connect(e, "/late")); !slices.Contains(names, "echo") {
			t.Errorf("after: %s", names)
		}
	})
}

func TestASessionGoesOnWhenItsServerComesBack(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	c := w.raw("/one")
	entry := w.entries["one"]
	delete(w.entries, "one")
	w.reload()
	if status, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != http.StatusNotFound || !strings.Contains(string(body), "any more") {
		t.Errorf("while it is gone: %d %s", status, body)
	}
	w.entries["one"] = entry
	w.reload()
	w.await("one", projections.StateReady)
	if tools := c.result("tools/list", `{}`); !strings.Contains(string(tools), `"echo"`) {
		t.Errorf("when it is back: %s", tools)
	}
	delete(w.entries, "one")
	w.reload()
	if status := c.do(http.MethodDelete); status != http.StatusOK {
		t.Errorf("the session's end while it is gone: %d", status)
	}
}

func TestServersOfAnAddressThatAreNotConfiguredAreNamed(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	var list struct {
		NotConfigured []string `json:"not_configured"`
	}
	own(t, w.connect(modern, "?servers=one,nobody"), "list_servers", nil, &list)
	if !slices.Equal(list.NotConfigured, []string{"nobody"}) {
		t.Errorf("not configured: %q", list.NotConfigured)
	}
}

// Two addresses are two views, whatever the names are made of.
func TestANameIsNoListOfNames(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "a?b"} {
		w.program(name, mcptest.Fake{})
	}
	w.start()
	for _, path := range []string{"?servers=a,b", "?servers=a%3Fb"} {
		var list struct{ Servers []struct{ Server string } }
		own(t, w.connect(modern, path), "list_servers", nil, &list)
		if want := map[string]int{"?servers=a,b": 2, "?servers=a%3Fb": 1}[path]; len(list.Servers) != want {
			t.Errorf("%s: %v", path, list.Servers)
		}
	}
}

func TestARelayToNoConfiguredServerEndsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.start()
	in, client := io.Pipe() // a client that says nothing yet
	defer client.Close()
	relay := gateway.Relay{
		Logger: slog.New(slog.DiscardHandler),
		Open:   func(context.Context) (gateway.Endpoint, error) { return gateway.Endpoint{URL: w.url + "/nobody"}, nil },
	}
	err := relay.Run(t.Context(), in, io.Discard)
	refusal, ok := errors.AsType[*gateway.Refusal](err)
	if !ok || refusal.Status != http.StatusNotFound || refusal.Code != "server_not_found" || !strings.Contains(refusal.Detail, `"nobody"`) {
		t.Errorf("ended with %#v", err)
	}
}

func TestAClientOnStdioIsToldWhenItsServerIsGoneAndBack(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	var current atomic.Pointer[world]
	current.Store(w)
	inBothEras(t, w, func(t *testing.T, e era) {
		s := overStdio(t, e, &current, "/one")
		call := func() (*mcp.CallToolResult, error) {
			return s.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{}})
		}
		if r, err := call(); err != nil || r.IsError {
			t.Fatalf("before: %v %+v", err, r)
		}
		entry := w.entries["one"]
		delete(w.entries, "one")
		w.reload()
		if _, err := call(); err == nil || !strings.Contains(err.Error(), `no server named "one" is configured any more`) {
			t.Errorf("while it is gone: %v", err)
		}
		w.entries["one"] = entry
		w.reload()
		w.await("one", projections.StateReady)
		if r, err := call(); err != nil || r.IsError {
			t.Errorf("when it is back: %v %+v", err, r)
		}
	})
}

// What comes while the config is still being read waits for it.
func TestAnAddressIsJudgedByAConfigThatWasRead(t *testing.T) {
	w := newWorld(t)
	w.late = make(chan struct{})
	w.start()
	answered := make(chan int)
	go func() {
		status, _ := w.modernList("/one")
		answered <- status
	}()
	w.program("one", mcptest.Fake{})
	w.reload()
	close(w.late)
	if got := <-answered; got != http.StatusOK {
		t.Errorf("answered %d", got)
	}
}

func TestEveryServerMayHaveItsOwnClient(t *testing.T) {
	w := newWorld(t)
	const servers = 300
	name := func(i int) string { return fmt.Sprintf("s%03d", i) }
	for i := range servers {
		w.entries[name(i)] = map[string]any{"command": "nobody", "disabled": true}
	}
	w.start()
	var clients []*rawClient
	for i := range servers {
		clients = append(clients, w.raw("/"+name(i)))
	}
	for _, c := range clients {
		if status, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusOK {
			t.Fatalf("%s: %d %s", c.path, status, body)
		}
	}
	// What nobody uses any more is not kept.
	for _, c := range clients {
		c.do(http.MethodDelete)
	}
	w.modernList("?servers=" + name(0) + "," + name(1))
	if n := w.gateway.Views(); n > 256 {
		t.Errorf("%d views are kept", n)
	}
}
