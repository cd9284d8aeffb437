package discovery_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// npx configures a fake that is started through npx: a program of that name, which the
// server's own PATH leads to.
func (w *world) npx(name string, f mcptest.Fake) (launches string) {
	w.t.Helper()
	launches = w.program(name, f)
	entry, bin := w.entries[name], w.t.TempDir()
	if err := os.Symlink(entry["command"].(string), filepath.Join(bin, "npx")); err != nil {
		w.t.Fatal(err)
	}
	entry["command"], entry["args"] = "npx", []string{"-y", "@acme/" + name}
	entry["env"].(map[string]string)["PATH"] = bin
	return launches
}

// gate returns a pipe for Fake.Gate, and what opens it.
func gate(t *testing.T) (name string, open func()) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name, func() {
		t.Helper()
		opened := make(chan error, 1)
		go func() {
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			_ = f.Close()
			opened <- err
		}()
		select {
		case err := <-opened:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("nobody waits at the gate")
		}
	}
}

func TestAPackageThatIsFetchedFirstMayTakeItsTime(t *testing.T) {
	w := newWorld(t)
	w.clock = newTestClock()
	pipe, fetched := gate(t)
	w.npx("cold", mcptest.Fake{Gate: pipe})
	r := &life{running: w.start()}
	w.clock.awaitLimit(t, 3*time.Minute)
	w.clock.awaitLimit(t, 10*time.Minute)
	w.clock.advance(70 * time.Second)
	fetched()
	r.rest()
	if v := r.server("cold"); v.State != projections.StateReady {
		t.Fatalf("after a start of 70 s it is %s: %s", v.State, v.Reason)
	}
	if took := r.recorded("cold", events.TypeDiscoverySucceeded)[0].Data.(events.DiscoverySucceeded).ElapsedMS; took != 70_000 {
		t.Errorf("a start of 70 s is recorded as one of %d ms", took)
	}
	if failed := r.recorded("cold", events.TypeDiscoveryFailed); len(failed) > 0 {
		t.Errorf("it failed: %+v", failed)
	}

	// Now the package is there, until the service starts anew.
	asked := make(chan struct{})
	go func() { defer close(asked); r.discover("cold") }()
	w.clock.awaitLimit(t, time.Minute)
	w.clock.advance(time.Minute)
	<-asked
	r.wantTimeout("cold", time.Minute)
	r.stop()
	r = &life{running: w.start()}
	w.clock.awaitLimit(t, 3*time.Minute)
	w.clock.advance(70 * time.Second)
	fetched()
	r.awaitState("cold", projections.StateReady)
}

// wantTimeout checks that the last failure of a server is that it did not answer
// within a limit, to the millisecond.
func (r *running) wantTimeout(name events.ServerName, limit time.Duration) {
	r.w.t.Helper()
	failed := r.recorded(name, events.TypeDiscoveryFailed)
	if len(failed) == 0 {
		r.w.t.Fatalf("%s did not fail", name)
	}
	ev := failed[len(failed)-1].Data.(events.DiscoveryFailed).Evidence
	if ev.ErrorKind != events.KindTimeoutStart || ev.Phase != events.PhaseHandshake || ev.EndedBy == events.EndedByUs ||
		ev.LimitMS != limit.Milliseconds() || ev.ElapsedMS != limit.Milliseconds() {
		r.w.t.Errorf("%s failed by %s in %s, ended by %q, limit %d ms, after %d ms, want a timeout after %s",
			name, ev.ErrorKind, ev.Phase, ev.EndedBy, ev.LimitMS, ev.ElapsedMS, limit)
	}
}

func TestASilentStartFailsWhenItsBudgetEnds(t *testing.T) {
	silent := mcptest.Fake{Fault: mcptest.Silent, At: "initialize"}
	for _, start := range []struct {
		what      string
		configure func(*world)
		limit     time.Duration
	}{
		{"a program", func(w *world) { w.program("silent", silent) }, time.Minute},
		{"a package runner", func(w *world) { w.npx("silent", silent) }, 3 * time.Minute},
	} {
		t.Run(start.what, func(t *testing.T) {
			w := newWorld(t)
			w.clock = newTestClock()
			start.configure(w)
			r := w.start()
			w.clock.awaitLimit(t, start.limit)
			w.clock.advance(start.limit)
			v := r.awaitState("silent", projections.StateFailed)
			if v.Cause.Class != "timeout" || v.Streak == nil || v.Streak.Count != 1 {
				t.Errorf("class %s, streak %+v, want a timeout that counts", v.Cause.Class, v.Streak)
			}
			r.wantTimeout("silent", start.limit)
		})
	}
}

func TestAWebServerStartedByMistakeIsSkippedInTheEnd(t *testing.T) {
	w := newWorld(t)
	w.clock = newTestClock()
	launches := w.npx("web", mcptest.Fake{Fault: mcptest.Chatter})
	r := &life{running: w.start()}
	// It fails in a way that may pass, which makes a skip after ten times. Three more are
	// taken for a download.
	const runs = 3 + 10
	for range runs {
		w.clock.awaitLimit(t, 10*time.Minute)
		for range 12 {
			w.clock.awaitLimit(t, 3*time.Minute) // something was printed
			w.clock.advance(50 * time.Second)
		}
		next, _ := r.rest()
		r.wantTimeout("web", 10*time.Minute)
		if v := r.server("web"); v.State == projections.StateFailed {
			w.clock.advance(next.Sub(w.now()))
		}
	}
	v := r.server("web")
	if v.State != projections.StateSkipped || v.Cause.Class != "timeout" || v.Skip.Failures != 10 {
		t.Errorf("after %d starts it is %s, %+v: %s", runs, v.State, v.Skip, v.Reason)
	}
	for i, l := range v.Chain {
		excused := l.Role == projections.RoleNotCounted && strings.Contains(l.Note, "package runner was still at work")
		if l.Type == events.TypeDiscoveryFailed && excused != (i < 3) {
			t.Errorf("failure %d is %s: %s, want the first three excused", i+1, l.Role, l.Note)
		}
	}
	wantLaunches(t, launches, runs, "until it was skipped")
}
