package rules_test

import (
	"testing"

	"mcpledger/events"
)

func TestASettingThatIsShownIsNoCause(t *testing.T) {
	s := mustParse(t, withRules("  - {id: cause, match: {any: '\\S'}, class: config, disposition: deterministic}\n"))
	for text, want := range map[string]string{
		"Request timeout: 30 s":                    "last",
		"request_timeout: 30000ms":                 "last",
		"Rate limit: 100 requests per minute":      "last",
		"Supported versions: 2024-11-05, 1.4":      "last",
		"Errors: 0":                                "last",
		"INFO TLS: off":                            "last",
		"Request timeout: 30 s passed":             "cause",
		"Request timeout: none of 3 hosts answers": "cause",
		"Error 7: off":                             "cause",
		"Rooms: 3":                                 "cause",
		"ERROR Errors: 0":                          "cause",
		"timeout: ":                                "cause",
		"Limit: x":                                 "cause",
	} {
		if got := s.Classify(events.Evidence{StderrTail: text}).Rule; got != want {
			t.Errorf("%q: got rule %s, want %s", text, got, want)
		}
	}
	if got := s.Classify(events.Evidence{Error: "Request timeout: 30 s"}).Rule; got != "cause" {
		t.Errorf("got rule %s for what a client says, want cause", got)
	}
}
