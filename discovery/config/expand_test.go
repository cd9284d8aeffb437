package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

func TestReferencesAreFilledIn(t *testing.T) {
	lookup := environ(
		"A", "alpha", "EMPTY", "", "HOME", "/home/kim", "MCPLEDGER_INPUT_DB_URL", "db", "MCPLEDGER_X", "ours",
		"NESTED", "${A}",
	)
	for _, tt := range []struct{ written, want string }{
		{`${A}`, "alpha"},
		{`x-${A}-${env:A}`, "x-alpha-alpha"},
		{`${EMPTY}`, ""},
		{`${A:-other}`, "alpha"},
		{`${EMPTY:-other}`, "other"},
		{`${NONE:-other}`, "other"},
		{`${NONE:-}`, ""},
		{`${env:NONE:-a:b}`, "a:b"},
		{`${input:db-url}`, "db"},
		{`${userHome}/x`, "/home/kim/x"},
		{`$${A}`, "${A}"},
		{`$$${A}`, "$${A}"},
		{`$A $$ $`, "$A $$ $"},
		{`${MCPLEDGER_X:-theirs}`, "theirs"},
		{`${NESTED}`, "${A}"}, // what came from a variable is not looked at again
		{`${A:+b}`, "${A:+b}"},
		{`${command:pick}`, "${command:pick}"},
		{`${NONE:-${A}}`, "${NONE:-${A}}"},
		{`${A`, "${A"},
		{`${}`, "${}"},
		{`${a b}`, "${a b}"},
	} {
		s := server(t, lookup, `"command": "x", "args": ["`+tt.written+`"]`)
		if s.Problem != nil || s.Args[0] != tt.want {
			t.Errorf("%s gave %q and %+v, want %q", tt.written, s.Args[0], s.Problem, tt.want)
		}
	}
}

func TestEveryPlaceThatMayHoldAReferenceIsExpanded(t *testing.T) {
	lookup := environ("V", "v")
	s := server(t, lookup, `"command": "c-${V}", "args": ["a-${V}"], "env": {"E": "e-${V}"}, "cwd": "/w-${V}"`)
	if s.Command != "c-v" || s.Args[0] != "a-v" || s.Env["E"] != "e-v" || s.Cwd != "/w-v" {
		t.Errorf("got %+v", s)
	}
	s = server(t, lookup, `"url": "https://h/${V}", "headers": {"X-V": "h-${V}"}`)
	if s.URL != "https://h/v" || s.Headers["x-v"] != "h-v" {
		t.Errorf("got %+v", s)
	}
}

func TestAMissingValueBlocksItsServerOnly(t *testing.T) {
	for _, tt := range []struct {
		written, name, detail string
	}{
		{`${TOKEN}`, "TOKEN", "${TOKEN} is not set"},
		{`${env:TOKEN}`, "TOKEN", "${env:TOKEN} is not set"},
		{`${input:api-key}`, "MCPLEDGER_INPUT_API_KEY", "set MCPLEDGER_INPUT_API_KEY"},
		{`${file:/nowhere/token}`, "file:/nowhere/token", "no such file"},
		{`${MCPLEDGER_TOKEN}`, "MCPLEDGER_TOKEN", "not passed on"},
		{`${userHome}`, "HOME", "set HOME"},
	} {
		c := load(t, environ("MCPLEDGER_TOKEN", "ours"),
			`{"mcpServers": {"good": {"command": "x"}, "s": {"command": "x", "env": {"T": "`+tt.written+`", "U": "`+tt.written+`"}}}}`)
		if c.Server("good").Problem != nil {
			t.Errorf("the other server has %+v", c.Server("good").Problem)
		}
		p := c.Server("s").Problem
		if p == nil || p.Code != events.ProblemVariableUnset || !slices.Equal(p.Names, []string{tt.name}) || !strings.Contains(p.Detail, tt.detail) {
			t.Errorf("%s gave %+v, want %s with %q", tt.written, p, tt.name, tt.detail)
		}
		if len(c.Faults) != 1 || c.Faults[0].Server != "s" {
			t.Errorf("%s: faults are %+v", tt.written, c.Faults)
		}
	}
}

func TestAllMissingVariablesAreNamed(t *testing.T) {
	p := server(t, environ(), `"command": "x", "args": ["${B}"], "env": {"X": "${A}", "Y": "${B}"}`).Problem
	if p == nil || !slices.Equal(p.Names, []string{"B", "A"}) {
		t.Errorf("got %+v", p)
	}
}

