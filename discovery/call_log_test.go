package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// fullDisk is a log that cannot be written while it refuses a type of event.
type fullDisk struct {
	events.Log
	mu      sync.Mutex
	refuses events.Type
}

func (l *fullDisk) refuse(t events.Type) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses = t
}

// Append implements events.Log.
func (l *fullDisk) Append(ctx context.Context, batch []events.Event) (events.Receipt, error) {
	l.mu.Lock()
	refuses := l.refuses
	l.mu.Unlock()
	for _, e := range batch {
		if e.Type == refuses || refuses == "*" {
			return events.Receipt{}, fmt.Errorf("disk full: %w", events.ErrUnavailable)
		}
	}
	return l.Log.Append(ctx, batch)
}

func TestWithoutALogNothingIsSent(t *testing.T) {
	w := newWorld(t)
	remote := newBadServer(t, mcptest.HTTP{}, "tools/call", says(good))
	remote.armed.Store(true)
	w.entries["remote"] = map[string]any{"url": remote.url}
	disk := &fullDisk{}
	w.through = func(log events.Log) events.Log { disk.Log = log; return disk }
	r := w.start()
	r.awaitState("remote", projections.StateReady)

	disk.refuse(events.TypeToolCallStarted)
	out, err := r.tryCall("remote", victim, `{}`, 0)
	if !errors.Is(err, events.ErrUnavailable) || errors.Is(err, discovery.ErrOutcomeUnrecorded) || out.Dispatched || remote.struck.Load() != 0 {
		t.Errorf("start refused: %v, dispatched %v, sent %d times", err, out.Dispatched, remote.struck.Load())
	}
	disk.refuse("")
	r.wantCall("remote", victim)
}

func TestACallWhoseOutcomeCannotBeRecordedIsClosedLater(t *testing.T) {
	w := newWorld(t)
	remote := newBadServer(t, mcptest.HTTP{}, "tools/call", says(good))
	remote.armed.Store(true)
	w.entries["remote"] = map[string]any{"url": remote.url}
	disk := &fullDisk{}
	w.through = func(log events.Log) events.Log { disk.Log = log; return disk }
	r := w.start()
	r.awaitState("remote", projections.StateReady)

	disk.refuse(events.TypeToolCallSucceeded)
	out, err := r.tryCall("remote", victim, `{}`, 0)
	if !errors.Is(err, discovery.ErrOutcomeUnrecorded) || errors.Is(err, events.ErrUnavailable) || !out.Dispatched || out.Result != nil || out.CallID == "" {
		t.Errorf("outcome refused: %v, %+v", err, out)
	}
	disk.refuse("")
	r.await("remote", "the call closed", func(projections.Server) bool {
		return len(r.recorded("remote", events.TypeToolCallAbandoned)) == 1
	})
	if got := r.recorded("remote", events.TypeToolCallAbandoned)[0]; got.CallID != out.CallID {
		t.Errorf("closed call %s, want %s", got.CallID, out.CallID)
	}
	if remote.struck.Load() != 1 {
		t.Errorf("sent %d times", remote.struck.Load())
	}
}

func TestACallHasOneOutcomeHoweverSlowTheLogIs(t *testing.T) {
	for story, late := range map[string]events.Type{
		"its start was stored late":   events.TypeToolCallStarted,
		"its outcome was stored late": events.TypeToolCallSucceeded,
	} {
		t.Run(story, func(t *testing.T) {
			w := newWorld(t)
			remote := newBadServer(t, mcptest.HTTP{}, "tools/call", says(good))
			remote.armed.Store(true)
			w.entries["remote"] = map[string]any{"url": remote.url}
			settled := make(chan events.Event, 1)
			w.through = func(log events.Log) events.Log { return &lateDisk{Log: log, late: late, then: settled} }
			r := w.start()
			r.awaitState("remote", projections.StateReady)

			if out, err := r.tryCall("remote", victim, `{}`, 0); err == nil {
				t.Fatalf("an event that was stored late gave %s", told(out))
			}
			select {
			case <-settled:
			case <-time.After(patience):
				t.Fatal("the call was not settled")
			}
			ends := r.recorded("remote", events.TypeToolCallSucceeded, events.TypeToolCallFailed, events.TypeToolCallAbandoned)
			if len(ends) != 1 {
				t.Errorf("the call has %d outcomes: %v", len(ends), ends)
			}
		})
	}
}

