package rules_test

import (
	"os"
	"strings"
	"testing"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// testdata/healthy.txt has lines that programs write while nothing is wrong, many of them
// in the words of causes. Beside them the cause of a failure decides.
func TestHealthyWordsAreNoCause(t *testing.T) {
	text, err := os.ReadFile("testdata/healthy.txt")
	if err != nil {
		t.Fatal(err)
	}
	causes := map[string]string{ // by rule
		"python-module-missing":   python,
		"secret-variable-missing": "Error: WIKI_TOKEN is required\n",
		"connection-refused":      "Error: connect ECONNREFUSED 10.0.0.5:5432\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16)\n",
		"exception-at-start":      "Traceback (most recent call last):\n  File \"main.py\", line 3, in <module>\n    main()\nRuntimeError: the room is odd\n",
	}
	for line := range strings.Lines(string(text)) {
		for rule, cause := range causes {
			for _, stderr := range []string{line + cause, cause + line} {
				e := events.Evidence{Phase: events.PhaseHandshake, Transport: events.TransportStdio, ExitCode: ptr(1), StderrTail: stderr}
				if got := rules.Default().Classify(e).Rule; got != rule {
					t.Errorf("got rule %s of %q, want %s", got, stderr, rule)
				}
			}
		}
	}
}
