package rules_test

import (
	"strings"
	"testing"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// The exit of a process, its exit code, the broken pipe and the end of its output are
// seen in any order. One failure is one signature all the same.
func TestARaceDoesNotChangeTheSignature(t *testing.T) {
	set := rules.Default()
	views := []events.Evidence{
		{ErrorKind: events.KindExit, ExitCode: ptr(3), Error: "exit status 3"},
		{ErrorKind: events.KindEOF, ExitCode: ptr(3), Error: "EOF"},
		{ErrorKind: events.KindEOF, ExitCode: ptr(3), Error: "transport closed"},
		{ExitCode: ptr(3), Error: "write |1: broken pipe"},
		{ErrorKind: events.KindReset, ExitCode: ptr(3), Error: `calling "initialize": EOF`},
		{ExitCode: ptr(3), Error: "MCP error -32000: Connection closed", JSONRPCCode: ptr(-32000), JSONRPCMessage: "Connection closed"},
	}
	for _, stderr := range []string{"", "Error: WIKI_TOKEN is required\n", "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nImportError: no x\n"} {
		var first rules.Verdict
		for i, e := range views {
			e.Transport, e.Phase, e.StderrTail = events.TransportStdio, events.PhaseHandshake, stderr
			v := set.Classify(e)
			if i == 0 {
				first = v
			}
			if v.Signature != first.Signature {
				t.Errorf("stderr %q: %q gives another signature than %q: by %s and %s", stderr, e.Error, views[0].Error, v.Rule, first.Rule)
			}
		}
		other := views[0]
		other.Transport, other.Phase, other.StderrTail, other.ExitCode = events.TransportStdio, events.PhaseHandshake, stderr, ptr(4)
		if same := set.Classify(other).Signature == first.Signature; same != (stderr != "") {
			t.Errorf("stderr %q: another exit code has the same signature: %v", stderr, same)
		}
	}
	told := views[0]
	told.Transport, told.StderrTail = events.TransportStdio, "Error: WIKI_TOKEN is required\n"
	untold := told
	untold.ExitCode, untold.ErrorKind, untold.Error = nil, events.KindEOF, "unexpected EOF"
	if set.Classify(told).Signature != set.Classify(untold).Signature {
		t.Error("a cause on stderr has another signature when the exit was not seen")
	}
}

// What is signed of a text is bounded, whether it tells a cause or is the last thing said.
func TestASignatureIsOfTheBeginningOfALongText(t *testing.T) {
	set := rules.Default()
	long := strings.Repeat("so and on ", 120)
	for _, said := range []string{"Error: no room, " + long, "INFO " + long} {
		e := func(end string) events.Evidence { return events.Evidence{StderrTail: said + end, ExitCode: ptr(1)} }
		if set.Classify(e("here")).Signature != set.Classify(e("there")).Signature {
			t.Errorf("%.20s...: what stands behind the first KiB makes another signature", said)
		}
	}
}
