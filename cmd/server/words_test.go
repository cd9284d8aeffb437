package main

import (
	"slices"
	"strings"
	"testing"

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

func TestFailureIsToldByItsMostTellingText(t *testing.T) {
	tests := []struct {
		name     string
		evidence events.Evidence
		want     string
	}{
		{"a program's last line", events.Evidence{Error: "transport closed", StderrTail: "Traceback:\nKeyError: 'X'\n"}, "KeyError: 'X'"},
		{"a JSON-RPC error before the status", events.Evidence{Error: "e", HTTPStatus: 400, JSONRPCMessage: "bad params"}, "bad params"},
		{"the status before the client's text", events.Evidence{Error: "unexpected", HTTPStatus: 503}, "HTTP status 503"},
		{"the client's text where nothing else came", events.Evidence{Error: "connection refused"}, "connection refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := failureInWords(tt.evidence); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestALineOfTheStreamThatWasCutIsNotTaken(t *testing.T) {
	got := slices.Collect(wholeLines(strings.NewReader("id: 1\ndata: {\"a\":1}\r\n\ndata: {\"cut\":")))
	if want := []string{"id: 1", `data: {"a":1}`, ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
