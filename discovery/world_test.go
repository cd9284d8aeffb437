package discovery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/clock"
	"mcpledger/discovery/config"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// world is a data folder, a config file and a clock, in which the service is started
// again and again.
type world struct {
	t       testing.TB
	data    string
	file    string
	entries map[string]map[string]any
	env     map[string]string
	ahead   atomic.Int64 // of the clock, in nanoseconds
	frozen  time.Time    // where the clock stands but for ahead; zero: it runs
	clock   *testClock   // stands in for all of that, and for what waits; nil: it does not
	logged  *lockedBuffer
	slow    time.Duration // in-run wait; 0: a millisecond
	// held keeps a service that was started from attempting anything until it is closed;
	// nil: nothing does.
	held   chan struct{}
	look   time.Duration // LookEvery
	verify bool          // VerifyOnStart
	// parallel and giveWay are the options of that name.
	parallel int
	giveWay  time.Duration
	// through stands between the service and its log; nil: nothing does.
	through func(events.Log) events.Log
	// storing stands between the engine and where it stores snapshots; nil: nothing does.
	storing func(projections.SnapshotStore) projections.SnapshotStore
}

func newWorld(t testing.TB) *world {
	dir := t.TempDir()
	return &world{
		t: t, data: filepath.Join(dir, "data"), file: filepath.Join(dir, "mcp.json"),
		entries: map[string]map[string]any{}, env: map[string]string{}, logged: &lockedBuffer{},
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

func (w *world) now() time.Time {
	if w.clock != nil {
		return w.clock.now()
	}
	at := w.frozen
	if at.IsZero() {
		at = time.Now()
	}
	return at.Add(time.Duration(w.ahead.Load()))
}

// program configures a fake program and returns the file in which its launches are
// counted.
func (w *world) program(name string, f mcptest.Fake) (launches string) {
	w.t.Helper()
	f.Launches = filepath.Join(w.t.TempDir(), "launches")
	c, err := f.CommandIn(w.t.TempDir())
	if err != nil {
		w.t.Fatal(err)
	}
	w.entries[name] = map[string]any{"command": c.Path, "args": c.Args, "env": c.Env}
	return f.Launches
}

func (w *world) writeConfig() {
	w.t.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": w.entries})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.file, b, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// running is one start of the service.
type running struct {
	*discovery.Service
	w      *world
	log    *sqlite.Log
	engine *projections.Engine
	stop   func()
}

// start starts the service; it is stopped at the end of the test, or before by stop.
func (w *world) start() *running {
	w.t.Helper()
	w.writeConfig()
	ctx := context.Background()
	log, err := sqlite.Open(ctx, w.data, sqlite.Options{Now: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	key, err := sqlite.LoadKey(w.data)
	if err != nil {
		w.t.Fatal(err)
	}
	var store projections.SnapshotStore = log
	if w.storing != nil {
		store = w.storing(log)
	}
	engine := projections.NewEngine(log, rules.Default(), store)
	if err := engine.CatchUp(ctx); err != nil {
		w.t.Fatal(err)
	}
	backoff := w.slow
	if backoff == 0 {
		backoff = time.Millisecond
	}
	var through events.Log = log
	if w.through != nil {
		through = w.through(log)
	}
	var at clock.At
	parallel := w.parallel
	if w.clock != nil {
		at, parallel = w.clock.call, 4 // so many are spaced by less than a short wait
	}
	s := discovery.New(discovery.Options{
		At: at, Parallel: parallel, GiveWay: w.giveWay, Log: through, Engine: engine, Source: "mcpledger/test", Version: "test", Now: w.now, RetryWait: backoff, LookEvery: w.look, VerifyOnStart: w.verify,
		Logger: slog.New(slog.NewTextHandler(w.logged, nil)),
		Load: func() (*config.Config, error) {
			return config.Load(config.Options{Files: []string{w.file}, Key: key, LookupEnv: func(n string) (string, bool) {
				v, ok := w.env[n]
				return v, ok
			}})
		},
	})
	if err := s.Start(ctx, os.Getpid()); err != nil {
		w.t.Fatal(err)
	}
	runCtx, cancel := context.WithCancelCause(ctx)
	done := make(chan error, 1)
	go func() {
		if w.held != nil {
			<-w.held
		}
		done <- s.Run(runCtx)
	}()
	r := &running{Service: s, w: w, log: log, engine: engine}
	r.stop = sync.OnceFunc(func() {
		cancel(errors.New("test over"))
		if err := <-done; err != nil {
			w.t.Errorf("run: %v", err)
		}
		if err := log.Close(); err != nil {
			w.t.Errorf("close: %v", err)
		}
	})
	w.t.Cleanup(r.stop)
	return r
}

// server returns how a server stands now.
func (r *running) server(name events.ServerName) projections.Server {
	r.w.t.Helper()
	var v projections.Server
	var ok bool
	if err := r.engine.View(func(s *projections.State) { v, ok = s.Server(name, r.w.now()) }); err != nil {
		r.w.t.Fatal(err)
	}
	if !ok {
		r.w.t.Fatalf("server %q is not listed", name)
	}
	return v
}

// await returns the first state of a server, after some event, that meets the
// condition.
func (r *running) await(name events.ServerName, what string, met func(projections.Server) bool) projections.Server {
	r.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, err := range r.log.Follow(ctx, 0) {
		if err != nil {
			break
		}
		if v := r.server(name); met(v) {
			return v
		}
	}
	v := r.server(name)
	r.w.t.Fatalf("%s: waited in vain for %s; it is %s: %s", name, what, v.State, v.Reason)
	return v
}

func (r *running) awaitState(name events.ServerName, want projections.ServerState) projections.Server {
	r.w.t.Helper()
	return r.await(name, string(want), func(v projections.Server) bool { return v.State == want })
}

// awaitOutcome waits until the present start has settled an attempt on the server.
func (r *running) awaitOutcome(name events.ServerName) projections.Server {
	r.w.t.Helper()
	var started events.Sequence
	for e, err := range r.log.Read(context.Background(), events.Query{Types: []events.Type{events.TypeServiceStarted}, Desc: true, Limit: 1}) {
		if err != nil {
			r.w.t.Fatal(err)
		}
		started = e.Sequence
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for e, err := range r.log.Follow(ctx, started) {
		if err != nil {
			break
		}
		if e.Type == events.TypeDiscoveryRunCompleted {
			if v := r.server(name); v.Last != nil {
				return v
			}
		}
	}
	r.w.t.Fatalf("%s: no run ended", name)
	return projections.Server{}
}

// recorded returns the events of one server, or all of them, of some types.
func (r *running) recorded(name events.ServerName, types ...events.Type) []events.Event {
	r.w.t.Helper()
	var all []events.Event
	for e, err := range r.log.Read(context.Background(), events.Query{Subject: name, Types: types}) {
		if err != nil {
			r.w.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// discover asks for an attempt as a person does, and waits for it.
func (r *running) discover(name events.ServerName) {
	r.w.t.Helper()
	begun, err := r.Discover(context.Background(), []events.ServerName{name}, "to see", "tester")
	if err != nil {
		r.w.t.Fatal(err)
	}
	<-begun.Done
}

// reload saves the config file and has it read.
func (r *running) reload() map[events.ServerName]events.Change {
	r.w.t.Helper()
	r.w.writeConfig()
	reloaded, err := r.Reload(context.Background(), "tester")
	if err != nil {
		r.w.t.Fatal(err)
	}
	return reloaded.Changes
}
