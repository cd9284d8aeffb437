package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery/clock"
	"mcpledger/discovery/config"
	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

func TestMain(m *testing.M) {
	if os.Getenv(envPeer) != "" {
		servePeer()
		return
	}
	if file := os.Getenv(envParent); file != "" {
		holdSession(file)
		return
	}
	mcptest.Main(m)
}

// patience is how long a test waits for what must happen, on however slow a machine.
const patience = 2 * time.Minute

// budget is one that a healthy server does not use up.
var budget = upstream.Budget{Total: patience, List: patience}

// secret is masked as «API_KEY» in all evidence.
const secret = "zq8-plover-4417-xyzzy"

// target starts a fake program.
func target(fake mcptest.Fake) upstream.Target {
	command := fake.Command()
	command.Env["API_KEY"] = secret
	return upstream.Target{
		Name:      "weather",
		Transport: events.TransportStdio,
		Command:   command.Path,
		Args:      command.Args,
		Env:       upstream.Environ(os.Environ(), command.Env, false),
		Label:     "fake",
		Budget:    budget,
		Redactor:  config.NewRedactor(config.Secret{Name: "API_KEY", Value: secret}),
		Client:    upstream.ClientInfo{Name: "mcpledger", Version: "test"},
		Now:       time.Now,
	}
}

// remote dials a fake server.
func remote(server *mcptest.Server) upstream.Target {
	return upstream.Target{
		Name:      "weather",
		Transport: events.TransportHTTP,
		URL:       server.URL,
		Budget:    budget,
		Redactor:  config.NewRedactor(config.Secret{Name: "API_KEY", Value: secret}),
		Client:    upstream.ClientInfo{Name: "mcpledger", Version: "test"},
		Now:       time.Now,
	}
}

// open opens a session that is closed at the end of the test.
func open(t *testing.T, target upstream.Target) *upstream.Session {
	t.Helper()
	s, err := upstream.Open(t.Context(), target)
	if err != nil {
		t.Fatalf("open: %v\n%+v", err, evidenceOf(t, err))
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// openFails opens a target that cannot be opened, and returns its evidence.
func openFails(t *testing.T, target upstream.Target) events.Evidence {
	t.Helper()
	s, err := upstream.Open(t.Context(), target)
	if err == nil {
		_ = s.Close(context.Background())
		t.Fatal("open succeeded")
	}
	return evidenceOf(t, err)
}

func evidenceOf(t *testing.T, err error) events.Evidence {
	t.Helper()
	var f *upstream.Failure
	if !errors.As(err, &f) {
		t.Fatalf("error is a %T, want a *Failure: %v", err, err)
	}
	return f.Evidence
}

// wantEvidence compares whole evidence but for the times.
func wantEvidence(t *testing.T, got, want events.Evidence) {
	t.Helper()
	if got.ElapsedMS < 0 || got.ElapsedMS > patience.Milliseconds() {
		t.Errorf("elapsed %d ms", got.ElapsedMS)
	}
	got.ElapsedMS = 0
	if got.StderrLastMS != nil {
		got.StderrLastMS = want.StderrLastMS
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
}

func ptr[T any](v T) *T { return &v }

// checkLeaks fails the test if goroutines of ours, descriptors or child processes
// are left at its end. It must be called first, so that it looks last.
func checkLeaks(t *testing.T) {
	t.Helper()
	before := descriptors(t)
	t.Cleanup(func() {
		var left []string
		if !within(patience, func() bool { left = leaks(t, before); return len(left) == 0 }) {
			t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
		}
	})
}

// eventually waits until what is awaited holds.
func eventually(t *testing.T, awaited string, holds func() bool) {
	t.Helper()
	if !within(patience, holds) {
		t.Fatalf("not within %s: %s", patience, awaited)
	}
}

// within asks again and again, at most for limit.
func within(limit time.Duration, holds func() bool) bool {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for range limit / (20 * time.Millisecond) {
		if holds() {
			return true
		}
		<-ticker.C
	}
	return holds()
}

// once is a clock on which no time passes until something holds, and then all of it: a
// limit by it ends when the server has come as far as the test wants, however long that
// took.
func once(holds func() bool) clock.At {
	return func(_ time.Time, call func()) clock.Timer {
		over := make(chan struct{})
		go func() {
			ticker := time.NewTicker(5 * time.Millisecond)
			defer ticker.Stop()
			for !holds() {
				select {
				case <-ticker.C:
				case <-over:
					return
				}
			}
			call()
		}()
		return timer{sync.OnceFunc(func() { close(over) })}
	}
}

// timer is a clock.Timer that can be stopped.
type timer struct{ stop func() }

func (timer) Reset(time.Time) {}
func (t timer) Stop()         { t.stop() }

// waiting returns arguments for the tool "wait", and what reports whether the server has
// got the call.
func waiting(t *testing.T) (arguments json.RawMessage, got func() bool) {
	t.Helper()
	begun := filepath.Join(t.TempDir(), "begun")
	return fmt.Appendf(nil, `{"begun":%q}`, begun), func() bool { _, err := os.Stat(begun); return err == nil }
}

// launched reports whether a fake program with that Launches file was started.
func launched(file string) func() bool {
	return func() bool { return mcptest.Launches(file) > 0 }
}

func leaks(t *testing.T, descriptorsBefore int) []string {
	t.Helper()
	var left []string
	if now := descriptors(t); now > descriptorsBefore {
		left = append(left, fmt.Sprintf("%d descriptors, %d before", now, descriptorsBefore))
	}
	for _, child := range children(t) {
		left = append(left, "process "+child)
	}
	buf := make([]byte, 1<<20)
	for stack := range bytes.SplitSeq(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
		ours := bytes.Contains(stack, []byte("mcpledger/discovery/upstream.")) || bytes.Contains(stack, []byte("mcp-go/client"))
		if ours && !bytes.Contains(stack, []byte("upstream.runOnOneThread")) {
			left = append(left, string(stack))
		}
	}
	return left
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(entries)
}

// children lists our child processes, zombies too.
func children(t *testing.T) []string {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		ids = append(ids, strings.Fields(string(b))...)
	}
	return ids
}

// awaitDeath waits until no process has that id.
func awaitDeath(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, fmt.Sprintf("process %d ends", pid), func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid)
	})
}

// isZombie reports whether a process has ended and is merely not reaped; an orphan
// is reaped by whoever adopts it.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(stat, []byte(") Z "))
}
