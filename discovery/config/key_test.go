package config_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

// The keys of a log that exists must not change with the program.
func TestTheKeyOfAnEntryIsFixedForEver(t *testing.T) {
	s := server(t, environ("T", "tt"), `"command": "npx", "args": ["-y", "a"], "env": {"A": "${T}"}, "mcpledger": {"timeouts": {"start": "9s"}, "inherit_env": true}`)
	if want := events.ConfigKey("k1_qmkhbbptww5lbpw4.aajz4shhkgsewz6n"); s.Key != want {
		t.Errorf("got %s, want %s", s.Key, want)
	}
	if !regexp.MustCompile(`^k1_[a-z2-7]{16}\.[a-z2-7]{16}$`).MatchString(string(s.Key)) {
		t.Errorf("the key %q is of another form", s.Key)
	}
}

func key(t testing.TB, lookup func(string) (string, bool), fields string) events.ConfigKey {
	t.Helper()
	return server(t, lookup, fields).Key
}

func TestTheSecretMakesTheKey(t *testing.T) {
	path := write(t, t.TempDir()+"/a.json", entry(`"command": "x"`))
	var keys []events.ConfigKey
	for _, secret := range []string{"one secret", "another"} {
		c, err := config.Load(config.Options{Files: []string{path}, Key: []byte(secret), LookupEnv: environ()})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, c.Server("s").Key)
	}
	if keys[0] == keys[1] {
		t.Errorf("two secrets gave %s", keys[0])
	}
}

func TestTheEntryPartCoversWhatMakesTheConnection(t *testing.T) {
	const stdio, http = `"command": "x"`, `"url": "https://h/mcp"`
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"the command", stdio, `"command": "y"`, false},
		{"an argument", stdio, stdio + `, "args": ["a"]`, false},
		{"where an argument ends", stdio + `, "args": ["a", "b"]`, stdio + `, "args": ["ab"]`, false},
		{"the order of arguments", stdio + `, "args": ["a", "b"]`, stdio + `, "args": ["b", "a"]`, false},
		{"a variable", stdio, stdio + `, "env": {"A": ""}`, false},
		{"a variable's value", stdio + `, "env": {"A": "1"}`, stdio + `, "env": {"A": "2"}`, false},
		{"what moved from name to value", stdio + `, "env": {"A": "B"}`, stdio + `, "env": {"AB": ""}`, false},
		{"the folder", stdio, stdio + `, "cwd": "/w"`, false},
		{"the URL", http, `"url": "https://h/other"`, false},
		{"a header", http, http + `, "headers": {"X": "1"}`, false},
		{"the transport", http, http + `, "type": "sse"`, false},
		{"an oauth section", http, http + `, "oauth": {"client_id": "a"}`, false},
		{"a timeout", stdio, stdio + `, "mcpledger": {"timeouts": {"start": "1s"}}`, false},
		{"which timeout", stdio + `, "mcpledger": {"timeouts": {"start": "1s"}}`, stdio + `, "mcpledger": {"timeouts": {"call": "1s"}}`, false},
		{"an inherited variable", stdio, stdio + `, "mcpledger": {"inherit_env": ["A"]}`, false},
		{"the era", stdio, stdio + `, "mcpledger": {"era": "modern"}`, false},
		{"a malformed entry's text", `"command": 1`, `"command": 2`, false},
		{"an argument that is like a variable", stdio + `, "args": ["A", "1"]`, stdio + `, "env": {"A": "1"}`, false},

		{"empty for absent", stdio, stdio + `, "args": [], "env": {}, "cwd": "", "url": "", "headers": null, "oauth": false, "mcpledger": {"timeouts": {}, "inherit_env": false}`, true},
		{"the transport in words", http, http + `, "type": "streamable-http"`, true},
		{"another name for a field", stdio + `, "cwd": "/w"`, stdio + `, "working_dir": "/w"`, true},
		{"a header's case", http + `, "headers": {"X-Y": "1"}`, http + `, "headers": {"x-y": "1"}`, true},
		{"the order of inherited variables", stdio + `, "mcpledger": {"inherit_env": ["A", "B"]}`, stdio + `, "mcpledger": {"inherit_env": ["B", "A"]}`, true},
		{"the description", stdio, stdio + `, "description": "d"`, true},
		{"being disabled", stdio, stdio + `, "disabled": true`, true},
		{"settings", stdio, stdio + `, "mcpledger": {"skip": {"never": true}, "tools": {"deny": ["a"]}, "session": "per_client", "max_result": 1, "record_calls": true}`, true},
		{"another client's field", stdio, stdio + `, "alwaysAllow": ["a"]`, true},
		{"the spelling of a string", stdio, `"command": "\u0078"`, true},
		{"the order of a malformed entry", `"command": 1, "args": []`, `"args": [], "command": 1`, true},
	} {
		a, b := key(t, environ(), tt.a), key(t, environ(), tt.b)
		if (a == b) != tt.same {
			t.Errorf("%s: same is %v, want %v\n%s\n%s", tt.name, a == b, tt.same, tt.a, tt.b)
		}
	}
}

