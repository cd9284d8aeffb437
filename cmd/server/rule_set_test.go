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

// A log whose rules another version wrote can be read; only who would put them in force
// has to name others.
func TestALogWithRulesOfAnotherVersionCanBeRead(t *testing.T) {
	dir := t.TempDir()
	log, err := sqlite.Open(context.Background(), dir, sqlite.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	at := eventstest.At(time.Now())
	if _, err := log.Append(context.Background(), []events.Event{
		at.Event("", "", events.ServiceStarted{}),
		at.Event("weather", "k1_a.b", events.ServerConfigured{Change: events.ChangeAdded, Transport: events.TransportStdio}),
		at.Event("", "", events.RulesActivated{
			Set: "newer", Hash: "ab", Text: "name: newer\nversion: 9\nrules: [{id: all, class: unknown, disposition: ignore}]\n",
		}),
	}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	const unread = `a rule set that this version does not read: newer:2:10: version "9" of the rule language is not known, only 1 is`
	none := func(string) (string, bool) { return "", false }
	for _, command := range []string{"servers", "why weather", "events", "rules list", "replay --rules default"} {
		var stdout, stderr bytes.Buffer
		args := append(strings.Fields(command), "--data", dir)
		if code := run(args, nil, &stdout, &stderr, none); code != 0 || stdout.Len() == 0 {
			t.Errorf("%s: exit code %d\n%s%s", command, code, stdout.String(), stderr.String())
		}
		if told := stderr.String(); !strings.Contains(told, unread+"; the default set judges instead\n") {
			t.Errorf("%s does not say what judges:\n%s", command, told)
		}
	}
	config := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(config, []byte(`{"mcpServers":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	code := run([]string{"serve", "--data", dir, "--config", config, "--listen", "127.0.0.1:0"}, nil, &bytes.Buffer{}, &stderr, none)
	if code != 1 || !strings.Contains(stderr.String(), unread+"; name another one with --rules") {
		t.Errorf("the service starts with exit code %d:\n%s", code, stderr.String())
	}
}
