package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/httpapi"
	"mcpledger/httpapi/access"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// noon is when every story here begins.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

const instance = "instance-1"

// world is a service over a log on disk, with a clock that stands still and a
// discovery that tells at once what it was told to.
type world struct {
	testing.TB
	dir       string
	log       *sqlite.Log
	engine    *projections.Engine
	api       *httpapi.API
	discovery *discoveryStub
	operator  string // the operator's token
	logged    *syncBuffer
	clock     *clock
	ids       atomic.Int64
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newWorld returns a world whose log has the service's start and an empty config.
func newWorld(t testing.TB, change ...func(*httpapi.Config)) *world {
	t.Helper()
	w := newColdWorld(t, change...)
	w.must(w.engine.CatchUp(t.Context()))
	w.append("", events.ServiceStarted{Version: "test", Instance: instance, PID: 1})
	w.append("", events.ConfigLoaded{Files: []string{"/etc/mcp.json"}})
	return w
}

// newColdWorld returns a world whose folds have not caught up.
func newColdWorld(t testing.TB, change ...func(*httpapi.Config)) *world {
	t.Helper()
	w := &world{TB: t, dir: t.TempDir(), logged: &syncBuffer{}, clock: &clock{now: noon}}
	var err error
	w.log, err = sqlite.Open(t.Context(), w.dir, sqlite.Options{Now: w.clock.Now})
	w.must(err)
	t.Cleanup(func() { _ = w.log.Close() })
	w.engine = projections.NewEngine(w.log, rules.Default(), nil)
	w.discovery = &discoveryStub{world: w}
	w.operator, err = access.OperatorToken(w.dir)
	w.must(err)
	logger := slog.New(slog.NewTextHandler(w.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	keys, err := access.NewKeys(w.dir, w.operator, logger)
	w.must(err)
	cfg := httpapi.Config{
		Log: w.log, Engine: w.engine, Discovery: w.discovery, Keys: keys, Source: instance,
		Version: "test", Logger: logger, Now: w.clock.Now,
	}
	for _, c := range change {
		c(&cfg)
	}
	w.api, err = httpapi.New(cfg)
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// about is what an event is about beyond its server.
type about struct{ run, attempt, call string }

// append records payloads about a server, under the key its last entry has.
func (w *world) append(server events.ServerName, payloads ...events.Data) []string {
	w.Helper()
	return w.appendAbout(server, about{}, payloads...)
}

func (w *world) appendAbout(server events.ServerName, a about, payloads ...events.Data) []string {
	w.Helper()
	var batch []events.Event
	var ids []string
	for _, d := range payloads {
		e := w.event(server, a, d)
		batch, ids = append(batch, e), append(ids, e.ID)
	}
	_, err := w.log.Append(context.Background(), batch)
	w.must(err)
	return ids
}

// event makes an event of the service itself that happens now.
func (w *world) event(server events.ServerName, a about, d events.Data) events.Event {
	e := events.Event{
		ID: fmt.Sprintf("event-%d", w.ids.Add(1)), Source: instance, Type: d.EventType(), Subject: server,
		Time: w.clock.Now(), DataVersion: 1, Data: d, RunID: a.run, AttemptID: a.attempt, CallID: a.call,
	}
	if server != "" {
		e.ConfigKey = keyOf(server)
	}
	return e
}

func keyOf(server events.ServerName) events.ConfigKey {
	return events.ConfigKey("k1_" + string(server) + ".values")
}

// configure puts a stdio server into the config.
func (w *world) configure(server events.ServerName, change ...func(*events.ServerConfigured)) {
	w.Helper()
	d := events.ServerConfigured{
		Change: events.ChangeAdded, Transport: events.TransportStdio, Description: "The " + string(server) + " server",
		Config: json.RawMessage(`{"command":"uvx","args":["` + string(server) + `"]}`), SourceFile: "/etc/mcp.json",
	}
	for _, c := range change {
		c(&d)
	}
	w.append(server, d)
}

// attempt records an attempt in a run of its own, with its outcome.
func (w *world) attempt(server events.ServerName, trigger events.Trigger, outcome ...events.Data) (run string, ids []string) {
	w.Helper()
	n := w.ids.Add(1)
	a := about{run: fmt.Sprintf("run-%d", n), attempt: fmt.Sprintf("attempt-%d", n)}
	w.runEvent(a.run, events.DiscoveryRunStarted{Trigger: trigger, Servers: []events.ServerName{server}})
	w.appendAbout(server, a, events.DiscoveryStarted{Attempt: 1, Trigger: trigger, LimitMS: 60_000})
	ids = w.appendAbout(server, a, outcome...)
	w.runEvent(a.run, events.DiscoveryRunCompleted{ElapsedMS: 250})
	return a.run, ids
}

func (w *world) runEvent(run string, d events.Data) {
	w.Helper()
	w.appendAbout("", about{run: run}, d)
}

// missingModule is what a Python server without one of its modules leaves.
var missingModule = events.DiscoveryFailed{Evidence: events.Evidence{
	Phase: events.PhaseHandshake, Transport: events.TransportStdio, Error: "transport closed",
	ErrorKind: events.KindExit, ExitCode: new(1), EndedBy: events.EndedByServer, Command: "uvx weather",
	StderrTail: "Traceback (most recent call last):\n  File \"main.py\", line 3, in <module>\n" +
		"ModuleNotFoundError: No module named 'mcp.server.fastmcp'\n", ElapsedMS: 812,
}}

// fail records a failed attempt, some minutes after the one before.
func (w *world) fail(server events.ServerName) (id string) {
	w.Helper()
	w.clock.advance(5 * time.Minute)
	_, ids := w.attempt(server, events.TriggerRetry, missingModule)
	return ids[0]
}

// skip has a server fail until it is skipped.
func (w *world) skip(server events.ServerName) {
	w.Helper()
	for range 3 {
		w.fail(server)
	}
}

const weatherTools = `[{"name":"forecast","description":"Tells <tomorrow>","inputSchema":{"type":"object","$schema":"http://json-schema.org/draft-07/schema#",` +
	`"properties":{"city":{"type":"string"},"id":{"const":9007199254740993}},"required":["city"],"x-order":["city"]}},` +
	`{"name":"alerts","inputSchema":{"type":"object"}}]`

// succeed records an attempt that listed tools.
func (w *world) succeed(server events.ServerName, tools string) {
	w.Helper()
	var named []struct{ Name string }
	w.must(json.Unmarshal([]byte(tools), &named))
	var names []string
	for _, n := range named {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	hash := events.ContentHash([]byte(tools))
	w.attempt(server, events.TriggerStartup,
		events.DiscoverySucceeded{
			ProtocolVersion: "2025-11-25", ServerInfo: events.ServerInfo{Name: string(server), Version: "1.2.3"},
			CatalogueHash: hash, ToolCount: len(names), ElapsedMS: 120,
		},
		events.CatalogueChanged{Hash: hash, Added: names, Tools: json.RawMessage(tools)})
}

// discoveryStub records what it is told to do, and ends each attempt with the
// outcome told beforehand.
type discoveryStub struct {
	world    *world
	outcome  events.Data // of the next attempts; nil: they do not end
	asked    []events.ServerName
	err      error
	changes  map[events.ServerName]events.Change
	removed  []events.ServerName
	problems []events.ConfigProblem
}

func (d *discoveryStub) record(ctx context.Context, server events.ServerName, a about, payloads ...events.Data) error {
	var batch []events.Event
	for _, p := range payloads {
		batch = append(batch, d.world.event(server, a, p))
	}
	_, err := d.world.log.Append(ctx, batch)
	return err
}

func (d *discoveryStub) Discover(ctx context.Context, servers []events.ServerName, reason, _ string) (string, <-chan struct{}, error) {
	if d.err != nil {
		return "", nil, d.err
	}
	d.asked = append(d.asked, servers...)
	done := make(chan struct{})
	if d.outcome == nil {
		return "run-open", done, nil
	}
	defer close(done)
	a := about{run: fmt.Sprintf("run-%d", d.world.ids.Add(1)), attempt: "attempt"}
	started := events.DiscoveryRunStarted{Trigger: events.TriggerManual, Servers: servers, Reason: reason}
	if err := d.record(ctx, "", a, started); err != nil {
		return "", nil, err
	}
	for _, s := range servers {
		if err := d.record(ctx, s, a, events.DiscoveryStarted{Attempt: 1, Trigger: events.TriggerManual}, d.outcome); err != nil {
			return "", nil, err
		}
	}
	return a.run, done, d.record(ctx, "", a, events.DiscoveryRunCompleted{})
}

func (d *discoveryStub) Reload(context.Context, string) (map[events.ServerName]events.Change, []events.ServerName, []events.ConfigProblem, error) {
	return d.changes, d.removed, d.problems, d.err
}

func (d *discoveryStub) Pin(ctx context.Context, server events.ServerName, until time.Time, reason, _ string) error {
	return cmp.Or(d.err, d.record(ctx, server, about{}, events.SkipPinned{Reason: reason, Until: until}))
}

func (d *discoveryStub) Clear(ctx context.Context, servers []events.ServerName, reason, _ string) error {
	for _, s := range servers {
		if err := d.record(ctx, s, about{}, events.SkipCleared{Reason: reason}); err != nil {
			return err
		}
	}
	return d.err
}

// contract is the OpenAPI document every answer is checked against.
var contract = sync.OnceValue(func() (c struct {
	doc    *openapi3.T
	router routers.Router
}) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		panic(err)
	}
	if c.doc, err = openapi3.NewLoader().LoadFromData(text); err != nil {
		panic(err)
	}
	if c.router, err = legacy.NewRouter(c.doc); err != nil {
		panic(err)
	}
	openapi3filter.RegisterBodyDecoder("application/cloudevents-batch+json", openapi3filter.JSONBodyDecoder)
	return c
})

// answer is a checked answer.
type answer struct {
	testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

// asking changes a request before it is sent.
type asking func(*http.Request)

func header(name, value string) asking { return func(r *http.Request) { r.Header.Set(name, value) } }

func bearer(token string) asking { return header("Authorization", "Bearer "+token) }

func from(remote string) asking { return func(r *http.Request) { r.RemoteAddr = remote } }

func calling(host string) asking { return func(r *http.Request) { r.Host = host } }

// get asks as somebody on this machine without a token.
func (w *world) get(path string, how ...asking) answer {
	w.Helper()
	return w.ask(http.MethodGet, path, "", how...)
}

// operate asks as the operator.
func (w *world) operate(method, path, body string, how ...asking) answer {
	w.Helper()
	return w.ask(method, path, body, append([]asking{bearer(w.operator)}, how...)...)
}

// ask sends a request and checks the answer against the contract.
func (w *world) ask(method, path, body string, how ...asking) answer {
	w.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1:8132", "127.0.0.1:50000"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range how {
		h(r)
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	a := answer{TB: w, what: method + " " + path, status: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
	a.conforms(r, body)
	return a
}

// conforms checks an answer against the contract, and a request that was taken, too.
func (a answer) conforms(r *http.Request, body string) {
	a.Helper()
	ctx := context.Background()
	r = r.Clone(ctx)
	r.Host = ""
	r.URL.Scheme, r.URL.Host = "", ""
	r.Body = io.NopCloser(strings.NewReader(body))
	route, params, err := contract().router.FindRoute(r)
	if r.Method == http.MethodOptions && a.status < 400 {
		return // browsers ask beforehand; that is no operation
	}
	if err != nil {
		if a.status < 400 {
			a.Fatalf("%s: answered %d, but the contract has no such route: %v", a.what, a.status, err)
		}
		a.isProblem()
		return
	}
	input := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if a.status < 400 && r.Method != http.MethodHead {
		if err := openapi3filter.ValidateRequest(ctx, input); err != nil {
			a.Errorf("%s: answered %d, but the contract does not allow the request: %v", a.what, a.status, err)
		}
	}
	if a.status >= 400 && a.header.Get("Content-Type") != "application/json" {
		a.isProblem()
	}
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	input.Options.ExcludeResponseBody = !strings.HasSuffix(media, "json") || media == "application/x-ndjson"
	err = openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: a.status, Header: a.header,
		Body: io.NopCloser(bytes.NewReader(a.body)), Options: input.Options,
	})
	if err != nil {
		a.Errorf("%s: the answer is not what the contract says: %v\n%s", a.what, err, a.body)
	}
}

func (a answer) isProblem() {
	a.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.Fatalf("%s: answered %d as %q, want problem+json\n%s", a.what, a.status, got, a.body)
	}
	var p map[string]any
	a.into(&p)
	if err := contract().doc.Components.Schemas["Problem"].Value.VisitJSON(p); err != nil {
		a.Fatalf("%s: the problem is none: %v\n%s", a.what, err, a.body)
	}
}

// ok fails the test unless the answer has the status.
func (a answer) is(status int) answer {
	a.Helper()
	if a.status != status {
		a.Fatalf("%s: answered %d, want %d\n%s", a.what, a.status, status, a.body)
	}
	return a
}

// refused fails the test unless the answer is a problem of that status and code.
func (a answer) refused(status int, code string) answer {
	a.Helper()
	a.is(status).isProblem()
	if got := a.at("code"); got != code {
		a.Fatalf("%s: refused with code %v, want %s\n%s", a.what, got, code, a.body)
	}
	return a
}

func (a answer) into(v any) {
	a.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.Fatalf("%s: %v\n%s", a.what, err, a.body)
	}
}

// at returns the value at a path of member names and indexes.
func (a answer) at(path ...any) any {
	a.Helper()
	var v any
	a.into(&v)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				a.Fatalf("%s: no object at %v in\n%s", a.what, path, a.body)
			}
			v = m[step]
		case int:
			l, ok := v.([]any)
			if !ok || step >= len(l) {
				a.Fatalf("%s: no element %d at %v in\n%s", a.what, step, path, a.body)
			}
			v = l[step]
		}
	}
	return v
}

// names returns the named member of each element of the list at path.
func (a answer) names(member string, path ...any) []string {
	a.Helper()
	items, ok := a.at(path...).([]any)
	if !ok {
		a.Fatalf("%s: no list at %v in\n%s", a.what, path, a.body)
	}
	out := []string{}
	for _, item := range items {
		out = append(out, fmt.Sprint(item.(map[string]any)[member]))
	}
	return out
}

// want fails the test unless got equals want.
func want[T comparable](t testing.TB, what string, got any, want T) {
	t.Helper()
	if got != any(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// head returns the log's last sequence.
func (w *world) head() events.Sequence {
	w.Helper()
	h, err := w.log.Head(context.Background())
	w.must(err)
	return h.Sequence
}
