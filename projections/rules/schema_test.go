package rules_test

import (
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"mcpledger/projections/rules"
)

// editorsSchema compiles the schema for editors.
func editorsSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(rules.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("rules.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("rules.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// An editor marks what the program refuses, and nothing else, as far as a schema can
// tell: whether a pattern is RE2 and a hint's name one of its groups it cannot.
func TestSchemaAndParserAgree(t *testing.T) {
	schema := editorsSchema(t)
	agree := func(text string, fine bool) {
		t.Helper()
		_, parsed := rules.Parse("test.yaml", []byte(text))
		var v any
		marked := yaml.Unmarshal([]byte(text), &v)
		if marked == nil {
			marked = schema.Validate(v)
		}
		if (parsed == nil) != fine || (marked == nil) != fine {
			t.Errorf("want fine: %v\n%s\nthe parser says: %v\nthe schema says: %v", fine, text, parsed, marked)
		}
	}
	for _, name := range rules.BuiltinNames() {
		text, err := os.ReadFile("sets/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		agree(string(text), true)
	}
	rule := func(more string) string {
		return withRules("  - {id: a, class: auth, disposition: auth, " + more + "}\n")
	}
	for _, place := range []struct {
		text          func(value string) string
		fine, refused []string
	}{
		{
			func(v string) string { return rule("match: {http_status: " + v + "}") },
			[]string{"401", "'401'", "-1", "500..599", "'500..'", "..5", "-5..-1", "+5..", "any", "none", "[401, 500..599, none]"},
			[]string{"'..'", "1.5", "[]", "~", "''", "true", "1..2..3", "{from: 1}", "all"},
		},
		{
			func(v string) string { return rule("match: {transport: " + v + "}") },
			[]string{"stdio", "none", "[stdio, sse]"},
			[]string{"Stdio", "any", "[]", "~", "''", "1"},
		},
		{
			func(v string) string { return rule("match: {phase: " + v + "}") },
			[]string{"handshake", "initialize", "[none, call_tool]"},
			[]string{"any", "start"},
		},
		{
			func(v string) string { return rule("match: {signal: " + v + "}") },
			[]string{"SIGKILL", "none", "[SIGTERM, SIGRTMIN+1]"},
			[]string{"any", "kill", "9", "[]", "~"},
		},
		{
			func(v string) string { return rule("match: {text: " + v + "}") },
			[]string{"x", "401", "1.5", "true", "[x, 401]", "'(?P<n>x)'"},
			[]string{"[]", "~", "{is: x}", "'" + strings.Repeat("x", 1025) + "'"},
		},
		{
			func(v string) string { return rule("match: {dispatched: " + v + "}") },
			[]string{"true", "False"},
			[]string{"yes", "1", "~", "[true]", "none"},
		},
		{
			func(v string) string { return rule("match: " + v) },
			[]string{"{text: x}"},
			[]string{"{}", "~", "x", "[{text: x}]", "{stderr_tail: x}"},
		},
		{
			func(v string) string { return rule("match: {text: x}, hint: " + v) },
			[]string{"Do it.", "401", "'" + strings.Repeat("x", 400) + "'"},
			[]string{"~", "[x]", "'" + strings.Repeat("x", 401) + "'"},
		},
		{
			func(v string) string { return rule("match: {text: x}, skip: " + v) },
			[]string{
				"{after: 0}", "{after: 3, for: 1h}", "{after: 1, over: 0, for: [1h30m, 1.5h, .5h, 90s, 100ms]}",
				"{after: 1000000, for: 1h, requalify: false}",
			},
			[]string{
				"{}", "~", "{for: 1h}", "{after: 1}", "{after: -1, for: 1h}", "{after: 1.5, for: 1h}", "{after: 1000001, for: 1h}",
				"{after: 1, for: 0}", "{after: 1, for: 0s}", "{after: 1, for: [1h, 0m]}", "{after: 1, for: []}", "{after: 1, for: 5}", "{after: 1, for: 1d}",
				"{after: 1, for: -1h}", "{after: 1, for: 1h, over: soon}", "{after: 1, for: 1h, requalify: maybe}",
			},
		},
		{
			func(v string) string { return "brake: " + v + "\n" + minimal },
			[]string{"{failures: 0}", "{failures: 3, within: 1m, for: 1s}"},
			[]string{"{}", "~", "{failures: 3}", "{failures: 3, within: 1m}", "{failures: 3, within: 0s, for: 1m}", "{failures: 3, within: 1m, for: 0}"},
		},
		{
			func(v string) string { return strings.Replace(minimal, "name: mine", "name: "+v, 1) },
			[]string{"mine", "1", "1.0", "true", "a-b_c.d", strings.Repeat("a", 64)},
			[]string{"Mine", "a b", "-a", "~", "''", "[a]", strings.Repeat("a", 65)},
		},
		{
			func(v string) string { return strings.Replace(minimal, "version: 1", "version: "+v, 1) },
			[]string{"1", "'1'"},
			[]string{"2", "~", "[1]"},
		},
		{
			func(v string) string { return "retry: " + v + "\n" + minimal },
			[]string{"network", "[network, server_error]"},
			[]string{"[]", "~", "[net]", "{network: true}"},
		},
		{
			func(v string) string { return minimal + "gates: " + v + "\n" },
			[]string{"[]", "[{id: a, gate: auth_required}]", "[{id: a, class: [auth], match: {http_status: 401}, gate: insufficient_scope}]"},
			[]string{"~", "{}", "[~]", "[{id: a}]", "[{gate: auth_required}]", "[{id: a, gate: none}]", "[{id: a, class: [], gate: auth_required}]", "[{id: abandoned, gate: auth_required}]"},
		},
		{
			func(v string) string { return minimal + "abandoned: " + v + "\n" },
			[]string{"{class: resource, disposition: ignore}"},
			[]string{"~", "{}", "{class: resource}", "{class: resource, disposition: ignore, match: {text: x}}"},
		},
		{
			func(v string) string { return "name: mine\nversion: 1\nrules: " + v + "\n" },
			[]string{"[{id: a, class: auth, disposition: auth}]"},
			[]string{"[]", "~", "{id: a}", "[{id: a, class: auth}]", "[{id: a, class: auth, disposition: auth, weight: 1}]", "[{id: abandoned, class: auth, disposition: auth}]"},
		},
	} {
		for _, v := range place.fine {
			agree(place.text(v), true)
		}
		for _, v := range place.refused {
			agree(place.text(v), false)
		}
	}
}
