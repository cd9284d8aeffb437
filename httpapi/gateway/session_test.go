package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

func TestASessionIsWantedAndEnds(t *testing.T) {
	w := newWorld(t)
	var clock sync.Mutex
	ahead := time.Duration(0)
	w.options.Now = func() time.Time {
		clock.Lock()
		defer clock.Unlock()
		return time.Now().Add(ahead)
	}
	who := "ann"
	w.options.Caller = func(*http.Request) string { return who }
	w.start()
	const ping, list = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	status := func(c *rawClient, message string) int {
		t.Helper()
		s, _, _ := c.send(message)
		return s
	}
	for _, message := range []string{ping, list} {
		if got := status(&rawClient{world: w, header: http.Header{}}, message); got != http.StatusBadRequest {
			t.Errorf("%s without a session: %d", message, got)
		}
		if got := status(&rawClient{world: w, header: http.Header{}, session: "mcp-session-01020304-0506-4708-890a-0b0c0d0e0f10"}, message); got != http.StatusNotFound {
			t.Errorf("%s with a made-up one: %d", message, got)
		}
	}
	c := w.raw("")
	if got := status(c, ping); got != http.StatusOK {
		t.Errorf("a session that was begun: %d", got)
	}
	if got := status(&rawClient{world: w, header: http.Header{}, session: c.session, path: "?servers=one"}, list); got != http.StatusNotFound {
		t.Errorf("the session at another address: %d", got)
	}
	who = "bob"
	if got := status(c, list); got != http.StatusNotFound {
		t.Errorf("somebody else's session: %d", got)
	}
	who = "ann"
	if got := c.do(http.MethodDelete); got != http.StatusOK {
		t.Errorf("ending it: %d", got)
	}
	if got := status(c, list); got != http.StatusNotFound {
		t.Errorf("after its end: %d", got)
	}
	if got := c.do(http.MethodGet); got != http.StatusNotFound {
		t.Errorf("a stream after its end: %d", got)
	}
}

// do sends a request without a body.
func (c *rawClient) do(method string) int {
	c.Helper()
	req, err := http.NewRequest(method, c.url+c.path, nil)
	c.must(err)
	req.Header.Set("Mcp-Session-Id", c.session)
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	c.must(err)
	res.Body.Close()
	return res.StatusCode
}

func TestMessagesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.options.MaxBodyBytes = 1000
	w.start()
	c := w.raw("")
	if status, _, _ := c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + strings.Repeat("x", 1000) + `"}}`); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a message that is too long: %d", status)
	}
	for _, message := range []string{`{`, `"x"`, ``} {
		if status, _, body := c.send(message); status != http.StatusBadRequest || !strings.Contains(string(body), "-32700") {
			t.Errorf("%q: %d %s", message, status, body)
		}
	}
}

