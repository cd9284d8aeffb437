package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
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
