package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections/rules"
)

func TestPolicyReadsAsASentence(t *testing.T) {
	const minute, hour = 60_000, 3_600_000
	mix := api.SkipPolicy{After: 20, MinSpanMs: 24 * hour, TtlMs: []int64{6 * hour}}
	tests := []struct {
		rule api.ExplainedRule
		want string
	}{
		{api.ExplainedRule{}, "never skips"},
		{api.ExplainedRule{AnyFailures: mix}, "skips when nothing succeeds in 20 runs over at least 24h for 6h"},
		{api.ExplainedRule{AnyFailures: mix, Disposition: rules.DispositionIgnore}, "never counts"},
		{api.ExplainedRule{AnyFailures: mix, Policy: api.SkipPolicy{After: 1, TtlMs: []int64{15 * minute}}}, "skips after 1 run for 15m"},
		{api.ExplainedRule{Policy: api.SkipPolicy{After: 3, TtlMs: []int64{hour, 4 * hour, 24 * hour}}}, "skips after 3 runs for 1h, 4h, then 24h"},
		{api.ExplainedRule{Policy: api.SkipPolicy{After: 3, MinSpanMs: 10 * minute, TtlMs: []int64{90_000, 24*hour + 30*minute}}}, "skips after 3 runs over at least 10m for 1m30s, then 24h30m"},
	}
	for _, tt := range tests {
		if got := policiesInWords(tt.rule); got != tt.want {
			t.Errorf("%+v reads %q, want %q", tt.rule, got, tt.want)
		}
	}
}

func TestAFailureIsToldByTheTextThatDecided(t *testing.T) {
	crash := events.Evidence{Error: "transport closed", StderrTail: "Error: Cannot find module 'pg'\n    at node:internal\n\nNode.js v22.3.0\n"}
	judged := &api.Classification{Class: rules.ClassDependency, Text: "Error: Cannot find module 'pg'"}
	tests := []struct {
		name   string
		data   events.Data
		judged *api.Classification
		want   string
	}{
		{"a program that did not start, whatever it printed last", events.DiscoveryFailed{Evidence: crash}, judged, "dependency: Error: Cannot find module 'pg'"},
		{"a call, with its tool", events.ToolCallFailed{Tool: "query", Evidence: crash}, judged, "dependency: query: Error: Cannot find module 'pg'"},
		{"a failure of which nothing is known", events.DiscoveryFailed{}, &api.Classification{Class: rules.ClassUnknown}, "unknown"},
		{"a skip with an end", events.DiscoverySkipped{Reason: "identical_failures", Until: time.Unix(0, 0)}, nil, "identical failures, until 1970-01-01 00:00:00Z"},
		{"what a host reports who knows little", events.DiscoveryStarted{}, nil, ""},
		{"a success of which little is known", events.DiscoverySucceeded{ToolCount: 3, ElapsedMS: 20}, nil, "3 tools in 20 ms"},
		{"a pin without one", events.DiscoverySkipped{Reason: "pinned"}, nil, "pinned"},
		{"what was refused, by the reason", events.ToolCallRefused{Tool: "query", Detail: "set aside"}, nil, "query: set aside"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw, err := events.EncodeData(tt.data)
			if err != nil {
				t.Fatal(err)
			}
			if got := whatOf(api.Event{Type: tt.data.EventType(), Data: raw, Classification: tt.judged}); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestColumnsAreOneBelowTheOtherWhereTheLastCellIsEmpty(t *testing.T) {
	var b strings.Builder
	table := newTable(&b, "EVENT", "TYPE", "WHAT")
	table.row("#1", "a.type.that.is.long", "one")
	table.row("#1002", "b", "")
	table.row("#3", "c", "three")
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	want := `EVENT  TYPE                 WHAT
#1     a.type.that.is.long  one
#1002  b
#3     c                    three
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestACellThatIsVeryLongWidensNoOtherRow(t *testing.T) {
	var b strings.Builder
	table := newTable(&b, "SERVER", "STATE", "REASON")
	table.row("köln", "ready", "fine")
	table.row(strings.Repeat("x", 41), "failed", "gone")
	table.row(strings.Repeat("y", 40), "ready", "fine")
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	pad := func(s string) string { return s + strings.Repeat(" ", 42-len([]rune(s))) }
	want := pad("SERVER") + "STATE   REASON\n" +
		pad("köln") + "ready   fine\n" +
		strings.Repeat("x", 41) + "  failed  gone\n" +
		pad(strings.Repeat("y", 40)) + "ready   fine\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestALineOfTheStreamThatWasCutIsNotTaken(t *testing.T) {
	got := slices.Collect(wholeLines(strings.NewReader("id: 1\ndata: {\"a\":1}\r\n\ndata: {\"cut\":")))
	if want := []string{"id: 1", `data: {"a":1}`, ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestALineAboutAServerCanBeTypedWhateverItsName(t *testing.T) {
	for name, want := range map[string]string{
		"weather":   "discover weather --data d",
		"my server": "discover 'my server' --data d",
		"-x":        "discover --data d -- -x",
		"--my list": "discover --data d -- '--my list'",
	} {
		if got := lineAbout("discover", name, " --data d"); got != self+" "+want {
			t.Errorf("about %q: %s, want %s %s", name, got, self, want)
		}
	}
}

func TestWhatAPersonIsToldToTypeCanBeTypedAsItStands(t *testing.T) {
	for given, want := range map[string]string{
		"weather":            "weather",
		"/srv/mcp/data.d":    "/srv/mcp/data.d",
		"wetter-für-köln":    "wetter-für-köln",
		"my server":          "'my server'",
		"it's":               `'it'\''s'`,
		"$HOME":              "'$HOME'",
		"http://[::1]:8132/": "'http://[::1]:8132/'",
		"":                   "''",
	} {
		if got := shellWord(given); got != want {
			t.Errorf("%q is written %s, want %s", given, got, want)
		}
		if got := shell(t, t.TempDir(), "printf %s "+shellWord(given)); got != given {
			t.Errorf("the shell reads %q as %q", given, got)
		}
	}
}
