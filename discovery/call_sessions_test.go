package discovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// background makes a call that the test looks at later.
func (r *running) background(c discovery.Call) <-chan discovery.CallOutcome {
	done := make(chan discovery.CallOutcome, 1)
	go func() {
		out, err := r.Call(context.Background(), c)
		if err != nil {
			r.w.t.Errorf("call %s/%s: %v", c.Server, c.Tool, err)
		}
		done <- out
	}()
	return done
}

// holds answers once release is closed; asked gets a word per request.
func holds(asked chan<- struct{}, release <-chan struct{}, answer string) func(http.ResponseWriter, *http.Request, rpcRequest) {
	return func(w http.ResponseWriter, r *http.Request, req rpcRequest) {
		asked <- struct{}{}
		select {
		case <-release:
			says(answer)(w, r, req)
		case <-r.Context().Done():
		}
	}
}

func TestFirstCallsAtTheSameTimeShareOneSession(t *testing.T) {
	w := newWorld(t)
	launches := w.program("shared", mcptest.Fake{})
	r := w.start()
	r.awaitState("shared", projections.StateReady)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if out, err := r.tryCall("shared", "echo", `{}`, 0); err != nil || out.Outcome != projections.OutcomeSucceeded {
				t.Errorf("%v %s", err, told(out))
			}
		})
	}
	all.Wait()
	wantLaunches(t, launches, 2, "one for discovery, one for eight calls")
	if opened := r.recorded("shared", events.TypeSessionOpened); len(opened) != 1 {
		t.Errorf("%d sessions opened, want 1", len(opened))
	}
}

func TestCallsOnASessionOutliveItsDiscarding(t *testing.T) {
	w := newWorld(t)
	w.clock = newTestClock()
	launches := w.program("slow", mcptest.Fake{})
	r := w.start()
	r.awaitState("slow", projections.StateReady)
	r.wantCall("slow", "echo")
	hangs := func(limit time.Duration) <-chan discovery.CallOutcome {
		begun := filepath.Join(t.TempDir(), "begun")
		out := r.background(discovery.Call{Server: "slow", Tool: "wait", Timeout: limit, Arguments: fmt.Appendf(nil, `{"begun":%q}`, begun)})
		eventually(t, "the server has the call", func() bool { _, err := os.Stat(begun); return err == nil })
		return out
	}
	long, short := hangs(40*time.Second), hangs(10*time.Second)
	w.clock.advance(10 * time.Second)
	if out := <-short; out.Failure == nil || out.Failure.Code != discovery.CodeToolTimeout {
		t.Fatal(told(out))
	}
	r.wantCall("slow", "echo")
	wantLaunches(t, launches, 3, "the broken session was replaced")
	w.clock.advance(30 * time.Second)
	if out := <-long; out.Failure == nil || out.Failure.Code != discovery.CodeToolTimeout || out.Duration != 40*time.Second {
		t.Errorf("a call in flight was taken down after %s: %s", out.Duration, told(out))
	}
}

func TestACallInFlightOutlivesTheLossOfItsSession(t *testing.T) {
	w := newWorld(t)
	asked, release := make(chan struct{}, 8), make(chan struct{})
	first := true
	remote := newBadServer(t, mcptest.HTTP{}, "tools/call", func(w http.ResponseWriter, r *http.Request, req rpcRequest) {
		if first {
			first = false
			holds(asked, release, good)(w, r, req)
			return
		}
		status(404, "no such session")(w, r, req)
	})
	remote.armed.Store(true)
	w.entries["remote"] = map[string]any{"url": remote.url}
	r := w.start()
	r.awaitState("remote", projections.StateReady)
	long := r.background(discovery.Call{Server: "remote", Tool: victim})
	<-asked
	if out := r.call("remote", victim, `{}`); out.Failure == nil || out.Failure.Code != discovery.CodeSessionExpired {
		t.Fatal(told(out))
	}
	r.awaitDiscarded("remote", discovery.CodeSessionExpired)
	r.wantCall("remote", "echo")
	close(release)
	if out := <-long; out.Failure != nil {
		t.Errorf("in flight when the session was lost: %s", told(out))
	}
}

