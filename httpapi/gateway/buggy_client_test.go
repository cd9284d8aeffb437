package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

func TestAnIDIsATextOrANumber(t *testing.T) {
	w := newWorld(t)
	w.start()
	c := w.raw("")
	for _, id := range []string{`{}`, `[1]`, `true`} {
		status, _, body := c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if status != http.StatusBadRequest || !strings.Contains(string(body), `"id":null,"error":{"code":-32600`) {
			t.Errorf("the id %s: %d %s", id, status, body)
		}
	}
	long := `"` + strings.Repeat("i", 1<<20) + `"`
	if status, _, body := c.send(`{"jsonrpc":"2.0","id":` + long + `,"method":"ping"}`); status != http.StatusOK || !strings.Contains(string(body), long) {
		t.Errorf("a long id: %d, %d bytes", status, len(body))
	}
}

func TestTwoRequestsOfOneIDAreNotUnderWayAtOnce(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	c := w.raw("")
	const wait = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"one__wait"}}`
	over := make(chan string)
	go func() {
		_, _, body := c.send(wait)
		over <- string(body)
	}()
	w.awaitEvents("one", events.TypeToolCallStarted, 1)
	for _, message := range []string{wait, `{"jsonrpc":"2.0","id":5,"method":"ping"}`} {
		if _, _, body := c.send(message); !strings.Contains(string(body), `"id":5,"error":{"code":-32600`) {
			t.Errorf("the same id again: %s", body)
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	if body := <-over; !strings.Contains(body, "cancelled") {
		t.Errorf("the first, which is the one that is cancelled: %s", body)
	}
	if _, _, body := c.send(`{"jsonrpc":"2.0","id":5,"method":"ping"}`); !strings.Contains(string(body), `"result"`) {
		t.Errorf("the same id when nothing of it is under way: %s", body)
	}
	if n := len(w.recorded("one", events.TypeToolCallStarted)); n != 1 {
		t.Errorf("%d calls were made", n)
	}
}

// Each message comes on a connection of its own.
func TestACancellationMayOvertakeItsRequest(t *testing.T) {
	w := newWorld(t)
	served := &script{tools: `[{"name":"quiet"}]`, answers: map[string]string{"tools/call quiet": `{"content":[]}`}}
	w.program("one", mcptest.Fake{})
	w.remote("far", served.serve(t))
	w.start()
	w.await("one", projections.StateReady)
	w.await("far", projections.StateReady)
	c := w.raw("")
	call := func(id, tool string) string {
		_, _, body := c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `"}}`)
		return string(body)
	}
	cancel := func(id string) {
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	}
	for _, tool := range []string{"one__wait", "far__quiet"} {
		cancel(`"` + tool + `"`)
		if said := call(`"`+tool+`"`, tool); !strings.Contains(said, "code cancelled") {
			t.Errorf("%s, which was cancelled before it came: %s", tool, said)
		}
		if said := call(`"next"`, "far__quiet"); !strings.Contains(said, `"content":[]`) {
			t.Errorf("a call that nobody cancelled: %s", said)
		}
	}
	if asked := served.all(); len(asked) != 2 {
		t.Errorf("the server was sent %q, want the two calls that nobody cancelled", asked)
	}
	call(`7`, "far__quiet")
	cancel(`7`)
	if said := call(`7`, "far__quiet"); !strings.Contains(said, `"content":[]`) {
		t.Errorf("a call with the id of one that was over when it was cancelled: %s", said)
	}
}

func TestWhatIsKeptOfCancellationsIsBounded(t *testing.T) {
	w := newWorld(t)
	served := &script{tools: `[{"name":"quiet"}]`, answers: map[string]string{"tools/call quiet": `{"content":[]}`}}
	w.remote("far", served.serve(t))
	w.start()
	w.await("far", projections.StateReady)
	c := w.raw("")
	cancel := func(id string) {
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"` + id + `"}}`)
	}
	long := strings.Repeat("i", 1<<10)
	cancel(long)
	cancel("first")
	for i := range 64 {
		cancel(fmt.Sprint(i))
	}
	for _, id := range []string{long, "first"} {
		if _, _, body := c.send(`{"jsonrpc":"2.0","id":"` + id + `","method":"tools/call","params":{"name":"far__quiet"}}`); !strings.Contains(string(body), `"content":[]`) {
			t.Errorf("the id %.8s, of which nothing is kept: %s", id, body)
		}
	}
}

// Some libraries write what they have not got as null.
func TestATokenOfNullAsksForNoProgress(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	c := w.raw("")
	c.header.Set("Accept", "application/json, text/event-stream")
	for token, want := range map[string]string{"null": "application/json", `"t"`: "text/event-stream"} {
		_, header, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__steps","_meta":{"progressToken":` + token + `}}}`)
		if got := header.Get("Content-Type"); got != want {
			t.Errorf("with a token of %s: %s %s, want %s", token, got, body, want)
		}
	}
}