func TestTheNameIsPartOfTheEntry(t *testing.T) {
	c := load(t, environ(), `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}`)
	if c.Server("a").Key.Entry() == c.Server("b").Key.Entry() {
		t.Error("two servers share a key")
	}
}

func TestTheValuesPartCoversWhatReferencesGive(t *testing.T) {
	fields := `"command": "x", "env": {"A": "${V}"}`
	one, two := key(t, environ("V", "1"), fields), key(t, environ("V", "2"), fields)
	unset, empty := key(t, environ(), fields), key(t, environ("V", ""), fields)
	keys := map[events.ConfigKey]bool{one: true, two: true, unset: true, empty: true}
	if len(keys) != 4 {
		t.Errorf("four values gave %d keys", len(keys))
	}
	for k := range keys {
		if k.Entry() != one.Entry() {
			t.Errorf("the entry part of %s differs from %s", k, one)
		}
	}
	_, none, _ := strings.Cut(string(key(t, environ(), `"command": "x"`)), ".")
	_, other, _ := strings.Cut(string(key(t, environ("V", "1"), `"command": "y", "env": {"A": "$${V}"}`)), ".")
	if none != other {
		t.Errorf("entries with nothing to expand have values %q and %q", none, other)
	}
}

// What people change in a file without changing a server must not change its key.
func TestKeyDoesNotDependOnHowTheFileIsWritten(t *testing.T) {
	word := rapid.StringMatching(`[a-zA-Z0-9 "\\/_.$-]{0,12}`)
	name := rapid.StringMatching(`[A-Z]{1,6}`)
	rapid.Check(t, func(rt *rapid.T) {
		fields := map[string]any{
			"command": "run" + word.Draw(rt, "command"),
			"args":    rapid.SliceOfN(word, 0, 4).Draw(rt, "args"),
			"env":     rapid.MapOfN(name, word, 0, 4).Draw(rt, "env"),
			"cwd":     word.Draw(rt, "cwd"),
		}
		plain := render(rt, fields, func() string { return "" }, slices.Sorted(maps.Keys(fields)))
		fields["description"] = word.Draw(rt, "description")
		space := func() string {
			return rapid.SampledFrom([]string{"", " ", "\n", "\t/* } \" */", "// ,\n"}).Draw(rt, "space")
		}
		order := rapid.Permutation(slices.Sorted(maps.Keys(fields))).Draw(rt, "order")
		rewritten := render(rt, fields, space, order)
		if a, b := key(t, environ(), plain), key(t, environ(), rewritten); a != b {
			rt.Fatalf("keys %s and %s of\n%s\n%s", a, b, plain, rewritten)
		}
	})
}

// render writes fields in the given order, with space between all tokens.
func render(t *rapid.T, fields map[string]any, space func() string, order []string) string {
	var b strings.Builder
	for i, name := range order {
		if i > 0 {
			b.WriteString("," + space())
		}
		value, err := json.Marshal(fields[name])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%q%s:%s%s%s", name, space(), space(), value, space())
	}
	return b.String()
}