func TestALateFailureOfAnOldSessionChangesNothing(t *testing.T) {
	const limit = 7 * time.Second
	w := newWorld(t)
	w.clock = newTestClock()
	asked, release := make(chan struct{}, 8), make(chan struct{})
	late := newBadServer(t, mcptest.HTTP{}, "tools/call", holds(asked, release, "oops"))
	w.entries["late"] = map[string]any{"url": late.url}
	r := w.start()
	r.awaitState("late", projections.StateReady)
	r.wantCall("late", "echo")
	late.armed.Store(true)
	first := r.background(discovery.Call{Server: "late", Tool: victim})
	<-asked
	second := r.background(discovery.Call{Server: "late", Tool: victim, Timeout: limit})
	<-asked
	w.clock.advance(limit)
	if out := <-second; out.Failure == nil || out.Failure.Code != discovery.CodeToolTimeout {
		t.Fatal(told(out)) // this discards session 1
	}
	if got := r.generation(r.call("late", "echo", `{}`)); got != 2 {
		t.Fatalf("session %d after a timeout, want 2", got)
	}
	close(release)
	if out := <-first; out.Failure == nil || out.Failure.Code != discovery.CodeMalformed {
		t.Fatal(told(out))
	}
	if got := r.generation(r.call("late", "echo", `{}`)); got != 2 {
		t.Errorf("session %d after a late failure of session 1, want 2", got)
	}
}

func TestAnEntryEditedWhileItsSessionOpensIsANewConnection(t *testing.T) {
	w := newWorld(t)
	asked, release := make(chan struct{}, 8), make(chan struct{})
	old := newBadServer(t, mcptest.HTTP{}, "initialize", holds(asked, release, "{}"))
	renewed := newBadServer(t, mcptest.HTTP{}, "none", nil)
	w.entries["edited"] = map[string]any{"url": old.url}
	r := w.start()
	r.awaitState("edited", projections.StateReady)
	old.armed.Store(true)
	first := r.background(discovery.Call{Server: "edited", Tool: "echo"})
	<-asked
	w.entries["edited"] = map[string]any{"url": renewed.url}
	r.reload()
	out := <-first
	if out.Dispatched || out.Failure == nil || out.Failure.Code != discovery.CodeNotConnected {
		t.Errorf("the call on the old entry: %s", told(out))
	}
	close(release)
	r.awaitState("edited", projections.StateReady)
	r.wantCall("edited", "echo")
	if old.inner.Count("tools/call") != 0 || renewed.inner.Count("tools/call") != 1 {
		t.Errorf("the old server got %d calls, the new one %d", old.inner.Count("tools/call"), renewed.inner.Count("tools/call"))
	}
	for _, e := range r.recorded("edited", events.TypeSessionOpened) {
		if e.ConfigKey != r.server("edited").ConfigKey {
			t.Error("a session of the old entry was opened")
		}
	}
}

func TestEachClientHasASessionOfItsOwnWhereTheEntryAsksForIt(t *testing.T) {
	w := newWorld(t)
	launches := w.program("browser", mcptest.Fake{})
	w.entries["browser"]["mcpledger"] = map[string]any{"session": "per_client"}
	r := w.start()
	r.awaitState("browser", projections.StateReady)
	for _, client := range []string{"anna", "ben", "anna", "ben", "anna"} {
		out, err := r.Call(context.Background(), discovery.Call{Server: "browser", Tool: "echo", Arguments: json.RawMessage(`{}`), Client: client})
		if err != nil || out.Failure != nil {
			t.Fatal(err, told(out))
		}
	}
	wantLaunches(t, launches, 3, "one for discovery, one for each client")
	var clients []string
	for _, e := range r.recorded("browser", events.TypeSessionOpened) {
		d := e.Data.(events.SessionOpened)
		clients = append(clients, d.Client)
		if int(d.Generation) != len(clients) {
			t.Errorf("%s's session is number %d of the connection, want %d", d.Client, d.Generation, len(clients))
		}
	}
	if !slices.Equal(clients, []string{"anna", "ben"}) {
		t.Errorf("sessions of %v", clients)
	}
	r.Forget("anna")
	r.awaitDiscarded("browser", "client_gone")
}

// awaitDiscarded waits until a session of the server is recorded as discarded for the
// reason.
func (r *running) awaitDiscarded(name events.ServerName, reason string) {
	r.w.t.Helper()
	r.await(name, "a session discarded: "+reason, func(projections.Server) bool {
		for _, e := range r.recorded(name, events.TypeSessionDiscarded) {
			if e.Data.(events.SessionDiscarded).Reason == reason {
				return true
			}
		}
		return false
	})
}

