//go:build e2e

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// byHand speaks JSON-RPC without a library, so that nothing is lost that one does not
// know.
type byHand struct {
	*testing.T
	// exchange sends a message and returns the answer with that id, nil for id 0, which
	// stands for none.
	exchange func(message []byte, id int) []byte
	meta     string // what every request of 2026-07-28 carries; empty before
	last     int
}

// answer is what a request was answered with, its numbers as they were written.
type answerByHand struct {
	Result any `json:"result"`
	Error  any `json:"error"`
}

func (h *byHand) ask(method, params string) (a answerByHand) {
	h.Helper()
	h.last++
	if h.meta != "" {
		params = strings.Replace(params, "{", "{"+h.meta+",", 1)
		params = strings.Replace(params, ",}", "}", 1)
	}
	said := h.exchange(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, h.last, method, params), h.last)
	dec := json.NewDecoder(bytes.NewReader(said))
	dec.UseNumber()
	if err := dec.Decode(&a); err != nil {
		h.Fatalf("%s: %q: %v", method, said, err)
	}
	return a
}

// handshake begins the protocol of 2025-11-25.
func (h *byHand) handshake() {
	h.Helper()
	if a := h.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}`); a.Result == nil {
		h.Fatalf("initialize: %v", a.Error)
	}
	h.exchange([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), 0)
}

// all returns the elements of all pages of a list, none if the server has no such list.
func (h *byHand) all(method, member string) (items []any) {
	h.Helper()
	for params := `{}`; params != ""; {
		page, _ := h.ask(method, params).Result.(map[string]any)
		more, _ := page[member].([]any)
		items, params = append(items, more...), ""
		if cursor, _ := page["nextCursor"].(string); cursor != "" {
			params = fmt.Sprintf(`{"cursor":%q}`, cursor)
		}
	}
	return items
}

// startByHand starts a server over stdio and speaks to it.
func startByHand(t *testing.T, s realServer) *byHand {
	t.Helper()
	cmd := s.peerCommand()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(4*patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		kill.Stop()
	})
	lines := bufio.NewReaderSize(out, 1<<20)
	h := &byHand{T: t}
	h.exchange = func(message []byte, id int) []byte {
		if _, err := in.Write(append(message, '\n')); err != nil {
			t.Fatal(err)
		}
		for id != 0 {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatalf("the server's answer: %v", err)
			}
			var head struct {
				ID     int    `json:"id"`
				Method string `json:"method"`
			}
			if json.Unmarshal(line, &head) == nil && head.Method == "" && head.ID == id {
				return line
			}
		}
		return nil
	}
	if s.modern {
		h.meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"hand","version":"1"}}`
		return h
	}
	h.handshake()
	return h
}

// dialByHand speaks to the endpoint at a path.
func dialByHand(t *testing.T, service runningService, path string) *byHand {
	t.Helper()
	session := ""
	h := &byHand{T: t}
	h.exchange = func(message []byte, _ int) []byte {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, service.base+path, bytes.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if begun := res.Header.Get("Mcp-Session-Id"); begun != "" {
			session = begun
		}
		return body
	}
	h.handshake()
	return h
}

// wantSameThroughEndpoint compares what a server says itself with what it says through
// the endpoint: its lists, and the answer to a call.
func wantSameThroughEndpoint(t *testing.T, service runningService, s realServer) {
	t.Helper()
	direct := startByHand(t, s)
	alone, among := dialByHand(t, service, "/mcp/"+s.name), dialByHand(t, service, "/mcp?servers="+s.name)
	for method, list := range map[string]struct{ member, name string }{
		"tools/list":               {"tools", "name"},
		"prompts/list":             {"prompts", "name"},
		"resources/list":           {"resources", "uri"},
		"resources/templates/list": {"resourceTemplates", "uriTemplate"},
	} {
		want := direct.all(method, list.member)
		if diff := cmp.Diff(want, alone.all(method, list.member)); diff != "" {
			t.Errorf("%s (-direct +through /mcp/%s):\n%s", method, s.name, diff)
		}
		if diff := cmp.Diff(want, withoutOrigin(t, among.all(method, list.member), list.name)); diff != "" {
			t.Errorf("%s (-direct +through /mcp):\n%s", method, diff)
		}
	}
	if s.call == "" {
		return
	}
	if diff := cmp.Diff(direct.ask("tools/call", s.call), alone.ask("tools/call", s.call)); diff != "" {
		t.Errorf("tools/call %s (-direct +through /mcp/%s):\n%s", s.call, s.name, diff)
	}
}

// withoutOrigin returns the elements of a list of several servers under the names that
// they have at their server, without the gateway's own.
func withoutOrigin(t *testing.T, items []any, name string) (own []any) {
	t.Helper()
	for _, item := range items {
		item := item.(map[string]any)
		if named, _ := item[name].(string); strings.HasPrefix(named, "ledger__") {
			continue
		}
		meta, _ := item["_meta"].(map[string]any)
		if meta["mcpledger/server"] == nil {
			t.Errorf("%v does not say where it comes from", item[name])
		}
		item[name] = meta["mcpledger/name"]
		delete(meta, "mcpledger/server")
		delete(meta, "mcpledger/name")
		if len(meta) == 0 {
			delete(item, "_meta")
		}
		own = append(own, item)
	}
	return own
}
