package rules_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

func TestTheDecisiveTextIsTheLineThatSaysWhatFailed(t *testing.T) {
	set := rules.Default()
	for _, tc := range []struct {
		name string
		e    events.Evidence
		want string
	}{
		{"the exception below a traceback, not its frames",
			events.Evidence{StderrTail: "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    main()\nValueError: bad room\n"},
			"ValueError: bad room"},
		{"the last of chained exceptions",
			events.Evidence{StderrTail: "KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    main()\nValueError: bad room\n"},
			"ValueError: bad room"},
		{"the inner exception of a group",
			events.Evidence{StderrTail: "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File \"a.py\", line 3, in f\n    |     g()\n    | OSError: no route\n    +------------------------------------\n"},
			"OSError: no route"},
		{"the error below the place that threw",
			events.Evidence{StderrTail: "/srv/a.js:3\n  throw new Error('no room')\n  ^\n\nError: no room\n    at main (/srv/a.js:3:9)\n\nNode.js v20.1.0\n"},
			"Error: no room"},
		{"the cause inside an error",
			events.Evidence{StderrTail: "TypeError: fetch failed\n    at a (/srv/a.js:3:9) {\n  [cause]: Error: getaddrinfo ENOTFOUND a.test\n      at b (node:dns:1:2)\n}\n"},
			"[cause]: Error: getaddrinfo ENOTFOUND a.test"},
		{"the root cause of a Java exception",
			events.Evidence{StderrTail: "Exception in thread \"main\" java.lang.RuntimeException: cannot start\n\tat A.main(A.java:1)\nCaused by: java.io.IOException: no room\n\tat A.f(A.java:2)\n"},
			"Caused by: java.io.IOException: no room"},
		{"a drawn chain of causes in one piece, wrapped lines joined",
			events.Evidence{StderrTail: "Resolved 3 packages\n  × Failed to build `a==1`\n  ├─▶ The build backend returned an error\n  ╰─▶ Call to `b` failed because\n      of c\n"},
			"Failed to build `a==1` The build backend returned an error Call to `b` failed because of c"},
		{"the panic, not the goroutines",
			events.Evidence{StderrTail: "panic: no room\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/a.go:3 +0x1d\nexit status 2\n"},
			"panic: no room"},
		{"what a Rust thread says below its place",
			events.Evidence{StderrTail: "thread 'main' panicked at src/main.rs:3:5:\nno room\nnote: run with `RUST_BACKTRACE=1`\n"},
			"thread 'main' panicked at src/main.rs:3:5: no room"},
		{"an error before the words that all is over",
			events.Evidence{StderrTail: "Starting\nError: WIKI_TOKEN is required\nServer failed to start\n"},
			"Error: WIKI_TOKEN is required"},
		{"no warning, no banner",
			events.Evidence{Error: "Connection closed", StderrTail: "(node:1) [DEP0040] DeprecationWarning: x is deprecated\n(node:1) Warning: x is old\nWARNING: no cache\nServer running on stdio\n"},
			"Connection closed"},
		{"the words of a JSON body",
			events.Evidence{HTTPStatus: 400, Error: "status 400", BodyExcerpt: `{"error":{"code":"bad_room","message":"No room \"a\""},"trace":"x"}`},
			`bad_room: No room "a"`},
		{"the words of a JSON body that names a number alone where it should say what failed",
			events.Evidence{Phase: events.PhaseCallTool, Error: `{"status":"0","info":"NO_ROOM_LEFT","infocode":"10021"}`},
			"0: NO_ROOM_LEFT: 10021"},
		{"the words of a JSON body that is cut",
			events.Evidence{HTTPStatus: 400, BodyExcerpt: `{"error":{"message":"No room`},
			"No room"},
		{"the words of a page",
			events.Evidence{HTTPStatus: 502, BodyExcerpt: "<html><head><title>502 Bad Gateway</title><style>b{}</style></head><body><!-- x -->\n<h1>502 Bad Gateway</h1><hr>nginx</body></html>"},
			"502 Bad Gateway 502 Bad Gateway nginx"},
		{"a body inside the client's text",
			events.Evidence{Phase: events.PhaseCallTool, Error: `HTTP 400: {"error":"no_room"}`},
			"HTTP 400: no_room"},
		{"what a JSON-RPC error says, before old lines of stderr",
			events.Evidence{JSONRPCCode: ptr(-32000), JSONRPCMessage: "no room", StderrTail: "Error: an old one\n"},
			"no room"},
		{"colours, times and tags are no part of it",
			events.Evidence{StderrTail: "2026-11-02T10:00:00Z [wiki] \x1b[31mERROR\x1b[0m no room\n"},
			"no room"},
		{"progress that was overwritten is lines of its own",
			events.Evidence{StderrTail: "fetching 10 %\rfetching 90 %\rError: no room\r\n"},
			"Error: no room"},
		{"an escape sequence that was cut ends with its line",
			events.Evidence{StderrTail: "\x1b[31\nError: no room\n\x1b]0;title\n\x1b"},
			"Error: no room"},
		{"an escape before a letter of several bytes is no part of it",
			events.Evidence{StderrTail: "\x1bÉchec: no room"},
			"Échec: no room"},
	} {
		if got := set.Classify(tc.e).Text; got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Patterns mean what the regexp package means by them, under the flags i and m,
// however they are taken apart for speed.
func TestPatternsMeanWhatRegexpMeans(t *testing.T) {
	patterns := []string{
		`no room`, `No Room|full`, `(?:no|few) rooms?\b`, `\bROOM\b`, `^room`, `room$`, `(?-i:Room)`, `a (?-i:NO)|room`,
		`[\]|]room`, `[^|]room`, `[]x]room`, `\x52oom`, `\x{52}oom\x41`, `(?i)x|room`, `(?s)no.*room`, `no.*room`, `no\nroom`, `no\s+room`,
		`room[^\n]{0,3}full`, `\Qno|room\E`, `\p{Lu}oom`, `(?P<Name>R)oom`, `\Aroom\z`, `\w+@\d+`, `r(o|0){2}m`, `room|`, `\Broom`, `\x52o+m`, `[[:upper:]]oom`, `(?i-s:r)o+m`,
	}
	texts := []string{
		"", "no room", "NO ROOM", "few rooms left", "the room\nis full", "no\nroom", "no \n room", "room", "bathroom", "Room", "a no room",
		"]room", "|room", "xroom", "roomA", "r00m", "no|room", "A@7", "room:: full", "room ... full", "grand\nroom",
	}
	for _, pattern := range patterns {
		set := mustParse(t, withRules(fmt.Sprintf("  - {id: hit, match: {error: '%s'}, class: config, disposition: deterministic}\n", pattern)))
		re := regexp.MustCompile("(?im)" + pattern)
		for _, text := range texts {
			want := re.MatchString(text)
			if got := set.ClassifyUncached(events.Evidence{Error: text}).Rule == "hit"; got != want {
				t.Errorf("pattern %q on %q: got %v, want %v", pattern, text, got, want)
			}
		}
	}
}

func TestLongEvidenceIsJudgedByItsDecisiveLine(t *testing.T) {
	noise := strings.Repeat("2026-11-02T10:00:00Z INFO poll 17 ok\n", 200)
	v := rules.Default().Classify(events.Evidence{StderrTail: noise + "Error: WIKI_TOKEN is required\n"})
	if v.Class != rules.ClassCredentialsMissing || v.Text != "Error: WIKI_TOKEN is required" {
		t.Errorf("got %s from %q", v.Class, v.Text)
	}
}

// A tool that answers lives, and what it says of its arguments is not what its server wrote
// to standard error before. Vague words leave it to standard error to tell more.
func TestAToolsWordsAboutItsArgumentsStandAlone(t *testing.T) {
	set := rules.Default()
	for _, said := range []string{"No deal named 'Acme'", "Invalid date: 2026-13-40", "### Result\nError: element e41 is not in the page"} {
		for _, stderr := range []string{
			"09:00:00 ERROR crm.sync: connect ECONNREFUSED 10.0.0.9:6379\n",
			"ERROR poller: request to feeds.crm.test timed out\n",
			"Error: CRM_TOKEN is not set\n", python,
		} {
			e := events.Evidence{Phase: events.PhaseCallTool, Transport: events.TransportStdio, Error: said, StderrTail: stderr}
			if got := set.Classify(e); got.Class != rules.ClassToolError {
				t.Errorf("%q above %q: got %s by rule %s, want %s", said, stderr, got.Class, got.Rule, rules.ClassToolError)
			}
			e.ExitCode = ptr(1)
			if got := set.Classify(e); got.Class == rules.ClassToolError {
				t.Errorf("%q above %q of a server that ended: got %s by rule %s", said, stderr, got.Class, got.Rule)
			}
		}
	}
	e := events.Evidence{Phase: events.PhaseCallTool, Transport: events.TransportStdio, Error: "Something went wrong",
		StderrTail: "ERROR crm: connect ECONNREFUSED 10.0.0.9:6379\n"}
	if got := set.Classify(e); got.Class != rules.ClassNetwork {
		t.Errorf("%q above %q: got %s by rule %s, want %s", e.Error, e.StderrTail, got.Class, got.Rule, rules.ClassNetwork)
	}
}

// What a living server wrote before a call began does not say why the call failed, however
// vague the words of the call are. What a server wrote before it ended may.
func TestStandardErrorOfBeforeACallDoesNotExplainIt(t *testing.T) {
	set := rules.Default()
	of := func(ms int64, change func(*events.Evidence)) rules.Verdict {
		e := events.Evidence{
			Phase: events.PhaseCallTool, Transport: events.TransportStdio, ErrorKind: events.KindToolError, ElapsedMS: 200,
			Error: "Something went wrong", StderrTail: "ERROR crm: connect ECONNREFUSED 10.0.0.9:6379\n", StderrLastMS: &ms,
		}
		change(&e)
		return set.Classify(e)
	}
	asItIs := func(*events.Evidence) {}
	silent := of(201, func(e *events.Evidence) { e.StderrTail = "" })
	for ms, want := range map[int64]rules.Class{200: rules.ClassNetwork, 201: silent.Class, 3_600_000: silent.Class} {
		if got := of(ms, asItIs); got.Class != want || (got.Signature == silent.Signature) != (want == silent.Class) {
			t.Errorf("standard error of %d ms before the end of a call of 200 ms: got %s, want %s", ms, got.Class, want)
		}
	}
	for what, change := range map[string]func(*events.Evidence){
		"a server that exited":       func(e *events.Evidence) { e.ErrorKind, e.ExitCode = events.KindExit, ptr(1) },
		"a server that was killed":   func(e *events.Evidence) { e.ErrorKind, e.Signal = events.KindSignal, "SIGSEGV" },
		"a stream that ended":        func(e *events.Evidence) { e.ErrorKind = events.KindEOF },
		"a call of unknown length":   func(e *events.Evidence) { e.ElapsedMS = 0 },
		"an attempt that is no call": func(e *events.Evidence) { e.Phase = events.PhaseListTools },
	} {
		if got := of(3_600_000, change); got.Class != rules.ClassNetwork {
			t.Errorf("%s: got %s by rule %s, want %s", what, got.Class, got.Rule, rules.ClassNetwork)
		}
	}
}
