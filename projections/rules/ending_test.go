package rules_test

import (
	"testing"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

func TestAVerdictAlwaysSaysSomething(t *testing.T) {
	code := -32000
	exit := 3
	for want, ev := range map[string]events.Evidence{
		"HTTP status 401":            {HTTPStatus: 401, WWWAuthenticate: "Bearer"},
		"HTTP status 404: nf":        {HTTPStatus: 404, BodyExcerpt: "nf"},
		"JSON-RPC error -32000":      {JSONRPCCode: &code},
		"process exited with code 3": {ExitCode: &exit},
		"process ended by SIGKILL":   {Signal: "SIGKILL"},
		"timeout start":              {ErrorKind: events.KindTimeoutStart},
		"process exited with code 3, after it said: hello there": {ExitCode: &exit, StdoutJunk: &events.Junk{Count: 1, Excerpt: "hello there"}},
		"process ended by SIGTERM, after it said: hello there":   {Signal: "SIGTERM", StdoutJunk: &events.Junk{Count: 1, Excerpt: "hello there"}},
		"Error: no such city": {ExitCode: &exit, StdoutJunk: &events.Junk{Count: 1, Excerpt: "Error: no such city"}},
		"hello there":         {ExitCode: &exit, StderrTail: "hello there"},
	} {
		if got := rules.Default().Classify(ev).Text; got != want {
			t.Errorf("%+v says %q, want %q", ev, got, want)
		}
	}
}
