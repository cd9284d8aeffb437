package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mcpledger/projections"
)

// narrow is a listener whose connections hold little of what nobody reads.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		err = tcp.SetWriteBuffer(4 << 10)
	}
	return c, err
}

// narrowly serves the gateway to clients that are soon full, and returns the address.
func (w *world) narrowly() string {
	w.Helper()
	s := httptest.NewUnstartedServer(front(w.gateway))
	s.Listener = narrow{s.Listener}
	s.Start()
	w.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String()
}

// deaf sends a request over a connection of its own and reads nothing.
func (w *world) deaf(address, method, path, body string, header http.Header) net.Conn {
	w.Helper()
	c, err := net.Dial("tcp", address)
	w.must(err)
	w.must(c.(*net.TCPConn).SetReadBuffer(4 << 10))
	w.Cleanup(func() { _ = c.Close() })
	r, err := http.NewRequest(method, "http://"+address+path, strings.NewReader(body))
	w.must(err)
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w.must(r.Write(c))
	return c
}

// streamOf opens a stream of a session, from the event it has read last, and returns what
// is said on it.
func (c *rawClient) streamOf(lastEventID string) (events *bufio.Reader, end func()) {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+c.path, nil)
	c.must(err)
	r.Header.Set("Mcp-Session-Id", c.session)
	r.Header.Set("Accept", "text/event-stream")
	if lastEventID != "" {
		r.Header.Set("Last-Event-ID", lastEventID)
	}
	res, err := http.DefaultClient.Do(r)
	c.must(err)
	if res.StatusCode != http.StatusOK {
		c.Fatal(res.Status)
	}
	end = func() {
		cancel()
		_ = res.Body.Close()
	}
	c.Cleanup(end)
	return bufio.NewReader(res.Body), end
}

// listen opens a stream of 2026-07-28 that hears what the notifications, a JSON object,
// ask for.
func (w *world) listen(path, notifications string) io.Reader {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	w.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader(
		`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":`+notifications+`,`+modernMeta+`}}`))
	w.must(err)
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {string(modern)}, "Mcp-Method": {"subscriptions/listen"},
	}
	res, err := http.DefaultClient.Do(r)
	w.must(err)
	w.Cleanup(func() { _ = res.Body.Close() })
	return res.Body
}

// hears reads a stream until messages hold all that is wanted, and returns the messages.
func hears(t *testing.T, stream *bufio.Reader, want ...string) (messages []string) {
	t.Helper()
	for len(want) > 0 {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended before %q: %v, after %q", want, err, messages)
		}
		if data, found := strings.CutPrefix(line, "data: "); found {
			messages = append(messages, strings.TrimSpace(data))
			want = slices.DeleteFunc(want, func(one string) bool { return strings.Contains(data, one) })
		}
	}
	return messages
}

// everything is what a client hears that may have missed something.
func everything() []string {
	return []string{`"uri":"file:///"`, "tools/list_changed", "resources/list_changed", "prompts/list_changed"}
}

// gossip is a server that tells of an update of another part of file:/// in front of each
// answer, many of them, and each with a long text.
func gossip(updates, size int) *script {
	s := &script{
		tools: `[{"name":"talk","inputSchema":{"type":"object"}}]`, capabilities: `{"tools":{},"resources":{"subscribe":true}}`,
		answers: map[string]string{"tools/call talk": `{"content":[]}`, "resources/subscribe": `{}`, "resources/unsubscribe": `{}`},
		notices: map[string][]string{},
	}
	for i := range updates {
		s.notices["tools/call talk"] = append(s.notices["tools/call talk"],
			`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///`+strconv.Itoa(i)+`","x":"`+strings.Repeat("x", size)+`"}}`)
	}
	return s
}

// gossips starts the world with g as its only server.
func (w *world) gossips(g *script) {
	w.Helper()
	w.remote("gossip", g.serve(w.T))
	w.start()
	w.await("gossip", projections.StateReady)
}

const callTalk = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"talk"}}`
