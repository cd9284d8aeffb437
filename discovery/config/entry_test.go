package config_test

import (
	"strings"
	"testing"

	"mcpledger/events"
)

func TestAFaultyEntryDropsNobodyElse(t *testing.T) {
	for _, tt := range []struct{ name, fields, detail string }{
		{"nothing to start or dial", `"args": ["x"]`, `neither "command" nor "url"`},
		{"both", `"command": "x", "url": "http://h/"`, "keep the one that applies"},
		{"an unknown transport", `"url": "http://h/", "type": "carrier-pigeon"`, `use "stdio", "http" or "sse"`},
		{"stdio with a URL", `"url": "http://h/", "type": "stdio"`, `needs "command"`},
		{"http with a command", `"command": "x", "type": "http"`, `needs "url"`},
		{"a command that is a number", `"command": 5`, `"command" must be a string`},
		{"arguments in one string", `"command": "x", "args": "a b"`, "a list of strings"},
		{"an argument that is a number", `"command": "x", "args": ["--port", 80]`, `"args[1]" must be a string`},
		{"env that is a list", `"command": "x", "env": ["A=1"]`, `"env" must be an object`},
		{"a value of env that is an object", `"command": "x", "env": {"A": {}}`, `"env.A" must be a string`},
		{"disabled that is a word", `"command": "x", "disabled": "no"`, "true or false"},
		{"two names for a URL", `"url": "http://h/", "serverUrl": "http://i/"`, "mean the same"},
		{"a URL of another scheme", `"url": "ftp://h/"`, "http:// or https://"},
		{"a URL without a host", `"url": "https:///mcp"`, "names a host"},
		{"a header with a line break", `"url": "http://h/", "headers": {"X": "a\nb"}`, "line break"},
		{"a header twice", `"url": "http://h/", "headers": {"X-A": "1", "x-a": "2"}`, "twice"},
		{"a header that is none", `"url": "http://h/", "headers": {"X A": "1"}`, "name of a header"},
		{"a zero byte", `"command": "x\u0000"`, "zero byte"},
		{"a time without a unit", `"command": "x", "mcpledger": {"timeouts": {"start": 90}}`, "with its unit"},
		{"a time that is too long", `"command": "x", "mcpledger": {"timeouts": {"call": "48h"}}`, `"24h"`},
		{"a bad pattern", `"command": "x", "mcpledger": {"tools": {"deny": ["["]}}`, "no valid pattern"},
		{"a session of another kind", `"command": "x", "mcpledger": {"session": "solo"}`, `"per_client"`},
		{"a limit of nothing", `"command": "x", "mcpledger": {"max_result": 0}`, "whole number from 1"},
		{"inherit_env of another kind", `"command": "x", "mcpledger": {"inherit_env": "all"}`, "list of names"},
		{"a command that is empty in the end", `"command": "${EMPTY}"`, "empty once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			content := `{"mcpServers": {"good": {"command": "x"}, "s": {` + tt.fields + `}}}`
			c := load(t, environ("EMPTY", ""), content)
			if good := c.Server("good"); good == nil || good.Problem != nil {
				t.Fatalf("the good server became %+v", good)
			}
			s := c.Server("s")
			if s == nil || s.Problem == nil || s.Problem.Code != events.ProblemMalformed {
				t.Fatalf("got %+v, want it listed as malformed", s)
			}
			if !strings.Contains(s.Problem.Detail, tt.detail) {
				t.Errorf("the problem reads %q, want %q in it", s.Problem.Detail, tt.detail)
			}
			if len(c.Faults) == 0 || c.Faults[0].Server != "s" || c.Faults[0].Line != 1 || c.Faults[0].Detail != s.Problem.Detail {
				t.Errorf("faults are %+v, want the problem with its place", c.Faults)
			}
		})
	}
}

func TestAnEntryThatIsNoObjectIsListedAsMalformed(t *testing.T) {
	for _, value := range []string{`"npx -y x"`, `null`, `[]`, `7`} {
		c := load(t, environ(), `{"mcpServers": {"s": `+value+`}}`)
		if s := c.Server("s"); s == nil || s.Problem == nil || s.Problem.Code != events.ProblemMalformed {
			t.Errorf("%s gave %+v", value, s)
		}
	}
}

