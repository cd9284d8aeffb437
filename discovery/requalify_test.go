package discovery_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

const (
	brokenScript = "echo \"ModuleNotFoundError: No module named 'fitz'\" >&2; exit 1\n"
	fixedScript  = "exec \"$FAKE\"\n"
)

// script configures a server that is a shell script, run by itself or by sh, and
// returns the file.
func (w *world) script(name string, byItself bool, text string) (file string) {
	w.t.Helper()
	fake := mcptest.Fake{}.Command()
	env := map[string]string{"FAKE": fake.Path}
	for name, value := range fake.Env {
		env[name] = value
	}
	file = filepath.Join(w.t.TempDir(), name+".sh")
	w.entries[name] = map[string]any{"command": file, "env": env}
	if !byItself {
		w.entries[name] = map[string]any{"command": "/bin/sh", "args": []string{file}, "env": env}
	}
	w.write(file, text)
	return file
}

// write writes a script, as an installation does.
func (w *world) write(file, text string) {
	w.t.Helper()
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

func TestAProgramThatWasPutRightIsTriedWithinFiveMinutes(t *testing.T) {
	touch := func(w *world, file string) {
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(file, later, later); err != nil {
			w.t.Fatal(err)
		}
	}
	fix := func(w *world, file string) { w.write(file, fixedScript) }
	replace := func(w *world, file string) {
		w.write(file+".new", fixedScript)
		if err := os.Rename(file+".new", file); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what     string
		byItself bool // the file is the program, not an argument of it
		change   func(w *world, file string)
		want     projections.ServerState
	}{
		{"the program is another", true, replace, projections.StateReady},
		{"a file among its arguments is another", false, fix, projections.StateReady},
		{"the program was built anew and is no better", true, touch, projections.StateSkipped},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := newWorld(t)
			w.clock = newTestClock()
			file := w.script("broken", c.byItself, brokenScript)
			r := &life{running: w.start()}
			r.pass(11 * time.Minute)
			w.clock.awaitWaiting(t, 1, time.Minute) // the schedule is done with looking
			skipped := r.server("broken")
			if skipped.State != projections.StateSkipped || skipped.Skip.Rung != 0 {
				t.Fatalf("it is %s, %+v: %s", skipped.State, skipped.Skip, skipped.Reason)
			}

			c.change(w, file)
			changed, head := w.now(), r.head()
			for range 3 {
				if v := r.server("broken"); v.State != projections.StateSkipped || len(v.Clearings()) == 0 {
					t.Errorf("when read it is %s", v.State)
				}
			}
			if r.head() != head {
				t.Error("a read had something recorded")
			}

			w.clock.advance(5 * time.Minute)
			v := r.await("broken", "the probe", func(v projections.Server) bool {
				return v.Last.Trigger == events.TriggerRequalified && v.State != projections.StateFailed
			})
			if v.State != c.want {
				t.Errorf("after the probe it is %s, want %s: %s", v.State, c.want, v.Reason)
			}
			r.pass(30 * time.Minute)
			noted := r.recorded("broken", events.TypeSkipRequalified)
			if len(noted) != 1 || !noted[0].Time.After(changed) {
				t.Fatalf("noticed by %+v, want it once, after the reads at %s", noted, changed)
			}
			if d := noted[0].Data.(events.SkipRequalified); d.Before.Path != file || d.After.Path != file || d.Before == d.After {
				t.Errorf("what differs is recorded as %+v and %+v", d.Before, d.After)
			}
			if got := len(r.recorded("broken", events.TypeDiscoveryStarted)); got != 3+1 {
				t.Errorf("%d attempts, want three and one probe", got)
			}
			if v := r.server("broken"); c.want == projections.StateSkipped && v.Skip.Rung != 1 {
				t.Errorf("after a probe that failed the skip is on rung %d, want the next", v.Skip.Rung)
			}
		})
	}
}

// head returns the place of the last event in the log.
func (r *running) head() events.Sequence {
	r.w.t.Helper()
	all := r.recorded("")
	return all[len(all)-1].Sequence
}
