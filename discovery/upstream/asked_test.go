package upstream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// asksMany is a program that asks far more than it reads answers, and then says that its
// tools changed.
const asksMany = `read hello
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"asks","version":"1"}}}'
yes '{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}' | head -n 30000
echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
exec sleep 300`

func TestAProcessThatAsksAndDoesNotReadCostsLittle(t *testing.T) {
	checkLeaks(t)
	target := target(mcptest.Fake{})
	target.Command, target.Args = "/bin/sh", []string{"-c", asksMany}
	changed := make(chan struct{}, 1)
	target.OnToolsChanged = func() { changed <- struct{}{} }
	before := runtime.NumGoroutine()
	open(t, target)
	<-changed
	if n := runtime.NumGoroutine(); n > before+50 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// asker is a server over HTTP that asks something on the stream of each call.
type asker struct {
	ask   func(stream io.Writer, flush func())
	taken func(answer string, gone <-chan struct{})
}

func (a asker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var message struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(body, &message)
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case message.Method == "initialize":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"asks","version":"1"}}}`, message.ID)
	case message.Method == "tools/call":
		w.Header().Set("Content-Type", "text/event-stream")
		a.ask(w, func() { _ = http.NewResponseController(w).Flush() })
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", message.ID)
	case message.Method == "":
		a.taken(string(body), r.Context().Done())
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// session opens a session with the server.
func (a asker) session(t *testing.T, change func(*upstream.Target)) *upstream.Session {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	target := target(mcptest.Fake{})
	target.Transport, target.URL, target.Command, target.Args = events.TransportHTTP, server.URL, "", nil
	change(&target)
	return open(t, target)
}

func TestAServerOverHTTPThatTakesNoAnswersCostsLittle(t *testing.T) {
	read, most := make(chan struct{}), make(chan int, 1)
	s := asker{
		ask: func(stream io.Writer, flush func()) {
			for i := range 5000 {
				fmt.Fprintf(stream, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q%d\",\"method\":\"ping\"}\n\n", i)
			}
			// Once this is told, all before it was read.
			fmt.Fprint(stream, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n\n")
			flush()
			<-read
		},
		taken: func(_ string, gone <-chan struct{}) { <-gone },
	}.session(t, func(target *upstream.Target) {
		target.OnNotice = func(upstream.Notice) {
			most <- runtime.NumGoroutine()
			close(read)
		}
	})
	before := runtime.NumGoroutine()
	if _, err := s.CallTool(t.Context(), "x", nil, upstream.CallOptions{}); err != nil {
		t.Fatal(err)
	}
	// Each answer under way has a connection of its own, with goroutines on both sides.
	if n := <-most; n > before+64*10 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

func TestAServerOverHTTPGetsItsAnswersHoweverManyItHadBefore(t *testing.T) {
	answers := make(chan string, 1)
	s := asker{
		ask: func(stream io.Writer, flush func()) {
			fmt.Fprint(stream, "data: {\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"ping\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"ping\"}\n\n")
			flush()
			if got := <-answers; !strings.Contains(got, `"q"`) || !strings.Contains(got, `"result"`) {
				t.Errorf("answered with %s", got)
			}
		},
		taken: func(answer string, _ <-chan struct{}) { answers <- answer },
	}.session(t, func(*upstream.Target) {})
	for range 200 {
		if _, err := s.CallTool(t.Context(), "x", nil, upstream.CallOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A server may write a notification with an id of null, and messages that are none.
func TestWhatIsNoRequestTakesNoPlaceOfOne(t *testing.T) {
	const times = 200
	noticed, answers := make(chan struct{}, times), make(chan string, 1)
	s := asker{
		ask: func(stream io.Writer, flush func()) {
			for range times {
				fmt.Fprint(stream, "data: {\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"notifications/resources/list_changed\"}\n\n"+
					"data: {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":7}\n\n"+
					"data: {\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\",\"error\":7}\n\n")
			}
			fmt.Fprint(stream, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"ping\"}\n\n")
			flush()
			select {
			case got := <-answers:
				if !strings.Contains(got, `"q"`) || !strings.Contains(got, `"result"`) {
					t.Errorf("answered with %s", got)
				}
			case <-time.After(patience):
				t.Error("the request behind them is not answered")
			}
		},
		taken: func(answer string, _ <-chan struct{}) { answers <- answer },
	}.session(t, func(target *upstream.Target) {
		target.OnNotice = func(upstream.Notice) { noticed <- struct{}{} }
	})
	if _, err := s.CallTool(t.Context(), "x", nil, upstream.CallOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := len(noticed); n != times {
		t.Errorf("%d of %d notifications came", n, times)
	}
}