func TestAVersionThatThereIsNotIsRefused(t *testing.T) {
	w := newWorld(t)
	w.start()
	c := w.raw("")
	for _, version := range []string{"1999-12-31", "2025-06-19"} {
		c.header.Set("Mcp-Protocol-Version", version)
		for _, message := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`} {
			if status, _, body := c.send(message); status != http.StatusBadRequest || !strings.Contains(string(body), version) {
				t.Errorf("%s in version %s: %d %s", message, version, status, body)
			}
		}
	}
}

func TestAMessageIsJSON(t *testing.T) {
	w := newWorld(t)
	w.start()
	for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"} {
		req, err := http.NewRequest(http.MethodPost, w.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`))
		w.must(err)
		req.Header = http.Header{"Content-Type": {media}, "Mcp-Protocol-Version": {string(modern)}, "Mcp-Method": {"tools/list"}}
		res, err := http.DefaultClient.Do(req)
		w.must(err)
		res.Body.Close()
		if res.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("as %q: %s", media, res.Status)
		}
	}
}

// A program may begin a session for each of its requests and end none.
func TestSessionsThatNobodyEndsKeepNobodyOut(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.gateway.Take(8)
	used := w.raw("")
	used.streamOf("")
	first := w.raw("")
	for range 7 {
		w.raw("")
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if status, _, _ := first.send(ping); status != http.StatusNotFound {
		t.Errorf("the session that lay idle longest: %d", status)
	}
	if status, _, body := used.send(ping); status != http.StatusOK {
		t.Errorf("a session in use: %d %s", status, body)
	}
	if n := w.gateway.Clients(); n > 8 {
		t.Errorf("%d sessions", n)
	}
	w.gateway.Take(1)
	if status, _, body := (&rawClient{world: w, header: http.Header{}}).send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}`); status != http.StatusOK {
		t.Errorf("while another lies idle: %d %s", status, body)
	}
}

func TestASessionThatEndsInTheMidstOfItsCallsLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.remote("gossip", gossip(20, 0).serve(t))
	w.start()
	w.await("one", projections.StateReady)
	w.await("gossip", projections.StateReady)
	before := settled(t)
	for range 50 {
		c := w.raw("")
		var asking sync.WaitGroup
		for i, message := range []string{
			`"method":"resources/subscribe","params":{"uri":"mcpledger://gossip/file:///"}`,
			`"method":"tools/call","params":{"name":"one__steps","_meta":{"progressToken":1}}`,
			`"method":"tools/call","params":{"name":"gossip__talk"}`,
			`"method":"tools/list"`, `"method":"resources/list"`, `"method":"ping"`,
		} {
			asking.Go(func() { c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i, message)) })
		}
		asking.Go(func() { c.do(http.MethodDelete) })
		asking.Wait()
	}
	eventually(t, "nobody is subscribed any more", func() bool { return w.gateway.Subscribed() == 0 })
	if n := w.gateway.Clients(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	eventually(t, "what was under way has ended", func() bool {
		http.DefaultClient.CloseIdleConnections()
		return runtime.NumGoroutine() <= before+20
	})
}

// plainly sends bytes and returns all that comes.
func (w *world) plainly(sent string) string {
	w.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(w.url, "http://"), "/mcp")
	c, err := net.Dial("tcp", address)
	w.must(err)
	defer c.Close()
	_, err = io.WriteString(c, sent)
	w.must(err)
	said, err := io.ReadAll(bufio.NewReader(c))
	w.must(err)
	return string(said)
}

func TestHTTPOfOldIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.remote("gossip", gossip(2, 0).serve(t))
	w.start()
	w.await("gossip", projections.StateReady)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`
	said := w.plainly(fmt.Sprintf("POST /mcp HTTP/1.0\r\nContent-Type: application/json\r\nMcp-Protocol-Version: %s\r\nMcp-Method: tools/list\r\nContent-Length: %d\r\n\r\n%s", modern, len(body), body))
	if !strings.HasPrefix(said, "HTTP/1.0 200") || !strings.Contains(said, "gossip__talk") || !strings.HasSuffix(said, "}}") {
		t.Errorf("a list: %s", said)
	}
	body = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},` + modernMeta + `}}`
	said = w.plainly(fmt.Sprintf("POST /mcp HTTP/1.0\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nMcp-Protocol-Version: %s\r\nMcp-Method: subscriptions/listen\r\nContent-Length: %d\r\n\r\n%s", modern, len(body), body))
	if !strings.Contains(said, "acknowledged") || !strings.HasSuffix(said, "}}\n\n") {
		t.Errorf("a stream: %s", said)
	}
}
