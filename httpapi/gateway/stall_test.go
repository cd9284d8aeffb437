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
	"time"

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

func TestWhatNobodyReadsIsHeldInBounds(t *testing.T) {
	for story, g := range map[string]*script{"many": gossip(5000, 0), "large": gossip(500, 20_000)} {
		t.Run(story, func(t *testing.T) {
			w := newWorld(t)
			w.gossips(g)
			c := w.raw("/gossip")
			c.result("resources/subscribe", `{"uri":"file:///"}`)
			c.send(callTalk)
			stream, _ := c.streamOf("")
			heard := hears(t, stream, `"uri":"file:///"`) // the whole, in place of the parts
			size := 0
			for _, message := range heard {
				size += len(message)
			}
			if len(heard) < 10 || len(heard) > 1100 || size > 2<<20 {
				t.Errorf("%d messages of %d bytes were held", len(heard), size)
			}
		})
	}
}

func TestAClientThatReadsNothingIsCutOffAndMayComeBack(t *testing.T) {
	w := newWorld(t)
	w.options.StallTimeout = 500 * time.Millisecond
	w.gossips(gossip(100, 20_000))
	address := w.narrowly()
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	w.deaf(address, http.MethodGet, "/mcp/gossip", "", http.Header{"Mcp-Session-Id": {c.session}})
	w.deaf(address, http.MethodPost, "/mcp/gossip",
		`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["file:///"]},`+modernMeta+`}}`,
		http.Header{"Mcp-Protocol-Version": {string(modern)}, "Mcp-Method": {"subscriptions/listen"}})
	eventually(t, "both streams are open", func() bool {
		_, streams := w.gateway.UnderWay()
		return streams == 2
	})
	eventually(t, "both streams are cut", func() bool {
		c.send(callTalk)
		_, streams := w.gateway.UnderWay()
		return streams == 0
	})
	stream, _ := c.streamOf("")
	hears(t, stream, everything()...)
}

func TestAnAnswerThatNobodyReadsIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.options.StallTimeout = 500 * time.Millisecond
	s := gossip(0, 0)
	s.answers["tools/call talk"] = `{"content":[{"type":"text","text":"` + strings.Repeat("x", 12<<20) + `"}]}`
	w.gossips(s)
	address := w.narrowly()
	c := w.raw("/gossip")
	for _, id := range []string{"1", "2", "3"} {
		w.deaf(address, http.MethodPost, "/mcp/gossip", strings.Replace(callTalk, "7", id, 1), http.Header{"Mcp-Session-Id": {c.session}})
	}
	eventually(t, "all three were called", func() bool { return len(s.all()) == 3 })
	eventually(t, "all three are given up", func() bool {
		requests, _ := w.gateway.UnderWay()
		return requests == 0
	})
}

func TestWhatHappensWhileNoStreamIsOpenIsToldOnTheNext(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(3, 0))
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	c.send(callTalk)
	c.send(callTalk) // of the same three
	stream, end := c.streamOf("")
	if heard := hears(t, stream, "file:///2"); len(heard) != 3 {
		t.Errorf("heard %q", heard)
	}
	end()
	c.send(callTalk)
	stream, _ = c.streamOf("3") // all that was sent
	if heard := hears(t, stream, "file:///2"); len(heard) != 3 {
		t.Errorf("after all was read: %q", heard)
	}
}

// A connection may take events along when it breaks. A client that says which it has read
// last hears of all that it may have missed.
func TestAClientThatSaysWhatItReadLastHearsOfTheRest(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(3, 0))
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	stream, end := c.streamOf("")
	c.send(callTalk)
	hears(t, stream, "file:///2")
	end()
	stream, _ = c.streamOf("1")
	hears(t, stream, everything()...)
}

func TestTheStreamOpenedLastHearsWhatThereIs(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(1, 0))
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	first, _ := c.streamOf("")
	second, end := c.streamOf("")
	c.send(callTalk)
	hears(t, second, "file:///0")
	end()
	eventually(t, "the second stream has ended", func() bool {
		_, streams := w.gateway.UnderWay()
		return streams == 1
	})
	c.send(callTalk)
	if heard := hears(t, first, "file:///0"); len(heard) != 1 {
		t.Errorf("the first stream: %q", heard)
	}
	for range 4 {
		c.streamOf("")
	}
	if _, err := first.ReadString('\x00'); err != io.EOF {
		t.Errorf("the oldest of five streams goes on: %v", err)
	}
}

// A stream that is to end while nobody reads it ends later than those behind it.
func TestASessionHasFewStreamsThoughOneIsNotRead(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(100, 20_000))
	c := w.raw("/gossip")
	c.result("resources/subscribe", `{"uri":"file:///"}`)
	w.deaf(w.narrowly(), http.MethodGet, "/mcp/gossip", "", http.Header{"Mcp-Session-Id": {c.session}})
	eventually(t, "the first stream is open", func() bool {
		_, streams := w.gateway.UnderWay()
		return streams == 1
	})
	c.send(callTalk)
	var streams []*bufio.Reader
	for range 6 {
		stream, _ := c.streamOf("")
		streams = append(streams, stream)
	}
	for i, old := range streams[:2] {
		if _, err := old.ReadString('\x00'); err != io.EOF {
			t.Errorf("stream %d, with four behind it, goes on: %v", i+2, err)
		}
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(0, 0))
	c := w.raw("/gossip")
	long := `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"` + strings.Repeat("x", 9<<10) + `"}}`
	if _, _, body := c.send(long); !strings.Contains(string(body), "-32602") {
		t.Errorf("a long address: %s", body)
	}
	for i := range 1000 {
		c.result("resources/subscribe", `{"uri":"file:///`+strconv.Itoa(i)+`"}`)
	}
	if _, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///more"}}`); !strings.Contains(string(body), "-32600") {
		t.Errorf("one too many: %s", body)
	}
}

func TestEventsThatCannotBeResumedHaveNoIDs(t *testing.T) {
	w := newWorld(t)
	w.gossips(gossip(1, 0))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/gossip", strings.NewReader(
		`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["file:///"]},`+modernMeta+`}}`))
	w.must(err)
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {string(modern)}, "Mcp-Method": {"subscriptions/listen"},
	}
	res, err := http.DefaultClient.Do(r)
	w.must(err)
	defer res.Body.Close()
	var said strings.Builder
	stream := bufio.NewReader(io.TeeReader(res.Body, &said))
	hears(t, stream, "acknowledged")
	w.raw("/gossip").send(callTalk)
	hears(t, stream, "file:///0")
	if strings.Contains(said.String(), "\nid:") {
		t.Errorf("the stream: %s", said.String())
	}
}
