package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery"
	"mcpledger/discovery/config"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/httpapi/gateway"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// world is a service with servers behind it and a gateway in front.
type world struct {
	*testing.T
	entries map[string]map[string]any
	options gateway.Options
	file    string
	logged  *lockedBuffer
	late    chan struct{} // closed when the gateway may take the config as read; nil: at once

	log     *sqlite.Log
	engine  *projections.Engine
	service *discovery.Service
	gateway *gateway.Gateway
	url     string // of /mcp
	stop    func()
}

func newWorld(t *testing.T) *world {
	return &world{
		T: t, entries: map[string]map[string]any{}, file: filepath.Join(t.TempDir(), "mcp.json"), logged: &lockedBuffer{},
		options: gateway.Options{ChangeInterval: 10 * time.Millisecond},
	}
}

// lockedBuffer takes log lines from several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// program configures a fake program.
func (w *world) program(name string, f mcptest.Fake) {
	w.Helper()
	c, err := f.CommandIn(w.TempDir())
	w.must(err)
	w.entries[name] = map[string]any{"command": c.Path, "args": c.Args, "env": c.Env}
}

// remote configures a server over HTTP.
func (w *world) remote(name, url string) { w.entries[name] = map[string]any{"url": url} }

func (w *world) writeConfig() {
	w.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": w.entries})
	w.must(err)
	w.must(os.WriteFile(w.file, b, 0o600))
}

// start starts the service; it is stopped at the end of the test, or before by stop.
func (w *world) start() *world {
	w.Helper()
	w.writeConfig()
	ctx := context.Background()
	data := w.TempDir()
	var err error
	w.log, err = sqlite.Open(ctx, data, sqlite.Options{Now: time.Now})
	w.must(err)
	key, err := sqlite.LoadKey(data)
	w.must(err)
	w.engine = projections.NewEngine(w.log, rules.Default(), w.log)
	w.must(w.engine.CatchUp(ctx))
	logger := slog.New(slog.NewTextHandler(w.logged, nil))
	w.service = discovery.New(discovery.Options{
		Log: w.log, Engine: w.engine, Source: "mcpledger-test", Version: "test", RetryWait: time.Millisecond, Logger: logger,
		Load: func() (*config.Config, error) {
			return config.Load(config.Options{Files: []string{w.file}, Key: key, LookupEnv: func(string) (string, bool) { return "", false }})
		},
	})
	w.options.Log, w.options.Engine, w.options.Discovery = w.log, w.engine, w.service
	w.options.Version, w.options.Logger = "test", logger
	if w.options.Now == nil {
		w.options.Now = time.Now
	}
	w.gateway, err = gateway.New(w.options)
	w.must(err)
	w.must(w.service.Start(ctx, os.Getpid()))
	runCtx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.service.Run(runCtx); err != nil {
			w.Errorf("run: %v", err)
		}
	})
	running.Go(func() {
		if w.late != nil {
			select {
			case <-w.late:
			case <-runCtx.Done():
			}
		}
		w.gateway.Run(runCtx)
	})
	front := httptest.NewServer(front(w.gateway))
	w.url = front.URL + "/mcp"
	w.stop = sync.OnceFunc(func() {
		cancel(errors.New("test over"))
		running.Wait()
		front.Close()
		if err := w.log.Close(); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	w.Cleanup(w.stop)
	return w
}

// front answers over HTTP as a gateway does where it is mounted.
func front(g *gateway.Gateway) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := g.Serve(w, r)
		if err == nil {
			return
		}
		status, code := http.StatusServiceUnavailable, "catching_up"
		if refusal, ok := errors.AsType[*gateway.Refusal](err); ok {
			status, code = refusal.Status, refusal.Code
		} else if errors.Is(err, discovery.ErrUnknownServer) {
			status, code = http.StatusNotFound, "server_not_found"
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": err.Error()})
	})
}

// reload saves the config and has it read.
func (w *world) reload() {
	w.Helper()
	w.writeConfig()
	_, err := w.service.Reload(context.Background(), "tester")
	w.must(err)
}

// await waits until a server is in a state.
func (w *world) await(name events.ServerName, want projections.ServerState) projections.Server {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var v projections.Server
	for _, err := range w.log.Follow(ctx, 0) {
		if err != nil {
			break
		}
		w.must(w.engine.View(func(s *projections.State) { v, _ = s.Server(name, time.Now()) }))
		if v.State == want {
			return v
		}
	}
	w.Fatalf("%s: waited in vain for %s; it is %s: %s", name, want, v.State, v.Reason)
	return v
}

// recorded returns the events of a server of one type.
func (w *world) recorded(name events.ServerName, kind events.Type) []events.Event {
	w.Helper()
	var all []events.Event
	for e, err := range w.log.Read(context.Background(), events.Query{Subject: name, Types: []events.Type{kind}}) {
		w.must(err)
		all = append(all, e)
	}
	return all
}