func TestANameThatNobodyCanUseIsLeftOutAndTold(t *testing.T) {
	for _, name := range []string{``, strings.Repeat("n", 129), `a\u0007b`, `a\nb`, `a\u202eb`} {
		c := load(t, environ(), `{"mcpServers": {"good": {"command": "x"}, "`+name+`": {"command": "x"}}}`)
		if len(c.Servers) != 1 || len(c.Faults) != 1 || c.Faults[0].Column != 43 {
			t.Errorf("%q gave servers %v and faults %+v", name, c.Servers, c.Faults)
		}
	}
	if c := load(t, environ(), `{"mcpServers": {"`+strings.Repeat("n", 128)+`": {"command": "x"}}}`); len(c.Servers) != 1 {
		t.Errorf("a name of 128 bytes gave %+v", c.Faults)
	}
}

func TestTheGatewaysOwnNameIsRefused(t *testing.T) {
	s := load(t, environ(), `{"mcpServers": {"ledger": {"command": "x"}}}`).Server("ledger")
	if s == nil || s.Problem == nil || s.Problem.Code != events.ProblemMalformed {
		t.Errorf("got %+v", s)
	}
}

func TestWhatHasNoEffectIsAWarning(t *testing.T) {
	for _, tt := range []struct {
		fields  string
		warning string // empty: none
	}{
		{`"command": "x", "comand": "y"`, `"comand" is not known`},
		{`"command": "x", "command": "y"`, `"command" is there twice`},
		{`"command": "x", "env": {"A": "1", "A": "2"}`, `"A" is there twice`},
		{`"command": "x", "mcpledger": {"timeout": "1s"}`, `"timeout" is not known`},
		{`"command": "x", "args": ["${A:+b}"]`, `${A:…}`},
		{`"command": "x", "mcpledger": {"inherit_env": ["MCPLEDGER_TOKEN"]}`, "not inherited"},
		{`"command": "x", "alwaysAllow": [], "autoApprove": ["a"], "timeout": 60, "trust": true, "_comment": "c"`, ""},
		{`"command": "x", "args": ["$HOME"]`, ""},
		{`"command": null, "command": "x", "env": null`, `"command" is there twice`},
	} {
		c := load(t, environ(), entry(tt.fields))
		if s := c.Server("s"); s.Problem != nil {
			t.Errorf("%s: got problem %+v", tt.fields, s.Problem)
		}
		switch {
		case tt.warning == "" && len(c.Warnings) > 0:
			t.Errorf("%s: got %+v, want no warning", tt.fields, c.Warnings)
		case tt.warning != "" && (len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Detail, tt.warning) || c.Warnings[0].Server != "s"):
			t.Errorf("%s: got %+v, want one with %q", tt.fields, c.Warnings, tt.warning)
		}
	}
}

func TestTheLastOfARepeatedFieldHolds(t *testing.T) {
	if s := server(t, environ(), `"command": "x", "command": "y"`); s.Command != "y" {
		t.Errorf("got %q", s.Command)
	}
}

func TestTheTransportIsInferred(t *testing.T) {
	for _, tt := range []struct {
		fields string
		want   events.Transport
	}{
		{`"command": "x"`, events.TransportStdio},
		{`"url": "https://h/mcp"`, events.TransportHTTP},
		{`"url": "https://h/sse"`, events.TransportSSE},
		{`"url": "https://h/sse?a=b"`, events.TransportSSE},
		{`"url": "https://h/sse", "type": "streamableHttp"`, events.TransportHTTP},
		{`"httpUrl": "https://h/sse"`, events.TransportHTTP},
		{`"url": "https://h/mcp", "transport": "streamable-http"`, events.TransportHTTP},
		{`"url": "https://h/mcp", "protocol": "sse"`, events.TransportSSE},
		{`"url": "https://h/mcp", "type": "HTTP"`, events.TransportHTTP},
		{`"command": "x", "url": ""`, events.TransportStdio},
	} {
		if s := server(t, environ(), tt.fields); s.Transport != tt.want || s.Problem != nil {
			t.Errorf("%s: got %q and %+v, want %q", tt.fields, s.Transport, s.Problem, tt.want)
		}
	}
}

func TestFilesWithCommentsAtTheirEdgesAreRead(t *testing.T) {
	for _, content := range []string{
		"\ufeff" + entry(`"command": "x"`),
		"// first\n" + entry(`"command": "x",`) + "// last",
		"/* { */" + entry(`"command": "x", "args": ["a",],`),
	} {
		if c := load(t, environ(), content); c.Server("s").Command != "x" {
			t.Errorf("%q gave %+v", content, c.Servers)
		}
	}
}

func TestAConfigOfNoServersIsOne(t *testing.T) {
	for _, content := range []string{`{}`, `{"mcpServers": {}}`, `{"servers": {}, "inputs": []}`} {
		if c := load(t, environ(), content); len(c.Servers) != 0 || len(c.Faults) != 0 {
			t.Errorf("%s gave %+v", content, c)
		}
	}
}