func TestAFileGivesItsContentWithoutTheLastLineBreak(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secrets", "token"), "t0ken-value-1\r\n\n")
	write(t, filepath.Join(dir, "zero"), "a\x00b")
	path := write(t, filepath.Join(dir, "mcp.json"), `{"mcpServers": {
		"relative": {"command": "x", "env": {"T": "${file:secrets/token}"}},
		"absolute": {"command": "x", "env": {"T": "${file:`+dir+`/secrets/token}"}},
		"zero": {"command": "x", "env": {"T": "${file:zero}"}}}}`)
	c, err := config.Load(config.Options{Files: []string{path}, Key: testKey, LookupEnv: environ()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []events.ServerName{"relative", "absolute"} {
		if got := c.Server(name).Env["T"]; got != "t0ken-value-1" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if p := c.Server("zero").Problem; p == nil || !strings.Contains(p.Detail, "zero byte") {
		t.Errorf("a file with a zero byte gave %+v", p)
	}
	if want := []string{path, filepath.Join(dir, "secrets", "token"), filepath.Join(dir, "zero")}; !slices.Equal(c.Watched, want) {
		t.Errorf("watched are %v, want %v", c.Watched, want)
	}
}

func TestTheWorkspaceIsTheFoldersOwnerOfAnEditorsFolder(t *testing.T) {
	dir := t.TempDir()
	for file, want := range map[string]string{"mcp.json": dir, ".vscode/mcp.json": dir, ".cursor/mcp.json": dir, "conf/mcp.json": filepath.Join(dir, "conf")} {
		path := write(t, filepath.Join(dir, file), entry(`"command": "${workspaceFolder}/run"`))
		c, err := config.Load(config.Options{Files: []string{path}, Key: testKey, LookupEnv: environ()})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Server("s").Command; got != want+"/run" {
			t.Errorf("%s: got %q, want %q", file, got, want+"/run")
		}
	}
}

func TestAnEnvFileGivesVariables(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          map[string]string // nil: it cannot be read
	}{
		{"plain lines", "A=1\nB = two words \n\n# no\nexport C=3", map[string]string{"A": "1", "B": "two words", "C": "3"}},
		{"Windows line ends", "A=1\r\nB=2\r\n", map[string]string{"A": "1", "B": "2"}},
		{"comments", "A=1 # one\nB=2#two\nC=#", map[string]string{"A": "1", "B": "2#two", "C": ""}},
		{"nothing", "A=\nB=''", map[string]string{"A": "", "B": ""}},
		{"quotes", `A="a # \"b\"\n" # c` + "\n" + `B='a\n$X'`, map[string]string{"A": "a # \"b\"\n", "B": `a\n$X`}},
		{"several lines", "A=\"one\ntwo\"\nB=3", map[string]string{"A": "one\ntwo", "B": "3"}},
		{"equals signs", "A=b=c==", map[string]string{"A": "b=c=="}},
		{"the last of two", "A=1\nA=2", map[string]string{"A": "2"}},
		{"a byte order mark", "\ufeffA=1", map[string]string{"A": "1"}},
		{"no assignment", "A=1\njust words", nil},
		{"a bad name", "1A=1", nil},
		{"an open quote", "A='1\nB=2", nil},
		{"more after a quote", `A="1" 2`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "own.env"), tt.content)
			path := write(t, filepath.Join(dir, "mcp.json"), entry(`"command": "x", "envFile": "own.env"`))
			c, err := config.Load(config.Options{Files: []string{path}, Key: testKey, LookupEnv: environ()})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Server("s")
			if tt.want == nil {
				if s.Problem == nil || s.Problem.Code != events.ProblemVariableUnset || !strings.Contains(s.Problem.Detail, "line ") {
					t.Errorf("got %+v", s.Problem)
				}
				return
			}
			if s.Problem != nil || len(s.Env) != len(tt.want) {
				t.Fatalf("got %q and %+v, want %q", s.Env, s.Problem, tt.want)
			}
			for name, want := range tt.want {
				if got := s.Env[name]; got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestEnvGoesBeforeTheEnvFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "own.env"), "A=file\nB=file")
	path := write(t, filepath.Join(dir, "mcp.json"), entry(`"command": "x", "envFile": "${workspaceFolder}/own.env", "env": {"A": "entry"}`))
	c, err := config.Load(config.Options{Files: []string{path}, Key: testKey, LookupEnv: environ()})
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Server("s"); s.Env["A"] != "entry" || s.Env["B"] != "file" {
		t.Errorf("got %q", s.Env)
	}
}

func TestAnEnvFileThatCannotBeTrustedBlocks(t *testing.T) {
	dir := t.TempDir()
	env := write(t, filepath.Join(dir, "own.env"), "A=1")
	if err := os.Chmod(env, 0o666); err != nil {
		t.Fatal(err)
	}
	path := write(t, filepath.Join(dir, "mcp.json"), entry(`"command": "x", "envFile": "own.env"`))
	c, err := config.Load(config.Options{Files: []string{path}, Key: testKey, LookupEnv: environ()})
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Server("s").Problem; p == nil || !strings.Contains(p.Detail, "chmod o-w") {
		t.Errorf("got %+v", p)
	}
}

func TestNumbersAndTruthValuesAreTextInEnv(t *testing.T) {
	s := server(t, environ(), `"command": "x", "env": {"PORT": 8080, "ON": true, "NO": null}`)
	if len(s.Env) != 2 || s.Env["PORT"] != "8080" || s.Env["ON"] != "true" {
		t.Errorf("got %q", s.Env)
	}
}
