package rules_test

import (
	"encoding/json"
	"testing"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// python is what a program without one of its modules writes.
const python = "Traceback (most recent call last):\n  File \"main.py\", line 3, in <module>\n    import fitz\n" +
	"ModuleNotFoundError: No module named 'fitz'\n"

// Every key of match holds for what it says and for nothing else.
func TestEveryFieldCanBeMatched(t *testing.T) {
	type ev = events.Evidence
	tested := map[string]bool{}
	for _, tc := range []struct {
		key, value string
		yes, no    []ev
	}{
		{"phase", "spawn", []ev{{Phase: events.PhaseSpawn}}, []ev{{}, {Phase: events.PhaseConnect}}},
		{"phase", "[none, initialize]", []ev{{}, {Phase: events.PhaseHandshake}, {Phase: "initialize"}}, []ev{{Phase: events.PhaseSpawn}}},
		{"transport", "[http, sse]", []ev{{Transport: events.TransportSSE}}, []ev{{}, {Transport: events.TransportStdio}}},
		{"error_kind", "refused", []ev{{ErrorKind: events.KindRefused}}, []ev{{}, {ErrorKind: events.KindReset}}},
		{"ended_by", "us", []ev{{EndedBy: events.EndedByUs}}, []ev{{}, {EndedBy: events.EndedByServer}}},
		{"signal", "[SIGKILL, SIGTERM]", []ev{{Signal: "SIGTERM"}}, []ev{{}, {Signal: "SIGSEGV"}}},
		{"signal", "none", []ev{{}}, []ev{{Signal: "SIGKILL"}}},
		{"exit_code", "126..", []ev{{ExitCode: new(126)}, {ExitCode: new(200)}}, []ev{{}, {ExitCode: new(125)}}},
		{"exit_code", "0", []ev{{ExitCode: new(0)}, {Error: "process exited with code 0"}}, []ev{{}, {ExitCode: new(1)}}},
		{"http_status", "[401, 500..599]", []ev{{HTTPStatus: 401}, {HTTPStatus: 500}, {HTTPStatus: 599}}, []ev{{}, {HTTPStatus: 402}, {HTTPStatus: 600}}},
		{"http_status", "any", []ev{{HTTPStatus: 200}}, []ev{{}}},
		{"http_status", "none", []ev{{}}, []ev{{HTTPStatus: 200}}},
		{"jsonrpc_code", "..-32000", []ev{{JSONRPCCode: new(-32000)}, {JSONRPCCode: new(-32603)}}, []ev{{}, {JSONRPCCode: new(-31999)}, {JSONRPCCode: new(0)}}},
		{"elapsed_ms", "..999", []ev{{ElapsedMS: 999}}, []ev{{}, {ElapsedMS: 1000}}},
		{"limit_ms", "60000", []ev{{LimitMS: 60_000}}, []ev{{}, {LimitMS: 15_000}}},
		{"stderr_bytes", "0", []ev{{}}, []ev{{StderrBytes: 1}}},
		{"stderr_last_ms", "0..100", []ev{{StderrLastMS: new(int64(0))}}, []ev{{}, {StderrLastMS: new(int64(101))}}},
		{"retry_after_ms", "any", []ev{{RetryAfterMS: 1}}, []ev{{}}},
		{"junk_lines", "1..", []ev{{StdoutJunk: &events.Junk{Count: 1}}}, []ev{{}}},
		{"session_sent", "true", []ev{{SessionSent: true}}, []ev{{}}},
		{"dispatched", "false", []ev{{}}, []ev{{Dispatched: true}}},
		{"text", "no module named", []ev{{StderrTail: python}, {Error: "NO MODULE NAMED x"}}, []ev{{}, {StderrTail: "warning: no module named x\n" + "Error: out of memory"}}},
		{"text", "Traceback|main", []ev{{Error: "main failed"}}, []ev{{StderrTail: python}}},
		{"any", "cannot open the display", []ev{{StderrTail: "Error: cannot open the display\n" + python}}, []ev{{}, {StderrTail: python}}},
		{"frame", `main\.py`, []ev{{StderrTail: python}}, []ev{{}, {StderrTail: "Error: main.py"}}},
		{"error", "^eof$", []ev{{Error: "EOF"}}, []ev{{}, {StderrTail: "EOF"}, {Error: "unexpected EOF"}}},
		{"stderr", "(?-i:Traceback)", []ev{{StderrTail: python}, {StderrHead: python}}, []ev{{}, {Error: python}, {StderrTail: "traceback"}}},
		{"stdout_junk", "hello", []ev{{StdoutJunk: &events.Junk{Count: 1, Excerpt: "hello"}}}, []ev{{}, {StderrTail: "hello"}}},
		{"body_excerpt", "maintenance", []ev{{BodyExcerpt: "<p>Maintenance</p>"}}, []ev{{}, {Error: "maintenance"}}},
		{"www_authenticate", "insufficient_scope", []ev{{WWWAuthenticate: `Bearer error="insufficient_scope"`}}, []ev{{}, {BodyExcerpt: "insufficient_scope"}}},
		{"location", "/login", []ev{{Location: "https://example.com/login"}}, []ev{{}, {BodyExcerpt: "/login"}}},
		{"content_type", "^text/html", []ev{{ContentType: "text/html; charset=utf-8"}}, []ev{{}, {ContentType: "application/json"}}},
		{"jsonrpc_message", "internal", []ev{{JSONRPCMessage: "Internal error"}}, []ev{{}, {Error: "internal"}}},
		{"jsonrpc_data", "quota", []ev{{JSONRPCData: `{"reason":"quota"}`}}, []ev{{}, {JSONRPCMessage: "quota"}}},
		{"command", "^npx ", []ev{{Command: "npx some-server"}}, []ev{{}, {Command: "uvx some-server"}}},
		{"protocol_version", "^2025-", []ev{{ProtocolVersion: "2025-11-25"}}, []ev{{}, {ProtocolVersion: "2026-07-28"}}},
	} {
		tested[tc.key] = true
		value := tc.value
		if value[0] != '[' {
			value = "'" + value + "'"
		}
		if tc.key == "session_sent" || tc.key == "dispatched" {
			value = tc.value
		}
		set := mustParse(t, withRules("  - {id: asked, match: {"+tc.key+": "+value+"}, class: config, disposition: ignore}\n"))
		for _, e := range tc.yes {
			if got := set.Classify(e).Rule; got != "asked" {
				t.Errorf("%s: %s does not match %+v", tc.key, tc.value, e)
			}
		}
		for _, e := range tc.no {
			if got := set.Classify(e).Rule; got != "last" {
				t.Errorf("%s: %s matches %+v", tc.key, tc.value, e)
			}
		}
	}
	var schema struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(rules.Schema), &schema); err != nil {
		t.Fatal(err)
	}
	for key := range schema.Defs["match"].Properties {
		if !tested[key] {
			t.Errorf("nothing is matched by %s", key)
		}
	}
}