func TestAnIdleSessionIsClosed(t *testing.T) {
	w := newWorld(t)
	launches := w.program("idle", mcptest.Fake{})
	r := w.start()
	r.awaitState("idle", projections.StateReady)
	r.wantCall("idle", "echo")
	w.ahead.Add(int64(31 * time.Minute))
	r.reload()
	r.awaitDiscarded("idle", "idle")
	r.wantCall("idle", "echo")
	wantLaunches(t, launches, 3, "discovery, and a process before and after")
}

func TestAProcessThatKeepsDyingIsNotRestartedWithoutEnd(t *testing.T) {
	w := newWorld(t)
	w.frozen = time.Now()
	launches := w.program("fragile", mcptest.Fake{})
	r := w.start()
	r.awaitState("fragile", projections.StateReady)
	for range 2 {
		if out := r.call("fragile", "exit", `{}`); out.Failure.Code != discovery.CodeProcessExited {
			t.Fatal(told(out))
		}
	}
	for range 5 {
		out := r.call("fragile", "exit", `{}`)
		if out.Outcome != projections.OutcomeRefused || out.Failure.Code != discovery.CodeNotConnected ||
			out.Failure.RetryAfter <= 0 || out.Failure.RetryAfter > time.Second || out.Failure.Since.IsZero() {
			t.Fatalf("%s, retry after %s", told(out), out.Failure.RetryAfter)
		}
	}
	wantLaunches(t, launches, 3, "two deaths soon after the start")
	w.ahead.Add(int64(time.Second))
	r.wantCall("fragile", "echo")
}

func TestASuccessfulCheckEndsTheWaitAfterAFailedOpening(t *testing.T) {
	w := newWorld(t)
	w.frozen = time.Now()
	up := newBadServer(t, mcptest.HTTP{}, "initialize", status(503, ""))
	w.entries["remote"] = map[string]any{"url": up.url}
	r := w.start()
	r.awaitState("remote", projections.StateReady)
	up.armed.Store(true)
	r.call("remote", "echo", `{}`)
	if out := r.call("remote", "echo", `{}`); out.Failure == nil || out.Failure.Code != discovery.CodeNotConnected {
		t.Fatal(told(out))
	}
	up.armed.Store(false)
	r.discover("remote")
	r.wantCall("remote", "echo")
}

func TestMoreCallsThanPlacesWaitAndThenAreRefused(t *testing.T) {
	w := newWorld(t)
	w.clock = newTestClock()
	asked, release := make(chan struct{}, 32), make(chan struct{})
	crowded := newBadServer(t, mcptest.HTTP{}, "tools/call", holds(asked, release, good))
	crowded.armed.Store(true)
	w.entries["crowded"] = map[string]any{"url": crowded.url}
	r := w.start()
	r.awaitState("crowded", projections.StateReady)
	var held []<-chan discovery.CallOutcome
	for range 16 {
		held = append(held, r.background(discovery.Call{Server: "crowded", Tool: victim}))
		<-asked
	}
	tooMany := r.background(discovery.Call{Server: "crowded", Tool: "echo"})
	w.clock.awaitWaiting(t, 1, 5*time.Second)
	w.clock.advance(5 * time.Second)
	out := <-tooMany
	if out.Outcome != projections.OutcomeRefused || out.Failure.Code != discovery.CodeBusy || out.Failure.RetryAfter <= 0 {
		t.Errorf("a call too many: %s", told(out))
	}
	waiting := r.background(discovery.Call{Server: "crowded", Tool: "echo", Arguments: json.RawMessage(`{}`)})
	close(release)
	for _, h := range append(held, waiting) {
		if out := <-h; out.Failure != nil {
			t.Errorf("a call with a place: %s", told(out))
		}
	}
}

