package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

func TestAnAnswerHasTheIDOfItsRequest(t *testing.T) {
	w := newWorld(t)
	w.start()
	for _, id := range []string{`9007199254740993`, `12345678901234567890`, `"a <b>"`, `0`, `-1`, `1.5`} {
		c := &rawClient{world: w, header: http.Header{}}
		want := `"id":` + id + `,`
		check := func(story, message string) {
			t.Helper()
			_, header, body := c.send(message)
			if !strings.Contains(string(body), want) {
				t.Errorf("%s with the id %s: %s", story, id, body)
			}
			if session := header.Get("Mcp-Session-Id"); session != "" {
				c.session = session
			}
		}
		check("initialize", `{"jsonrpc":"2.0","id":`+id+`,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}`)
		for _, method := range []string{"ping", "tools/list", "no/such/method"} {
			check(method, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`"}`)
		}
		check("logging/setLevel", `{"jsonrpc":"2.0","id":`+id+`,"method":"logging/setLevel","params":{"level":"info"}}`)
		c = &rawClient{world: w, header: http.Header{"Mcp-Protocol-Version": {string(modern)}, "Mcp-Method": {"server/discover"}}}
		check("server/discover", `{"jsonrpc":"2.0","id":`+id+`,"method":"server/discover","params":{`+modernMeta+`}}`)
	}
}

func TestParamsAreAnObject(t *testing.T) {
	w := newWorld(t)
	w.start()
	c := w.raw("")
	for _, method := range []string{"tools/call", "tools/list", "resources/read", "ping", "no/such/method"} {
		for _, params := range []string{`[]`, `"x"`, `1`, `true`} {
			status, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
			if status != http.StatusOK || !strings.Contains(string(body), `"code":-32602`) {
				t.Errorf("%s with %s: %d %s", method, params, status, body)
			}
		}
	}
}

// batcher begins a session of the revision that has batches.
func (w *world) batcher() *rawClient {
	w.Helper()
	c := &rawClient{world: w, header: http.Header{}}
	_, header, body := c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}`)
	if !strings.Contains(string(body), `"protocolVersion":"2025-03-26"`) {
		w.Fatalf("initialize: %s", body)
	}
	c.session = header.Get("Mcp-Session-Id")
	return c
}

func TestABatchIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	c := w.batcher()
	status, _, body := c.send(`[
		{"jsonrpc":"2.0","method":"notifications/initialized"},
		{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"},
		{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"one__steps","arguments":{},"_meta":{"progressToken":1}}},
		{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}},
		{"jsonrpc":"2.0","id":4,"method":"tools/list","params":[]},
		"x"
	]`)
	var answers []struct {
		ID     json.RawMessage
		Result json.RawMessage
		Error  *struct{ Code int }
	}
	if err := json.Unmarshal(body, &answers); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	var got []string
	for _, a := range answers {
		code := 0
		if a.Error != nil {
			code = a.Error.Code
		}
		got = append(got, fmt.Sprint(string(a.ID), " ", code))
	}
	if want := `9007199254740993 0, "call" 0, 3 -32600, 4 -32602, null -32600`; strings.Join(got, ", ") != want {
		t.Errorf("answers %q, want %s", got, want)
	}
	if !strings.Contains(string(answers[1].Result), "done") {
		t.Errorf("call: %s", answers[1].Result)
	}
	if n := len(w.recorded("one", events.TypeToolCallSucceeded)); n != 1 {
		t.Errorf("%d calls recorded", n)
	}
}

func TestABatchIsBounded(t *testing.T) {
	w := newWorld(t)
	w.start()
	c := w.batcher()
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for story, one := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"nothing":            {`[]`, http.StatusBadRequest, "-32600"},
		"too many":           {`[` + ping + strings.Repeat(","+ping, 64) + `]`, http.StatusBadRequest, "-32600"},
		"no JSON":            {`[` + ping + `,`, http.StatusBadRequest, "-32700"},
		"notifications only": {`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, http.StatusAccepted, ""},
	} {
		if status, _, body := c.send(one.body); status != one.status || !strings.Contains(string(body), one.want) {
			t.Errorf("%s: %d %s", story, status, body)
		}
	}
	if status, _, body := w.raw("").send(`[` + ping + `]`); status != http.StatusBadRequest || !strings.Contains(string(body), "-32600") {
		t.Errorf("in a session of another revision: %d %s", status, body)
	}
	if status, _, _ := (&rawClient{world: w, header: http.Header{}}).send(`[` + ping + `]`); status != http.StatusBadRequest {
		t.Errorf("without a session: %d", status)
	}
}
