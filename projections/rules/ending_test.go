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
	} {
		if got := rules.Default().Classify(ev).Text; got != want {
			t.Errorf("%+v says %q, want %q", ev, got, want)
		}
	}
}
