package config_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

const three = `{"mcpServers": {
	"a": {"command": "x", "env": {"T": "${T:-none}"}, "description": "<a> & b", "alwaysAllow": []},
	"b": {"url": "https://h/mcp", "mcpledger": {"tools": {"deny": ["d"]}}},
	"c": {"command": "x", "env": {"K": "${MISSING}"}}}}`

// recorded is what folds know of a config after its events went through a log.
func recorded(t *testing.T, batch []events.Event) map[events.ServerName]config.Applied {
	t.Helper()
	all := map[events.ServerName]config.Applied{}
	for _, e := range batch {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back events.Event
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		switch d := back.Data.(type) {
		case events.ServerConfigured:
			all[back.Subject] = config.Applied{Key: back.ConfigKey, Configured: d}
		case events.ServerRemoved:
			delete(all, back.Subject)
		}
	}
	return all
}

// applied is what folds know of a config whose events were never outside this process.
func applied(c *config.Config) map[events.ServerName]config.Applied {
	all := map[events.ServerName]config.Applied{}
	for _, s := range c.Servers {
		all[s.Name] = s.Applied()
	}
	return all
}

// told is what a batch of events says, in order.
type told struct {
	Type    events.Type
	Subject events.ServerName
	Change  events.Change
}

func tell(batch []events.Event) []told {
	var all []told
	for _, e := range batch {
		line := told{Type: e.Type, Subject: e.Subject}
		if d, ok := e.Data.(events.ServerConfigured); ok {
			line.Change = d.Change
		}
		all = append(all, line)
	}
	return all
}

func TestAFirstConfigIsRecordedWhole(t *testing.T) {
	c := load(t, environ(), three)
	batch := config.LoadedEvents(c, config.Diff(nil, c))
	want := []told{
		{events.TypeConfigLoaded, "", ""},
		{events.TypeServerConfigured, "a", events.ChangeAdded},
		{events.TypeServerConfigured, "b", events.ChangeAdded},
		{events.TypeServerConfigured, "c", events.ChangeAdded},
	}
	if diff := cmp.Diff(want, tell(batch)); diff != "" {
		t.Error(diff)
	}
	for _, e := range batch[1:] {
		if e.ConfigKey != c.Server(e.Subject).Key || e.DataVersion != 1 {
			t.Errorf("%s has key %q and version %d", e.Subject, e.ConfigKey, e.DataVersion)
		}
	}
	loaded := batch[0].Data.(events.ConfigLoaded)
	if loaded.Servers != 3 || !cmp.Equal(loaded.Files, c.Files) {
		t.Errorf("got %+v", loaded)
	}
	if p := batch[3].Data.(events.ServerConfigured).Problem; p == nil || p.Code != events.ProblemVariableUnset {
		t.Errorf("the problem of c is recorded as %+v", p)
	}
}

func TestFaultsAreRecordedWithEveryLoad(t *testing.T) {
	c := load(t, environ(), `{"mcpServers": {"": {"command": "true"}, "a": {"command": 7}}}`)
	for what, d := range map[string]config.Difference{
		"first load": config.Diff(nil, c),
		"unchanged":  config.Diff(applied(c), c),
	} {
		loaded := config.LoadedEvents(c, d)[0].Data.(events.ConfigLoaded)
		if len(loaded.Faults) != 2 || loaded.Faults[0].Server != "" || loaded.Faults[1].Server != "a" || loaded.Faults[1].Column == 0 {
			t.Errorf("%s: got the faults %+v, want that of the nameless entry and that of a", what, loaded.Faults)
		}
	}
}

func TestTheSameConfigAfterARestartChangesNothing(t *testing.T) {
	before := load(t, environ(), three)
	old := recorded(t, config.LoadedEvents(before, config.Diff(nil, before)))
	again, err := config.Load(config.Options{Files: before.Files, Key: testKey, LookupEnv: environ()})
	if err != nil {
		t.Fatal(err)
	}
	for what, old := range map[string]map[events.ServerName]config.Applied{"log": old, "memory": applied(before)} {
		d := config.Diff(old, again)
		if len(d.Changed)+len(d.Removed) > 0 || !cmp.Equal(d.Unchanged, []events.ServerName{"a", "b", "c"}) {
			t.Errorf("against the %s: %+v", what, d)
		}
		if got := tell(config.LoadedEvents(again, d)); len(got) != 1 || got[0].Type != events.TypeConfigLoaded {
			t.Errorf("against the %s these events: %+v", what, got)
		}
	}
}