func TestAModernRequestMustSayWhatItIs(t *testing.T) {
	w := newWorld(t)
	w.start()
	for story, c := range map[string]struct {
		header map[string]string
		params string
		want   string
	}{
		"no header":        {map[string]string{}, modernMeta, "-32020"},
		"no method header": {map[string]string{"Mcp-Protocol-Version": "2026-07-28"}, modernMeta, "-32020"},
		"another method":   {map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "ping"}, modernMeta, "-32020"},
		"no capabilities":  {map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`, "-32602"},
		"no _meta":         {map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}, ``, "-32602"},
		"a later revision": {map[string]string{"Mcp-Protocol-Version": "2999-01-01", "Mcp-Method": "tools/list"}, strings.Replace(modernMeta, "2026-07-28", "2999-01-01", 1), "-32022"},
	} {
		t.Run(story, func(t *testing.T) {
			r := &rawClient{world: w, header: http.Header{}}
			for name, value := range c.header {
				r.header.Set(name, value)
			}
			status, _, body := r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + c.params + `}}`)
			if status != http.StatusBadRequest || !strings.Contains(string(body), c.want) {
				t.Errorf("%d %s, want %s", status, body, c.want)
			}
		})
	}
}

func TestAViewOffersWhatItsAddressNames(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.program(name, mcptest.Fake{})
	}
	w.start()
	for _, name := range []events.ServerName{"a", "b", "c"} {
		w.await(name, projections.StateReady)
	}
	for path, want := range map[string]string{
		"":                    "a__echo b__echo c__echo",
		"?servers=c,a":        "a__echo c__echo",
		"?servers=a&servers=": "a__echo",
		"/b":                  "echo",
		"?servers=a,nobody":   "a__echo",
	} {
		s := w.connect(legacy, path)
		var echoes []string
		for _, name := range toolNames(t, s) {
			if strings.HasSuffix(name, "echo") {
				echoes = append(echoes, name)
			}
		}
		if got := strings.Join(echoes, " "); got != want {
			t.Errorf("%q offers %q, want %q", path, got, want)
		}
	}
	s := w.connect(legacy, "?servers=a")
	r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "b__echo"})
	if err != nil || !r.IsError {
		t.Errorf("a server outside the view: %v %+v", err, r)
	}
	s = w.connect(legacy, "/b")
	if r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{}}); err != nil || r.IsError {
		t.Errorf("under its own name: %v %+v", err, r)
	}
}

func TestAFirstListWaitsForServersThatStart(t *testing.T) {
	w := newWorld(t)
	w.options.FirstListWait = patience
	w.program("slow", mcptest.Fake{Fault: mcptest.Slow, At: "initialize", DelayMS: 300})
	w.start()
	inBothEras(t, w, func(t *testing.T, e era) {
		if names := strings.Join(toolNames(t, w.connect(e, "")), " "); !strings.Contains(names, "slow__echo") {
			t.Errorf("the first list: %s", names)
		}
	})
}

func TestLogMessagesReachWhoCalls(t *testing.T) {
	w := newWorld(t)
	const said = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"%s","logger":"l","data":{"n":1}}}`
	s := &script{
		tools: `[{"name":"talk","inputSchema":{"type":"object"}}]`, capabilities: `{"tools":{},"logging":{}}`,
		answers: map[string]string{"tools/call talk": `{"content":[]}`, "logging/setLevel": `{}`},
		notices: map[string][]string{"tools/call talk": {fmt.Sprintf(said, "debug"), fmt.Sprintf(said, "warning")}},
	}
	w.remote("talker", s.serve(t))
	w.start()
	w.await("talker", projections.StateReady)
	c := w.raw("")
	c.header.Set("Accept", "application/json, text/event-stream")
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"talker__talk"}}`
	if _, header, body := c.send(call); header.Get("Content-Type") != "application/json" {
		t.Errorf("unasked: %s", body)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"info"}}`)
	_, header, body := c.send(call)
	got := string(body)
	if header.Get("Content-Type") != "text/event-stream" || !strings.Contains(got, `"level":"warning"`) || strings.Contains(got, `"level":"debug"`) {
		t.Errorf("from level info on: %s", got)
	}
	c.send(call)
	c.send(`{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"debug"}}`)
	c.send(call)
	var levels []string
	for _, asked := range s.all() {
		if strings.Contains(asked, "logging/setLevel") {
			_, level, _ := strings.Cut(asked, `"level":"`)
			level, _, _ = strings.Cut(level, `"`)
			levels = append(levels, level)
		}
	}
	if got := strings.Join(levels, " "); got != "info debug" {
		t.Errorf("the server was asked for the levels %q", got)
	}
}

func TestEachClientsOwnSessionIsAskedForItsLevel(t *testing.T) {
	w := newWorld(t)
	s := &script{
		tools: `[{"name":"talk"}]`, capabilities: `{"tools":{},"logging":{}}`,
		answers: map[string]string{"tools/call talk": `{"content":[]}`, "logging/setLevel": `{}`},
	}
	w.remote("talker", s.serve(t))
	w.entries["talker"]["mcpledger"] = map[string]any{"session": "per_client"}
	w.start()
	w.await("talker", projections.StateReady)
	var clients []*rawClient
	asked := func() (n int) {
		for _, one := range s.all() {
			if strings.Contains(one, "logging/setLevel") {
				n++
			}
		}
		return n
	}
	for i := range 3 {
		c := w.raw("")
		clients = append(clients, c)
		c.header.Set("Accept", "application/json, text/event-stream")
		before := asked()
		c.result("logging/setLevel", `{"level":"debug"}`)
		c.result("tools/call", `{"name":"talker__talk"}`)
		if n := asked() - before; n != 1 {
			t.Errorf("client %d: its session was asked %d times for its level", i, n)
		}
	}
	before := asked()
	for _, c := range clients {
		c.result("tools/call", `{"name":"talker__talk"}`)
		c.do(http.MethodDelete)
	}
	if n := asked() - before; n != 0 {
		t.Errorf("sessions that were asked before are asked %d times more", n)
	}
}

