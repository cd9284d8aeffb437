package rules_test

import (
	"strings"
	"testing"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// spelling has a rule for words, and a weak one for all else.
const spelling = `
  - {id: words, match: {text: '^(?:test )?call limit (?P<what>exceeded)(?:$| call)'}, unless: {text: 'no matter'}, class: rate_limit, disposition: transient, hint: 'It is {what|too much}.'}
  - {id: weak, match: {any: '\S'}, class: tool_error, disposition: deterministic, weak: true}
`

func TestACodeIsReadAsWords(t *testing.T) {
	s := mustParse(t, withRules(spelling))
	for _, tc := range []struct{ name, text, want string }{
		{"in capitals", "CALL_LIMIT_EXCEEDED", "words"},
		{"in small letters", "call_limit_exceeded: wait", "words"},
		{"with humps", "callLimitExceeded", "words"},
		{"parts joined by a dot", "Call.LimitExceeded", "words"},
		{"behind what announces it", "Error: CallLimitExceeded.", "words"},
		{"behind a colon of another width", "失败：CALL_LIMIT_EXCEEDED (code 7)", "words"},
		{"in brackets", "The request failed (CALL_LIMIT_EXCEEDED)", "words"},
		{"between tags", "The request failed <reply><code>CALL_LIMIT_EXCEEDED</code></reply>", "words"},
		{"in a body", `{"error":{"message":"The request failed","code":"callLimitExceeded"}}`, "words"},
		{"after another one", "REQUEST_FAILED: CALL_LIMIT_EXCEEDED", "words"},
		{"where the words say no more than that it ended", "SERVER_TIMED_OUT (CALL_LIMIT_EXCEEDED)", "words"},
		{"not in a sentence", "the value CALL_LIMIT_EXCEEDED is unknown", "weak"},
		{"not as the name of something", "Unknown tool: call_limit_exceeded", "weak"},
		{"not as one of the values that were expected", "expected 'OK' | 'CALL_LIMIT_EXCEEDED'", "weak"},
		{"not as a part of a longer one", "CALL_LIMIT_EXCEEDED_TWICE", "weak"},
		{"not against what is said besides", "CALL_LIMIT_EXCEEDED: no matter", "weak"},
		{"not as the name of a test", "a test failed (test_call_limit_exceeded)", "weak"},
		{"not the type of an exception", "CallLimitExceededException: no", "weak"},
		{"not when it is longer than codes are", strings.Repeat("call_limit_exceeded_", 12) + "twice", "weak"},
	} {
		if got := s.ClassifyUncached(events.Evidence{Error: tc.text}).Rule; got != tc.want {
			t.Errorf("%s: got rule %s of %q, want %s", tc.name, got, tc.text, tc.want)
		}
		if got := s.ClassifySlowly(events.Evidence{Error: tc.text}).Rule; got != tc.want {
			t.Errorf("%s: without the filter got rule %s of %q, want %s", tc.name, got, tc.text, tc.want)
		}
	}
}

func TestAStatusInABodyIsRead(t *testing.T) {
	set := rules.Default()
	for body, want := range map[string]rules.Class{
		`{"code":503,"msg":"fail"}`:                           rules.ClassServerError,
		`{"error":{"statusCode": "429","message":"fail"}}`:    rules.ClassRateLimit,
		`API answered {'status': 401, 'title': 'Problem'}`:    rules.ClassAuth,
		`You can't: {"status": 401, "title": "Problem"}`:      rules.ClassAuth,
		`{"status":404,"title":"Problem"}`:                    rules.ClassToolError,
		`{"count":503,"title":"Problem"}`:                     rules.ClassToolError,
		`{"code":50300,"title":"Problem"}`:                    rules.ClassToolError,
		`{"code":503,"message":"Deal not found"}`:             rules.ClassServerError,
		`{"status":"error","category":"INVALID_CREDENTIALS"}`: rules.ClassAuth,
		`{"status":"error","category":"CRM"}`:                 rules.ClassToolError,
		`{"code":503`:                                         rules.ClassServerError,
		`{"code":`:                                            rules.ClassUnknown,
		`{"code`:                                              rules.ClassToolError,
	} {
		if v := set.Classify(events.Evidence{Phase: events.PhaseCallTool, Error: body}); v.Class != want {
			t.Errorf("%s: got %s by %s, want %s", body, v.Class, v.Rule, want)
		}
	}
}

// What a program writes is full of names that are no codes of errors.
func TestStandardErrorHasACodeWhereItAnnouncesAnError(t *testing.T) {
	s := mustParse(t, withRules(spelling))
	for text, want := range map[string]string{
		"Starting\nError: CALL_LIMIT_EXCEEDED":             "words",
		"CrmError: callLimitExceeded\n    at f (a.js:1)":   "words",
		"Error: no room {\n  code: 'callLimitExceeded'\n}": "words",
		"limit: CALL_LIMIT_EXCEEDED":                       "weak",
		"Error: no room\nCALL_LIMIT_EXCEEDED: 0":           "weak",
		"warning: CALL_LIMIT_EXCEEDED":                     "last",
	} {
		if got := s.Classify(events.Evidence{StderrTail: text}).Rule; got != want {
			t.Errorf("%q: got rule %s, want %s", text, got, want)
		}
	}
}

func TestACodeIsShownAsItWasWritten(t *testing.T) {
	v := mustParse(t, withRules(spelling)).Classify(events.Evidence{Error: "callLimitExceeded"})
	if v.Text != "callLimitExceeded" || v.Hint != "It is too much." {
		t.Errorf("got text %q and hint %q, want the code itself and a hint without its words", v.Text, v.Hint)
	}
}

// The words of a code are below every cause that the text itself tells.
func TestACodeNeverOutweighsACauseInTheText(t *testing.T) {
	e := events.Evidence{Phase: events.PhaseCallTool, Error: "sessionTokenExpired: connect ECONNREFUSED 10.0.0.5:5432"}
	if v := rules.Default().Classify(e); v.Class != rules.ClassNetwork {
		t.Errorf("got %s by %s, want network", v.Class, v.Rule)
	}
}