func TestOnlyWhatChangedIsTold(t *testing.T) {
	dir := t.TempDir()
	reload := func(content string, env ...string) *config.Config {
		path := write(t, dir+"/mcp.json", content)
		c, err := config.Load(config.Options{Files: []string{path}, Key: testKey, LookupEnv: environ(env...)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, tt := range []struct {
		name, a, b string
		env        []string // for b
		want       events.Change
	}{
		{"another argument is another connection", `"command": "x"`, `"command": "x", "args": ["a"]`, nil, events.ChangeKey},
		{"an argument and a description too", `"command": "x"`, `"command": "x", "args": ["a"], "description": "d"`, nil, events.ChangeKey},
		{"another value", `"command": "x", "args": ["${V:-a}"]`, `"command": "x", "args": ["${V:-a}"]`, []string{"V", "b"}, events.ChangeValues},
		{"a description", `"command": "x"`, `"command": "x", "description": "d"`, nil, events.ChangeSettings},
		{"being disabled", `"command": "x"`, `"command": "x", "disabled": true`, nil, events.ChangeSettings},
		{"a policy", `"command": "x"`, `"command": "x", "mcpledger": {"skip": {"never": true}}`, nil, events.ChangeSettings},
		{"a field of another client", `"command": "x"`, `"command": "x", "alwaysAllow": ["a"]`, nil, events.ChangeSettings},
		{"the order of fields", `"command": "x", "disabled": true`, `"disabled": true, "command": "x"`, nil, ""},
		{"a comment", `"command": "x"`, `/* now */ "command": "x"`, nil, ""},
	} {
		old := applied(reload(entry(tt.a)))
		d := config.Diff(old, reload(entry(tt.b), tt.env...))
		switch {
		case tt.want == "" && (len(d.Changed) > 0 || len(d.Unchanged) != 1):
			t.Errorf("%s: got %+v", tt.name, d)
		case tt.want != "" && (len(d.Changed) != 1 || d.Changed[0].Change != tt.want || d.Changed[0].Server.Name != "s"):
			t.Errorf("%s: got %+v, want %s", tt.name, d, tt.want)
		}
	}
}

func TestARemovedServerIsToldWithTheKeyItHad(t *testing.T) {
	before := load(t, environ(), three)
	after := load(t, environ(), `{}`)
	d := config.Diff(applied(before), after)
	want := []events.Event{
		{Type: events.TypeServerRemoved, Subject: "a", ConfigKey: before.Server("a").Key, DataVersion: 1, Data: events.ServerRemoved{}},
		{Type: events.TypeServerRemoved, Subject: "b", ConfigKey: before.Server("b").Key, DataVersion: 1, Data: events.ServerRemoved{}},
		{Type: events.TypeServerRemoved, Subject: "c", ConfigKey: before.Server("c").Key, DataVersion: 1, Data: events.ServerRemoved{}},
	}
	if diff := cmp.Diff(want, config.LoadedEvents(after, d)[1:], cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestARejectedConfigIsToldByItsProblems(t *testing.T) {
	_, err := tryLoad(t, environ(), `{`, `[]`)
	batch := config.RejectedEvents(err)
	if len(batch) != 2 {
		t.Fatalf("got %+v", batch)
	}
	var bad *config.ProblemError
	if !errors.As(err, &bad) {
		t.Fatal(err)
	}
	for i, e := range batch {
		if d, ok := e.Data.(events.ConfigRejected); !ok || e.Type != events.TypeConfigRejected || d.ConfigProblem != bad.Problems[i] {
			t.Errorf("event %d is %+v", i, e)
		}
	}
	other := config.RejectedEvents(fs.ErrPermission)
	if d, ok := other[0].Data.(events.ConfigRejected); !ok || d.Detail != fs.ErrPermission.Error() {
		t.Errorf("another error gave %+v", other)
	}
}
