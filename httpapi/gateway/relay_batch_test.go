package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"mcpledger/discovery/mcptest"
	"mcpledger/httpapi/gateway"
	"mcpledger/projections"
)

// lineClient speaks to a Relay line by line.
type lineClient struct {
	*testing.T
	in  io.Writer
	out *bufio.Scanner
}

// lines begins a session of 2025-03-26 through a Relay to an endpoint.
func lines(t *testing.T, url string) *lineClient {
	t.Helper()
	c := silentLines(t, url)
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"lines","version":"1"}}}`)
	if got := c.receive(); !strings.Contains(got, `"protocolVersion":"2025-03-26"`) {
		t.Fatalf("initialize: %s", got)
	}
	return c
}

// silentLines is a client of a Relay that has said nothing yet.
func silentLines(t *testing.T, url string) *lineClient {
	t.Helper()
	fromClient, toRelay := io.Pipe()
	fromRelay, toClient := io.Pipe()
	relay := gateway.Relay{
		Logger: slog.New(slog.DiscardHandler),
		Open:   func(context.Context) (gateway.Endpoint, error) { return gateway.Endpoint{URL: url}, nil },
	}
	over := make(chan error, 1)
	go func() {
		over <- relay.Run(context.Background(), fromClient, toClient)
		_ = toClient.Close()
	}()
	t.Cleanup(func() {
		_ = toRelay.Close()
		go func() { _, _ = io.Copy(io.Discard, fromRelay) }()
		if err := <-over; err != nil {
			t.Errorf("relay: %v", err)
		}
	})
	return &lineClient{T: t, in: toRelay, out: bufio.NewScanner(fromRelay)}
}

func (c *lineClient) send(line string) {
	c.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.Fatal(err)
	}
}

func (c *lineClient) receive() string {
	c.Helper()
	if !c.out.Scan() {
		c.Fatalf("the relay has ended: %v", c.out.Err())
	}
	return c.out.Text()
}

const twoPings = `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"two","method":"ping"}]`

func TestABatchPassesTheRelay(t *testing.T) {
	w := newWorld(t)
	w.start()
	c := lines(t, w.url)
	c.send(twoPings)
	var answers []struct{ ID any }
	if got := c.receive(); json.Unmarshal([]byte(got), &answers) != nil || len(answers) != 2 || answers[1].ID != "two" {
		t.Errorf("answered %s", got)
	}
}

// The one request that a client may send before initialize.
func TestAPingBeforeTheHandshakeIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.start()
	c := silentLines(t, w.url)
	c.send(`{"jsonrpc":"2.0","id":"first","method":"ping"}`)
	if got, want := c.receive(), `{"jsonrpc":"2.0","id":"first","result":{}}`; got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
}

// There is no body on stdin.
func TestALineThatIsNoMessageIsToldSo(t *testing.T) {
	w := newWorld(t)
	w.start()
	c := lines(t, w.url)
	c.send("Starting up...")
	want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this is no JSON-RPC message, which is a JSON object"}}`
	if got := c.receive(); got != want {
		t.Errorf("answered %s, want %s", got, want)
	}
}

func TestABatchThatMayHaveBeenTakenIsNotSentAgain(t *testing.T) {
	var batches atomic.Int64
	dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.HasPrefix(string(body), "[") {
			batches.Add(1)
			panic(http.ErrAbortHandler) // it dies before it answers
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "s")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"dying","version":"1"}}}`)
	}))
	t.Cleanup(dying.Close)
	c := lines(t, dying.URL)
	c.send(twoPings)
	for _, id := range []string{`"id":1,`, `"id":"two",`} {
		if got := c.receive(); !strings.Contains(got, id) || !strings.Contains(got, "was not sent again") {
			t.Errorf("answered %s", got)
		}
	}
	if n := batches.Load(); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// The relay carries both at the same time, and either may be there first.
func TestACancellationRightBehindItsRequestIsMinded(t *testing.T) {
	w := newWorld(t)
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	c := lines(t, w.url)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for id := range 20 {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"one__wait"}}`, id))
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c%d"}}`, id))
		if said := c.receive(); !strings.Contains(said, "code cancelled") {
			t.Errorf("call %d: %s", id, said)
		}
	}
}
