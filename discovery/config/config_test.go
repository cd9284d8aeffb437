package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpledger/discovery/config"
)

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
		{dir, "it is a folder; name the files in it one by one"},
		{os.DevNull, "not a regular file"},
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

func BenchmarkLoad(b *testing.B) {
	var servers strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&servers, `"server-%d": {"command": "npx", "args": ["-y", "@acme/a"], "env": {"API_KEY": "key-%d-s3cret", "URL": "https://u:p4ssw0rd%d@h/x"}},`, i, i, i)
	}
	path := write(b, filepath.Join(b.TempDir(), "mcp.json"), `{"mcpServers": {`+servers.String()+`}}`)
	for b.Loop() {
		c, err := config.Load(config.Options{Files: []string{path}, Key: testKey, LookupEnv: environ()})
		if err != nil || len(c.Servers) != 1000 {
			b.Fatal(err)
		}
		config.Diff(applied(c), c)
	}
}
