package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/events/eventstest"
	"mcpledger/events/sqlite"
)

// impatient skips a server for a day at its first failure.
const impatient = `name: impatient
version: 1
policies:
  deterministic: {after: 1, for: [24h]}
rules:
  - id: everything
    class: unknown
    disposition: deterministic
`

// A rule set that would have kept a server out after it was repaired can be told from
// others by the exit code.
func TestARuleSetThatDelaysARecoveryIsWorse(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	log, err := sqlite.Open(context.Background(), dir, sqlite.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	const key = "k1_aaaaaaaaaaaaaaaa.vvvvvvvvvvvvvvvv"
	for _, outcome := range []events.Data{
		events.DiscoveryFailed{Evidence: events.Evidence{Error: "weatherlib is missing"}},
		events.DiscoveryFailed{Evidence: events.Evidence{Error: "weatherlib is missing"}},
		events.DiscoverySucceeded{ToolCount: 1},
	} {
		started := eventstest.At(now).Started("weather", key, events.TriggerRetry)
		ended := eventstest.At(now.Add(time.Second)).Event("weather", key, outcome)
		ended.RunID, ended.AttemptID = started.RunID, started.AttemptID
		now = now.Add(10 * time.Minute)
		if _, err := log.Append(context.Background(), []events.Event{started, ended}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "impatient.yaml")
	if err := os.WriteFile(file, []byte(impatient), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	code := run([]string{"replay", "--rules", file, "--data", dir}, nil, &stdout, &stderr, none)
	if code != 4 {
		t.Errorf("got exit code %d, want 4\n%s%s", code, stdout.String(), stderr.String())
	}
	for _, told := range []string{"\n  1 more recoveries delayed\n", "\nWorse: "} {
		if !strings.Contains(stdout.String(), told) {
			t.Errorf("nothing says %q:\n%s", told, stdout.String())
		}
	}
}

// A service makes one replay at a time, so whoever interrupts the command leaves none
// behind.
func TestAnInterruptedReplayIsCancelled(t *testing.T) {
	var once sync.Once
	var cancelled atomic.Bool
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /healthz":
		case "POST /api/replays":
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"replay_id":"r1"}`)
		case "GET /api/replays/r1":
			fmt.Fprint(w, `{"replay_id":"r1","status":"running","progress":0.1}`)
			once.Do(func() {
				if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
					t.Error(err)
				}
			})
		case "DELETE /api/replays/r1":
			cancelled.Store(true)
			w.WriteHeader(http.StatusNoContent)
		default:
			t.Errorf("asked for %s %s", r.Method, r.URL.Path)
		}
	}))
	defer service.Close()
	var stdout, stderr bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	code := run([]string{"replay", "--rules", "call-scoped", "--url", service.URL}, nil, &stdout, &stderr, none)
	if code != 1 || !cancelled.Load() || stderr.String() != "mcpledger: the replay was interrupted\n" {
		t.Errorf("exit code %d, cancelled: %v, says %q", code, cancelled.Load(), stderr.String())
	}
}

func TestDifferencesAreToldAsMoreOrFewer(t *testing.T) {
	for _, c := range []struct {
		n, ms int64
		want  string
	}{
		{0, 0, "as many attempts avoided"},
		{2, 270_000, "2 more attempts avoided (4m30s)"},
		{-1, -47, "1 fewer attempts avoided (47 ms)"},
		{0, 90_000, "as many attempts avoided (1m30s)"},
	} {
		if got := beside("attempts avoided", c.n, c.ms); got != c.want {
			t.Errorf("beside %d, %d ms: got %q, want %q", c.n, c.ms, got, c.want)
		}
	}
}