// A caller without a session says a name and never that it goes.
func TestLevelsOfCallersWithoutASessionAreBounded(t *testing.T) {
	w := newWorld(t)
	s := &script{
		tools: `[{"name":"talk"}]`, capabilities: `{"tools":{},"logging":{}}`,
		answers: map[string]string{"tools/call talk": `{"content":[]}`, "logging/setLevel": `{}`},
	}
	w.remote("talker", s.serve(t))
	w.entries["talker"]["mcpledger"] = map[string]any{"session": "per_client"}
	w.start()
	w.gateway.KeepLevels(2)
	w.await("talker", projections.StateReady)
	c := &rawClient{world: w, header: http.Header{
		"Mcp-Protocol-Version": {string(modern)}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"talker__talk"},
		"Accept": {"application/json, text/event-stream"},
	}}
	for i := range 5 {
		meta := strings.Replace(modernMeta, `"name":"hand"`, fmt.Sprintf(`"name":"hand-%d"`, i), 1)
		meta = strings.Replace(meta, `{`, `{"io.modelcontextprotocol/logLevel":"debug",`, 1)
		_, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talker__talk",` + meta + `}}`)
		if !strings.Contains(string(body), `"content":[]`) {
			t.Fatalf("call %d: %s", i, body)
		}
		if kept := w.gateway.Levels("talker"); kept == 0 || kept > 2 {
			t.Errorf("the levels of %d callers are kept after %d, want the last two at most", kept, i+1)
		}
	}
}

func TestAStreamEndsWithItsSession(t *testing.T) {
	w := newWorld(t)
	w.start()
	c := w.raw("")
	req, err := http.NewRequest(http.MethodGet, w.url, nil)
	w.must(err)
	req.Header.Set("Mcp-Session-Id", c.session)
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	w.must(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	c.do(http.MethodDelete)
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err == nil {
		t.Errorf("the stream went on: %q", line)
	}
}

// Clients that come, ask and vanish without a word leave nothing behind.
func TestClientsThatVanishLeaveNothing(t *testing.T) {
	w := newWorld(t)
	w.options.IdleTimeout = time.Nanosecond
	w.program("one", mcptest.Fake{})
	w.start()
	w.await("one", projections.StateReady)
	round := func() {
		var clients sync.WaitGroup
		for i := range 50 {
			clients.Go(func() {
				transport, vanish := vanishingTransport()
				client := mcp.NewClient(&mcp.Implementation{Name: "peer", Version: "1"}, nil)
				ctx := context.Background()
				s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: w.url, MaxRetries: -1, HTTPClient: &http.Client{Transport: transport}},
					&mcp.ClientSessionOptions{ProtocolVersion: string(eras[i%2])})
				if err != nil {
					w.Error(err)
					return
				}
				if _, err := s.ListTools(ctx, nil); err != nil {
					w.Error(err)
				}
				if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "one__echo", Arguments: map[string]any{}}); err != nil {
					w.Error(err)
				}
				vanish()
				_ = s.Close() // which reaches nobody, and frees what is the client's own
			})
		}
		clients.Wait()
		// The ends of their streams are seen in a moment.
		for deadline := time.Now().Add(patience); w.gateway.Clients() > 0 && time.Now().Before(deadline); {
			settled(t)
			w.gateway.Sweep()
		}
	}
	round()
	routines, before, open := settled(t), heap(), descriptors(t)
	for range 5 {
		round()
	}
	defer func() {
		if t.Failed() {
			t.Logf("%d goroutines, %d before; %d descriptors, %d before; heap of %d KiB, %d before",
				runtime.NumGoroutine(), routines, descriptors(t), open, heap()>>10, before>>10)
		}
	}()
	eventually(t, "there is no more than after the first round", func() bool {
		return runtime.NumGoroutine() <= routines+10 && descriptors(t) <= open+5 && heap() <= before+8<<20
	})
	if n := w.gateway.Clients(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// vanishingTransport returns connections that vanish all at once, as a killed client's
// do.
func vanishingTransport() (*http.Transport, func()) {
	var mu sync.Mutex
	var open []net.Conn
	gone := false
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if gone {
			return nil, net.ErrClosed
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			open = append(open, c)
		}
		return c, err
	}
	return &http.Transport{DialContext: dial}, func() {
		mu.Lock()
		defer mu.Unlock()
		gone = true
		for _, c := range open {
			_ = c.Close()
		}
	}
}

// settled returns the number of goroutines once it no longer falls.
func settled(t *testing.T) int {
	t.Helper()
	n := runtime.NumGoroutine()
	for range 50 {
		<-time.NewTimer(20 * time.Millisecond).C
		now := runtime.NumGoroutine()
		if now >= n {
			return n
		}
		n = now
	}
	return n
}

// descriptors returns how many are open; 0 where that cannot be told.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Log("descriptors are not counted: no /proc")
	}
	return len(open)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