func TestWhoeverWaitsForASessionIsToldInTime(t *testing.T) {
	const limit = 7 * time.Second
	for story, ask := range map[string]func(*running) *discovery.CallFailure{
		"a call": func(r *running) *discovery.CallFailure {
			out, err := r.tryCall("slow", "echo", `{}`, limit)
			if err != nil {
				t.Error(err)
			}
			return out.Failure
		},
		"a question": func(r *running) *discovery.CallFailure {
			said, err := r.Ask(context.Background(), discovery.Question{Server: "slow", Method: "resources/list", Timeout: limit})
			if err != nil {
				t.Error(err)
			}
			return said.Failure
		},
	} {
		t.Run(story, func(t *testing.T) {
			w := newWorld(t)
			w.clock = newTestClock()
			slow := newBadServer(t, mcptest.HTTP{}, "initialize", hangs)
			w.entries["slow"] = map[string]any{"url": slow.url}
			r := w.start()
			r.awaitState("slow", projections.StateReady)
			slow.armed.Store(true)
			told := make(chan *discovery.CallFailure, 1)
			go func() { told <- ask(r) }()
			w.clock.awaitWaiting(t, 1, limit)
			w.clock.advance(limit)
			if f := <-told; f == nil || f.Code != discovery.CodeToolTimeout || f.Evidence.LimitMS != limit.Milliseconds() {
				t.Errorf("told %+v", f)
			}
		})
	}
}

func TestProgressRenewsTheTimeOfACall(t *testing.T) {
	const limit = 8 * time.Second
	w := newWorld(t)
	w.clock = newTestClock()
	more := make(chan string)
	defer close(more)
	steady := newBadServer(t, mcptest.HTTP{}, "tools/call", func(w http.ResponseWriter, r *http.Request, req rpcRequest) {
		for data := range more {
			streams("data: "+data+"\n\n")(w, r, req)
		}
	})
	w.entries["steady"] = map[string]any{"url": steady.url}
	r := w.start()
	r.awaitState("steady", projections.StateReady)
	r.wantCall("steady", "echo") // which opens the session
	steady.armed.Store(true)
	long := r.background(discovery.Call{Server: "steady", Tool: victim, Timeout: limit})
	for range 5 {
		w.clock.awaitWaiting(t, 1, limit)
		w.clock.advance(limit / 2)
		more <- notice
	}
	w.clock.awaitWaiting(t, 1, limit)
	more <- good
	if out := <-long; out.Failure != nil || out.Duration != 5*limit/2 {
		t.Errorf("%s after %s, want a result after %s", told(out), out.Duration, 5*limit/2)
	}
}

func TestACancelledCallIsCancelledAtItsServerAndRecorded(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	remote := newBadServer(t, mcptest.HTTP{}, "tools/call", func(_ http.ResponseWriter, r *http.Request, _ rpcRequest) {
		cancel()
		<-r.Context().Done()
		close(gone)
	})
	remote.armed.Store(true)
	w.entries["remote"] = map[string]any{"url": remote.url}
	r := w.start()
	r.awaitState("remote", projections.StateReady)
	out, err := r.Call(ctx, discovery.Call{Server: "remote", Tool: victim})
	if err != nil || out.Failure == nil || out.Failure.Code != discovery.CodeCancelled || !out.Dispatched {
		t.Fatal(err, told(out))
	}
	<-gone
	if got := r.recorded("remote", events.TypeToolCallFailed); len(got) != 1 || got[0].ID != out.EventID {
		t.Errorf("recorded %v", got)
	}
	if got := r.generation(r.call("remote", "echo", `{}`)); got != 1 {
		t.Errorf("session %d after a cancelled call, want 1", got)
	}
	eventually(t, "the server hears that the call is cancelled", func() bool {
		return remote.inner.Count("notifications/cancelled") == 1
	})
}

func TestBothErasAreCalled(t *testing.T) {
	w := newWorld(t)
	w.program("modern-program", mcptest.Fake{Era: mcptest.Modern})
	for name, spec := range map[string]mcptest.HTTP{
		"modern": {Era: mcptest.Modern}, "legacy": {}, "events": {Events: true}, "sse": {SSE: true},
	} {
		entry := map[string]any{"url": mcptest.NewHTTP(t, spec).URL}
		if spec.SSE {
			entry["type"] = "sse"
		}
		w.entries[name] = entry
	}
	r := w.start()
	for name := range w.entries {
		r.awaitState(events.ServerName(name), projections.StateReady)
		out := r.call(events.ServerName(name), "echo", `{"text":"hello"}`)
		if out.Failure != nil || !strings.Contains(string(out.Result), "hello") {
			t.Errorf("%s: %s", name, told(out))
		}
	}
}
