package config_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var testKey = []byte("a key for tests, thirty-two long")

// environ makes a LookupEnv of pairs.
func environ(pairs ...string) func(string) (string, bool) {
	vars := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		vars[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// write puts content into a file that only its owner may write.
func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// load loads files of the given contents, which must be usable.
func load(t testing.TB, lookup func(string) (string, bool), contents ...string) *config.Config {
	t.Helper()
	c, err := tryLoad(t, lookup, contents...)
	if err != nil {
		t.Fatalf("load %s: %v", contents, err)
	}
	return c
}

func tryLoad(t testing.TB, lookup func(string) (string, bool), contents ...string) (*config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for i, content := range contents {
		files = append(files, write(t, filepath.Join(dir, string(rune('a'+i))+".json"), content))
	}
	return config.Load(config.Options{Files: files, Key: testKey, LookupEnv: lookup})
}

// entry wraps the fields of an entry called "s" into a config.
func entry(fields string) string { return `{"mcpServers": {"s": {` + fields + `}}}` }

// server loads one entry called "s".
func server(t testing.TB, lookup func(string) (string, bool), fields string) *config.Server {
	t.Helper()
	s := load(t, lookup, entry(fields)).Server("s")
	if s == nil {
		t.Fatalf("no server in %s", fields)
	}
	return s
}

// view is a server as the golden files show it. Of its key they have the part that
// does not depend on where the file lies.
type view struct {
	Entry       string               `json:"entry"`
	Transport   events.Transport     `json:"transport"`
	Command     string               `json:"command,omitempty"`
	Args        []string             `json:"args,omitempty"`
	Env         map[string]string    `json:"env,omitempty"`
	Cwd         string               `json:"cwd,omitempty"`
	URL         string               `json:"url,omitempty"`
	Headers     map[string]string    `json:"headers,omitempty"`
	InheritEnv  []string             `json:"inherit_env,omitempty"`
	Timeouts    config.Timeouts      `json:"timeouts,omitzero"`
	Runner      string               `json:"runner,omitempty"`
	Package     string               `json:"package,omitempty"`
	Description string               `json:"description,omitempty"`
	Disabled    bool                 `json:"disabled,omitempty"`
	Settings    events.Settings      `json:"settings,omitzero"`
	Written     json.RawMessage      `json:"written"`
	Problem     *events.EntryProblem `json:"problem,omitempty"`
}

func viewOf(s *config.Server) view {
	return view{
		Entry: s.Key.Entry(), Transport: s.Transport, Command: s.Command, Args: s.Args, Env: s.Env,
		Cwd: s.Cwd, URL: s.URL, Headers: s.Headers, InheritEnv: s.InheritEnv, Timeouts: s.Timeouts,
		Runner: s.Runner, Package: s.Package, Description: s.Description, Disabled: s.Disabled,
		Settings: s.Settings, Written: s.Written, Problem: s.Problem,
	}
}

// What each client's file becomes stands in testdata, secrets and all.
func TestEveryClientsFileIsUnderstood(t *testing.T) {
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	lookup := environ(
		"HOME", "/home/kim", "TICKETS_TOKEN", "tk-5d0c9e7712ab",
		"MCPLEDGER_INPUT_PG_URL", "postgres://app:f4Gm-81xK@db.example.com/app",
	)
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := config.Load(config.Options{Files: []string{file}, Key: testKey, LookupEnv: lookup})
			if err != nil {
				t.Fatal(err)
			}
			views := map[events.ServerName]view{}
			for _, srv := range c.Servers {
				views[srv.Name] = viewOf(srv)
			}
			b, err := json.MarshalIndent(map[string]any{
				"servers": views, "warnings": len(c.Warnings), "faults": len(c.Faults), "watched": c.Watched,
			}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			// Where the repository lies is no part of the answer.
			got := strings.ReplaceAll(string(b), here, "FOLDER") + "\n"
			golden := strings.TrimSuffix(file, ".json") + ".golden"
			if *update {
				write(t, golden, got)
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAFaultOfTheFileFailsTheLoadAndSaysWhere(t *testing.T) {
	deep := strings.Repeat("[", 2000)
	for _, tt := range []struct {
		name, content string
		line, column  int
		detail        string
	}{
		{"an empty file", " \n\t", 1, 1, "empty"},
		{"a missing comma", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}\n    \"b\": {}\n  }\n}", 4, 5, "after object value"},
		{"an unclosed bracket", `{"mcpServers": {`, 2, 1, "ends before"},
		{"a bad escape", "{\"mcpServers\": {\n\"a\": {\"command\": \"C:\\srv\\x\"}}}", 2, 18, `written \\`},
		{"a list at the top", `[]`, 1, 1, "no object"},
		{"no servers in it", `{"theme": "dusk"}`, 1, 1, "mcpServers"},
		{"servers that are a list", `{"mcpServers": []}`, 1, 16, "must be an object"},
		{"an entry without a name", `{"command": "npx", "args": []}`, 1, 1, "under a name"},
		{"a server there twice", "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"},\n  \"a\": {\"command\": \"y\"}}}", 3, 3, "first in line 2"},
		{"a server there twice, spelled otherwise", `{"mcpServers": {"a": {"command": "x"}, "\u0061": {"command": "y"}}}`, 1, 40, "twice"},
		{"a server in both sections", `{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "y"}}}`, 1, 53, "twice"},
		{"a section there twice", `{"mcpServers": {}, "mcpServers": {"a": {"command": "x"}}}`, 1, 20, "twice"},
		{"an endless nest", `{"mcpServers": ` + deep, 1, 115, "deep"},
		{"a nest behind a comment with a quote", `{"mcpServers": /* " */ ` + deep, 1, 123, "deep"},
		{"another encoding", "{\"mcpServers\": {\"a\": {\"command\": \"\xff\"}}}", 1, 35, "UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := tryLoad(t, environ(), tt.content)
			var bad *config.ProblemError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v and error %v, want a ProblemError", c, err)
			}
			p := bad.Problems[0]
			if p.Line != tt.line || p.Column != tt.column || !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("got %d:%d %q, want %d:%d with %q", p.Line, p.Column, p.Detail, tt.line, tt.column, tt.detail)
			}
			if filepath.Base(p.File) != "a.json" || !strings.Contains(err.Error(), "a.json") {
				t.Errorf("the problem names file %q and the error reads %q", p.File, err)
			}
		})
	}
}

