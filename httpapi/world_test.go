package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	fresh, err := freshLog()
	w.must(err)
	for name, content := range fresh {
		w.must(os.WriteFile(filepath.Join(w.dir, name), content, 0o600))
	}
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

// freshLog has the files of a log that was just made, since making one takes longer
// than most tests.
var freshLog = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "fresh-log-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	log, err := sqlite.Open(context.Background(), dir, sqlite.Options{Now: (&clock{now: noon}).Now})
	if err != nil {
		return nil, err
	}
	if err := log.Close(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
})

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

// head returns the log's last sequence.
func (w *world) head() events.Sequence {
	w.Helper()
	h, err := w.log.Head(context.Background())
	w.must(err)
	return h.Sequence
}