// era is how a test's client speaks.
type era string

const (
	legacy era = "2025-11-25"
	modern era = "2026-07-28"
)

var eras = []era{legacy, modern}

// connect connects a client of the official SDK.
func (w *world) connect(e era, path string, change ...func(*mcp.ClientOptions)) *mcp.ClientSession {
	w.Helper()
	options := &mcp.ClientOptions{}
	for _, c := range change {
		c(options)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "peer", Version: "1.0"}, options)
	session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: w.url + path, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: string(e)})
	w.must(err)
	w.Cleanup(func() { _ = session.Close() })
	return session
}

// rawClient sends JSON-RPC by hand, to see the bytes.
type rawClient struct {
	*world
	path, session string
	header        http.Header
}

// raw begins a session by hand.
func (w *world) raw(path string) *rawClient {
	w.Helper()
	c := &rawClient{world: w, path: path, header: http.Header{}}
	status, header, body := c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}`)
	c.session = header.Get("Mcp-Session-Id")
	if status != http.StatusOK || c.session == "" {
		w.Fatalf("initialize: %d %s", status, body)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// send posts one message and returns the answer.
func (c *rawClient) send(message string) (status int, header http.Header, body []byte) {
	c.Helper()
	req, err := http.NewRequest(http.MethodPost, c.url+c.path, strings.NewReader(message))
	c.must(err)
	req.Header = c.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	res, err := http.DefaultClient.Do(req)
	c.must(err)
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	c.must(err)
	return res.StatusCode, res.Header, body
}

// result sends a request and returns its result as it came.
func (c *rawClient) result(method, params string) json.RawMessage {
	c.Helper()
	status, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
	var reply struct {
		Result, Error json.RawMessage
	}
	if err := json.Unmarshal(body, &reply); err != nil || status != http.StatusOK || reply.Result == nil {
		c.Fatalf("%s: %d %s (%v)", method, status, body, err)
	}
	return reply.Result
}

// script is a server over HTTP that answers by hand.
type script struct {
	tools        string // the array
	capabilities string // an object; empty: tools alone
	name         string // that it gives itself; empty: "script"
	answers      map[string]string
	notices      map[string][]string // messages in front of an answer

	mu    sync.Mutex
	asked []string // bodies of what was asked, but for the handshake
}

// serve starts the script.
func (s *script) serve(t *testing.T) string {
	t.Helper()
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	return front.URL
}

// ServeHTTP answers a call from answers by "tools/call NAME", anything else by its
// method.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var req struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name            string
			ProtocolVersion string
		}
	}
	_ = json.Unmarshal(body, &req)
	if req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	key := req.Method
	capabilities := s.capabilities
	if capabilities == "" {
		capabilities = `{"tools":{}}`
	}
	var result string
	switch req.Method {
	case "initialize":
		result = `{"protocolVersion":"` + req.Params.ProtocolVersion + `","capabilities":` + capabilities + `,"serverInfo":{"name":` + s.title() + `,"version":"1"}}`
	case "tools/list":
		result = `{"tools":` + s.tools + `}`
	case "tools/call":
		key += " " + req.Params.Name
		fallthrough
	default:
		s.mu.Lock()
		s.asked = append(s.asked, string(body))
		result = s.answers[key]
		s.mu.Unlock()
	}
	answer := `{"jsonrpc":"2.0","id":` + string(req.ID) + `,"result":` + result + `}`
	if result == "" {
		answer = `{"jsonrpc":"2.0","id":` + string(req.ID) + `,"error":{"code":-32601,"message":"no ` + key + `"}}`
	}
	if len(s.notices[key]) == 0 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, message := range append(s.notices[key], answer) {
		_, _ = io.WriteString(w, "data: "+message+"\n\n")
	}
}

// answer changes an answer.
func (s *script) answer(key, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[key] = result
}

// title returns the name of the server as JSON.
func (s *script) title() string {
	quoted, _ := json.Marshal(cmp.Or(s.name, "script"))
	return string(quoted)
}

// all returns what was asked, in order.
func (s *script) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// last returns the last thing that was asked, empty if nothing was.
func (s *script) last() string {
	if all := s.all(); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// awaitEvents waits until that many events of a type are recorded of a server.
func (w *world) awaitEvents(name events.ServerName, kind events.Type, n int) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seen := 0
	for e, err := range w.log.Follow(ctx, 0) {
		if err != nil {
			break
		}
		if e.Subject == name && e.Type == kind {
			if seen++; seen >= n {
				return
			}
		}
	}
	w.Fatalf("%s: %d events %s, want %d", name, seen, kind, n)
}

// eventually waits until what is awaited holds.
func eventually(t *testing.T, awaited string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, awaited)
		}
	}
}