// envCrash holds the folder of a service that is killed in the midst of its calls,
// and the address of the server it calls.
const envCrash = "DISCOVERY_CRASH"

// TestCallUntilKilled is that service. It is run by the test below alone.
func TestCallUntilKilled(t *testing.T) {
	dir, url, found := strings.Cut(os.Getenv(envCrash), "|")
	if !found {
		t.Skip("is started by TestAfterAKillEveryCallIsAccountedFor")
	}
	w := newWorld(t)
	w.data, w.file = filepath.Join(dir, "data"), filepath.Join(dir, "mcp.json")
	w.entries["remote"] = map[string]any{"url": url, "mcpledger": map[string]any{"record_calls": true}}
	r := w.start()
	r.awaitState("remote", projections.StateReady)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		// Nothing is looked at here: the log is, afterwards.
		go func() { _, _ = r.tryCall("remote", victim, fmt.Sprintf(`{"n":%d}`, n), 0) }()
		<-tick.C
	}
}

func TestAfterAKillEveryCallIsAccountedFor(t *testing.T) {
	var mu sync.Mutex
	received := map[string]int{}
	enough := make(chan struct{})
	remote := newBadServer(t, mcptest.HTTP{}, "tools/call", func(w http.ResponseWriter, r *http.Request, req rpcRequest) {
		body, _ := io.ReadAll(r.Body)
		_, arguments, _ := strings.Cut(string(body), `"arguments":`)
		arguments, _, _ = strings.Cut(arguments, "}")
		mu.Lock()
		received[arguments+"}"]++
		n := len(received)
		mu.Unlock()
		if n == 100 {
			close(enough)
		}
		if n%8 == 0 {
			hangs(w, r, req)
			return
		}
		says(good)(w, r, req)
	})
	remote.armed.Store(true)
	w := newWorld(t)
	service := exec.Command(os.Args[0], "-test.run=^TestCallUntilKilled$")
	// What it makes beside that goes with this test.
	service.Env = append(os.Environ(), envCrash+"="+filepath.Dir(w.file)+"|"+remote.url, "TMPDIR="+t.TempDir())
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-enough:
	case <-time.After(patience):
		t.Error("the service made too few calls")
	}
	_ = service.Process.Kill()
	_ = service.Wait()

	mu.Lock()
	before := len(received)
	mu.Unlock()
	w.entries["remote"] = map[string]any{"url": remote.url}
	r := w.start()
	started, ended := map[string]string{}, map[string]int{}
	abandoned := 0
	for _, e := range r.recorded("remote", events.TypeToolCallStarted, events.TypeToolCallSucceeded, events.TypeToolCallFailed, events.TypeToolCallAbandoned) {
		switch d := e.Data.(type) {
		case events.ToolCallStarted:
			started[d.Arguments] = e.CallID
			continue
		case events.ToolCallAbandoned:
			abandoned++
		}
		ended[e.CallID]++
	}
	mu.Lock()
	defer mu.Unlock()
	for arguments, times := range received {
		if times != 1 {
			t.Errorf("%s was sent %d times", arguments, times)
		}
		if started[arguments] == "" {
			t.Errorf("%s was sent and has no start in the log", arguments)
		}
	}
	for arguments, id := range started {
		if ended[id] != 1 {
			t.Errorf("%s has %d outcomes", arguments, ended[id])
		}
	}
	if abandoned == 0 || len(received) != before {
		t.Errorf("%d calls abandoned, %d sent after the restart", abandoned, len(received)-before)
	}
}