func TestAnErrorNeverQuotesWhatItCouldNotRead(t *testing.T) {
	const planted = "zk81hd72js0a"
	for _, content := range []string{
		`{"mcpServers": {"a": {"env": {"K": ` + planted + `}}}}`,
		`{"mcpServers": {"a": {"env": {"K": "\x` + planted + `"}}}}`,
	} {
		_, err := tryLoad(t, environ(), content)
		if err == nil || strings.Contains(err.Error(), planted) {
			t.Errorf("%s gave %v", content, err)
		}
	}
}

func TestAFileThatCannotBeTrustedIsRefused(t *testing.T) {
	dir := t.TempDir()
	open := write(t, filepath.Join(dir, "open.json"), entry(`"command": "x"`))
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	big := write(t, filepath.Join(dir, "big.json"), entry(`"command": "`+strings.Repeat("x", config.MaxConfigBytes)+`"`))
	for _, tt := range []struct{ path, detail string }{
		{open, "chmod o-w"},
		{big, "larger than"},
		{filepath.Join(dir, "missing.json"), "no such file"},
		{dir, "not a regular file"},
	} {
		_, err := config.Load(config.Options{Files: []string{tt.path}, Key: testKey})
		var bad *config.ProblemError
		if !errors.As(err, &bad) || !strings.Contains(bad.Problems[0].Detail, tt.detail) || bad.Problems[0].File != tt.path {
			t.Errorf("%s gave %v, want a problem with %q", tt.path, err, tt.detail)
		}
	}
}

func TestALoadNeedsTheSecretForItsKeys(t *testing.T) {
	if _, err := config.Load(config.Options{}); err == nil {
		t.Error("a load without a key gave no error")
	}
}

func TestALaterFileReplacesAWholeEntry(t *testing.T) {
	c := load(t, environ(),
		`{"mcpServers": {"a": {"command": "x", "args": ["1"], "env": {"A": "1"}}, "b": {"command": "b"}}}`,
		`{"servers": {"a": {"command": "y"}, "c": {"command": "c"}}}`)
	if len(c.Servers) != 3 || c.Servers[0].Name != "a" || c.Servers[1].Name != "b" || c.Servers[2].Name != "c" {
		t.Fatalf("got servers %v, want a, b and c in order", c.Servers)
	}
	if a := c.Server("a"); a.Command != "y" || len(a.Args) != 0 || len(a.Env) != 0 || filepath.Base(a.SourceFile) != "b.json" {
		t.Errorf("entry a is %+v, want nothing but the later file's", a)
	}
	if c.Server("d") != nil {
		t.Error("a server that is not there was found")
	}
}

func TestAFaultOfOneFileAmongSeveralAppliesNone(t *testing.T) {
	if c, err := tryLoad(t, environ(), entry(`"command": "x"`), `{`); err == nil {
		t.Errorf("got %v", c)
	}
}

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
