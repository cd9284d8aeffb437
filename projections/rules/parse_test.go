package rules_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// minimal is a whole set; tests put their rules before the last one.
const minimal = `name: mine
version: 1
rules:
  - {id: last, class: unknown, disposition: transient}
`

// withRules returns the minimal set with rules before its last.
func withRules(before string) string {
	return strings.Replace(minimal, "rules:\n", "rules:\n"+before, 1)
}

func mustParse(t rapid.TB, text string) *rules.Set {
	t.Helper()
	s, err := rules.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseSaysWhatIsWrongAndWhere(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"an empty file", "", "test.yaml: empty"},
		{"a list that is not closed", "name: mine\nrules: [", "test.yaml:2:9: did not find expected node content"},
		{"a list that is not closed in the last line", "rules: [\n", "test.yaml:1:9: did not find expected node content"},
		{"a key with a wrong indent", "name: mine\nversion: 1\nrules:\n  - id: a\n   class: auth\n", "test.yaml:5:4: rule a: did not find expected '-' indicator, while parsing a block collection that begins in line 4, column 3"},
		{"a brace that is not closed", "name: mine\nversion: 1\nrules:\n  - {id: a, class: auth\n  - {id: b}\n", "test.yaml:5:5: rule a: did not find expected ',' or '}', while parsing a flow mapping that begins in line 4, column 5"},
		{"a quote inside quotes", "rules:\n  - {id: a, hint: 'it's'}\n", "test.yaml:2:23: rule a: did not find expected ',' or '}'"},
		{"a quote that is not closed", "name: 'mine\nversion: 1\n", "test.yaml:2:11: found unexpected end of stream, while scanning a quoted scalar that begins in line 1, column 7"},
		{"an escape that there is not", "name: \"é\\d\"\n", "test.yaml:1:9: found unknown escape character"},
		{"a quote that is not closed in a rule", withRules("  - id: a\n    hint: 'Log in.\n  - id: b\n    hint: Log out.\n"), "rule a: found unexpected end of stream, while scanning a quoted scalar that begins in line 5, column 11"},
		{"a brace that is not closed behind the rules", minimal + "brake: {failures: 3\n", "test.yaml:5:20: did not find expected ',' or '}'"},
		{"a brace that is not closed before the rules", "brake: {failures: 3\n" + minimal, "test.yaml:2:5: did not find expected ',' or '}'"},
		{"a wrong indent in the rule of a long list", withRules("  - id: a\n    class: auth\n  - {id: b, class: auth, disposition: auth}\n  - class: auth\n    id: c\n   hint: x\n"), "test.yaml:9:4: rule c: did not find expected '-' indicator"},
		{"a tab", "rules:\n\t- id: a\n", "test.yaml:2:1: found character that cannot start any token"},
		{"a colon in a text without quotes", "rules:\n  - id: a\n    hint: see: this\n", "test.yaml:3:14: rule a: mapping values are not allowed"},
		{"a character that is none", "name: mine\n# Gr\xfc\xdfe\n", "test.yaml:2:5: "},
		{"a control character", "name: mine\n# é\x00\n", "test.yaml:2:4: control characters are not allowed"},
		{"an unknown key", "name: mine\nversion: 1\nruls: []\nrules:\n  - {id: last, class: unknown, disposition: transient}\n", "test.yaml:3:1: unknown key \"ruls\""},
		{"an unknown key of a rule", withRules("  - {id: a, class: auth, disposition: auth, hnt: x}\n"), "test.yaml:4:45: rule a: unknown key \"hnt\""},
		{"an unknown field of match", withRules("  - {id: a, match: {stder: x}, class: auth, disposition: auth}\n"), "test.yaml:4:21: rule a: unknown key \"stder\""},
		{"an unknown class", withRules("  - {id: a, class: oops, disposition: auth}\n"), "test.yaml:4:20: rule a: unknown class \"oops\""},
		{"an unknown phase", withRules("  - {id: a, match: {phase: start}, class: auth, disposition: auth}\n"), "test.yaml:4:28: rule a: unknown phase \"start\""},
		{"a bad pattern", withRules("  - {id: a, match: {text: 'a('}, class: auth, disposition: auth}\n"), "test.yaml:4:27: rule a: pattern: missing closing ): \"a(\""},
		{"a pattern that looks ahead", withRules("  - {id: a, match: {text: '(?=x)a'}, class: auth, disposition: auth}\n"), "rule a: pattern: invalid or unsupported Perl syntax: \"(?=\"; RE2 cannot look ahead or behind"},
		{"a pattern that looks behind", withRules("  - {id: a, match: {text: '(?<!x)a'}, class: auth, disposition: auth}\n"), "; RE2 cannot look ahead or behind"},
		{"a pattern that refers to a group", withRules("  - {id: a, match: {text: '(a)\\1'}, class: auth, disposition: auth}\n"), "rule a: pattern: invalid escape sequence: \"\\\\1\"; RE2 cannot refer to what a group caught"},
		{"a pattern that refers to a named group", withRules("  - {id: a, match: {text: '(?P<x>a)(?P=x)'}, class: auth, disposition: auth}\n"), "; RE2 cannot refer to what a group caught"},
		{"a pattern that refers to a named group by its other form", withRules("  - {id: a, match: {text: '(?P<x>a)\\k<x>'}, class: auth, disposition: auth}\n"), "; RE2 cannot refer to what a group caught"},
		{"a pattern with an atomic group", withRules("  - {id: a, match: {text: '(?>a)'}, class: auth, disposition: auth}\n"), "; RE2 has no atomic groups"},
		{"a long pattern", withRules("  - {id: a, match: {text: '" + strings.Repeat("a", 1025) + "'}, class: auth, disposition: auth}\n"), "at most 1024 are allowed"},
		{"a bad range", withRules("  - {id: a, match: {http_status: 500..400}, class: auth, disposition: auth}\n"), "\"500..400\" is no number and no range"},
		{"a match without a condition", withRules("  - {id: a, match: {}, class: auth, disposition: auth}\n"), "rule a: a match without a condition"},
		{"two rules with one id", withRules("  - {id: last, match: {text: x}, class: auth, disposition: auth}\n"), "test.yaml:5:10: rule last: the id is taken by another rule"},
		{"the id of what is not matched", withRules("  - {id: abandoned, match: {text: x}, class: auth, disposition: auth}\n"), `test.yaml:4:10: rule abandoned: "abandoned" stands for the verdict under the key of that name`},
		{"a hint with a name no pattern catches", withRules("  - {id: a, match: {text: 'x'}, class: auth, disposition: auth, hint: 'See {file}.'}\n"), "test.yaml:4:71: rule a: the hint names {file}"},
		{"a hint with an empty name", withRules("  - {id: a, match: {text: '(x)'}, class: auth, disposition: auth, hint: 'See {|it}.'}\n"), "the hint names {}"},
		{"a last rule that does not match everything", "name: mine\nversion: 1\nrules:\n  - {id: a, match: {text: x}, class: auth, disposition: auth}\n", "test.yaml:4:5: rule a: the last rule must match everything"},
		{"a policy without a duration", "policies: {auth: {after: 1}}\n" + minimal, `a policy that skips needs "for"`},
		{"a bad duration", "policies: {auth: {after: 1, for: 1 day}}\n" + minimal, "a duration such as 15m or 24h is expected"},
		{"a skip of no time", "policies: {auth: {after: 1, for: [1h, 0s]}}\n" + minimal, "test.yaml:1:39: a duration such as 15m or 24h is expected"},
		{"a brake without times", "brake: {failures: 3}\n" + minimal, `a brake needs "within" and "for"`},
		{"an alias", "name: &n mine\nversion: 1\nrules:\n  - {id: *n, class: unknown, disposition: transient}\n", "anchors and aliases are not allowed"},
		{"a second document", minimal + "---\nname: b\n", "a second document"},
		{"another version of the language", strings.Replace(minimal, "version: 1", "version: 2", 1), "version \"2\" of the rule language is not known"},
		{"a repeated key", "name: other\n" + minimal, "key \"name\" a second time"},
		{"no rules", "name: mine\nversion: 1\n", "key \"rules\" is missing"},
		{"too much text", "#" + strings.Repeat("x", rules.MaxSetBytes) + "\n" + minimal, "at most 262144 are allowed"},
		{"too many rules", withRules(strings.Repeat("  - {id: a, match: {text: x}, class: auth, disposition: auth}\n", rules.MaxRules)), "501 rules, at most 500 are allowed"},
		{"too many gates and no rules", "name: mine\nversion: 1\ngates:\n" + strings.Repeat("  - {id: a, gate: auth_required}\n", rules.MaxRules+1), "test.yaml:4:3: 501 rules, at most 500 are allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := rules.Parse("test.yaml", []byte(tc.text))
			var all rules.ParseErrors
			if !errors.As(err, &all) {
				t.Fatalf("got error %v, want ParseErrors", err)
			}
			if !slices.ContainsFunc(all, func(e *rules.ParseError) bool { return strings.Contains(e.Error(), tc.want) }) {
				t.Errorf("got %q, want one that says %q", all, tc.want)
			}
			var first *rules.ParseError
			if !errors.As(err, &first) || first != all[0] {
				t.Errorf("errors.As gives %v, want the first fault", first)
			}
		})
	}
}

func TestAFaultOfNoOtherEngineGetsNoSuchExplanation(t *testing.T) {
	for _, source := range []string{`\x1`, `\x{110000}`, `\x{1`, `a**`, `(`} {
		_, err := rules.Parse("test.yaml", []byte(withRules("  - {id: a, match: {text: '"+source+"'}, class: auth, disposition: auth}\n")))
		if err == nil || strings.Contains(err.Error(), "RE2") {
			t.Errorf("%s: got error %v, want one that does not speak of other engines", source, err)
		}
	}
}

func TestEveryFaultIsReported(t *testing.T) {
	_, err := rules.Parse("test.yaml", []byte(withRules("  - {id: a, class: oops, disposition: auth}\n  - {id: b, class: auth, disposition: never}\n")))
	var all rules.ParseErrors
	if !errors.As(err, &all) || len(all) != 2 || all[0].Line != 4 || all[1].Line != 5 {
		t.Fatalf("got %v, want one fault in line 4 and one in line 5", err)
	}
	_, err = rules.Parse("test.yaml", []byte(withRules("  - {id: a, class: oops, disposition: auth, hint: '{file}'}\n")))
	if !errors.As(err, &all) || len(all) != 2 || all[0].Column > all[1].Column {
		t.Fatalf("got %v, want two faults of one line in the order of the text", all)
	}
}

func TestPoliciesComeFromTheRuleThenItsClassThenItsDisposition(t *testing.T) {
	s := mustParse(t, `
name: mine
version: 1
policies: {deterministic: {after: 3, for: [1h, 4h]}, transient: {after: 10, over: 1h, for: 5m}}
class_policies: {command_not_found: {after: 1, for: 15m, requalify: false}}
retry: [network]
any_failures: {after: 20, over: 24h, for: 6h}
brake: {failures: 10, within: 10m, for: 60s}
rules:
  - {id: own, match: {text: a}, class: config, disposition: deterministic, skip: {after: 2, for: 1m}, retry: true}
  - {id: by-class, match: {text: b}, class: command_not_found, disposition: deterministic}
  - {id: by-disposition, match: {text: c}, class: config, disposition: deterministic}
  - {id: retried, match: {text: d}, class: network, disposition: transient}
  - {id: not-retried, match: {text: e}, class: network, disposition: deterministic}
  - {id: last, class: unknown, disposition: ignore}
`)
	type row struct {
		ID     string
		Policy rules.SkipPolicy
		Retry  bool
	}
	hours := []time.Duration{time.Hour, 4 * time.Hour}
	want := []row{
		{"own", rules.SkipPolicy{After: 2, TTL: []time.Duration{time.Minute}, Requalify: true}, true},
		{"by-class", rules.SkipPolicy{After: 1, TTL: []time.Duration{15 * time.Minute}}, false},
		{"by-disposition", rules.SkipPolicy{After: 3, TTL: hours, Requalify: true}, false},
		{"retried", rules.SkipPolicy{After: 10, MinSpan: time.Hour, TTL: []time.Duration{5 * time.Minute}, Requalify: true}, true},
		{"not-retried", rules.SkipPolicy{After: 3, TTL: hours, Requalify: true}, false},
		{"last", rules.SkipPolicy{}, false},
	}
	var got []row
	for _, r := range s.Rules() {
		got = append(got, row{r.ID, r.Policy, r.Retry})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if want := (rules.SkipPolicy{After: 20, MinSpan: 24 * time.Hour, TTL: []time.Duration{6 * time.Hour}, Requalify: true}); !cmp.Equal(s.AnyFailures(), want) {
		t.Errorf("any_failures: got %+v, want %+v", s.AnyFailures(), want)
	}
	if want := (rules.Brake{Failures: 10, Within: 10 * time.Minute, For: time.Minute}); s.Brake() != want {
		t.Errorf("brake: got %+v, want %+v", s.Brake(), want)
	}
}

func TestASetKnowsItsTextByItsHash(t *testing.T) {
	s := mustParse(t, minimal)
	if s.Name() != "mine" || s.Text() != minimal || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(s.Hash()) {
		t.Errorf("got name %q, hash %q, text %q", s.Name(), s.Hash(), s.Text())
	}
	if other := mustParse(t, minimal+"# a remark\n"); other.Hash() == s.Hash() {
		t.Error("another text has the same hash")
	}
}

func TestWhatIsProbablyNoIntentionIsWarnedOf(t *testing.T) {
	for _, tc := range []struct{ name, rule, want string }{
		{"all values are taken above", "  - {id: a, match: {http_status: 400..499}, class: auth, disposition: auth}\n  - {id: b, match: {http_status: [401, 403], phase: connect}, class: auth, disposition: auth}\n", "rule a above it takes everything"},
		{"all patterns are taken above", "  - {id: a, match: {text: ['x', 'y|z']}, class: auth, disposition: auth}\n  - {id: b, match: {text: z}, class: auth, disposition: auth}\n", "rule a above it takes everything"},
		{"unless takes all", "  - {id: b, match: {phase: connect}, unless: {phase: [connect, spawn]}, class: auth, disposition: auth}\n", "unless holds whenever match does"},
		{"an empty pattern", "  - {id: b, match: {text: ''}, class: auth, disposition: auth}\n", `the pattern "" matches every text`},
		{"an empty alternative", "  - {id: b, match: {text: 'x|'}, class: auth, disposition: auth}\n", `the pattern "" matches every text`},
		{"a pattern of options", "  - {id: b, match: {text: x}, unless: {error: '(?:y|z*)?'}, class: auth, disposition: auth}\n", `the pattern "(?:y|z*)?" matches every text`},
		{"a brace of a hint is not closed", "  - {id: b, match: {text: '(?P<file>x)'}, class: auth, disposition: auth, hint: 'See {file} and {file'}\n", `a brace that is not closed: "{file"`},
		{"a pattern has no group of the hint's", "  - {id: b, match: {text: ['a (?P<file>x)', 'y']}, class: auth, disposition: auth, hint: 'See {file}.'}\n", `the hint names {file}, which the pattern "y" may not catch`},
		{"an alternative has none", "  - {id: b, match: {text: 'a (?P<file>x)|y'}, class: auth, disposition: auth, hint: 'See {file}.'}\n", `the pattern "y" may not`},
		{"a group may be left out", "  - {id: b, match: {text: 'a(?: (?P<file>x))?'}, class: auth, disposition: auth, hint: 'See {file}.'}\n", "may not catch"},
		{"a group may catch nothing", "  - {id: b, match: {text: 'a (?P<file>x*)'}, class: auth, disposition: auth, hint: 'See {file}.'}\n", "may not catch"},
		{"one branch has no group", "  - {id: b, match: {text: 'a (?:(?P<file>x)|y)'}, class: auth, disposition: auth, hint: 'See {file}.'}\n", "may not catch"},
		{"a pattern above finds each of its literals", "  - {id: a, match: {text: 'module|package'}, class: auth, disposition: auth}\n  - {id: b, match: {text: ['No module named (?P<m>x+)', 'bad Package$']}, class: auth, disposition: auth}\n", "rule a above it takes everything"},
		{"any is every block", "  - {id: a, match: {any: module}, class: auth, disposition: auth}\n  - {id: b, match: {text: 'no module'}, class: auth, disposition: auth}\n", "rule a above it takes everything"},
		{"ranges above meet", "  - {id: a, match: {http_status: [450..499, 400..449]}, class: auth, disposition: auth}\n  - {id: b, match: {http_status: 410..490}, class: auth, disposition: auth}\n", "rule a above it takes everything"},
		{"two rules share its values", "  - {id: a, match: {phase: spawn}, class: auth, disposition: auth}\n  - {id: c, match: {phase: [connect, handshake]}, class: auth, disposition: auth}\n  - {id: b, match: {phase: [handshake, spawn], text: x}, class: auth, disposition: auth}\n", "rules c, a above it take everything"},
		{"two rules share its numbers", "  - {id: a, match: {exit_code: none}, class: auth, disposition: auth}\n  - {id: c, match: {exit_code: 1..}, class: auth, disposition: auth}\n  - {id: b, match: {exit_code: [none, 3]}, class: auth, disposition: auth}\n", "rules c, a above it take everything"},
		{"two rules share its patterns", "  - {id: a, match: {text: x}, class: auth, disposition: auth}\n  - {id: c, match: {text: y}, class: auth, disposition: auth}\n  - {id: b, match: {text: 'x|y'}, class: auth, disposition: auth}\n", "rules a, c above it take everything"},
		{"no status is so high", "  - {id: b, match: {http_status: [0, 1000..]}, class: auth, disposition: auth}\n", "no http_status is such a number"},
		{"nothing takes less than no time", "  - {id: b, match: {elapsed_ms: ..0}, class: auth, disposition: auth}\n", "no elapsed_ms is such a number"},
		{"stdio has no status", "  - {id: b, match: {transport: stdio, http_status: 401}, class: auth, disposition: auth}\n", "a server over stdio has no HTTP status"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := mustParse(t, withRules(tc.rule)).Check()
			if len(got) != 1 || got[0].Rule != "b" || !strings.Contains(got[0].Detail, tc.want) {
				t.Errorf("got %+v, want one warning about b that says %q", got, tc.want)
			}
		})
	}
	for name, gates := range map[string]string{
		"the pattern \"\" matches every text": "{id: b, match: {location: ''}, gate: auth_required}",
		"unless holds whenever match does":    "{id: b, match: {http_status: 401}, unless: {http_status: 400..499}, gate: auth_required}",
		"no rule gives its class":             "{id: b, match: {http_status: 401}, class: [auth, timeout], gate: auth_required}",
		"gate a above it takes everything":    "{id: a, match: {http_status: [401, 403]}, gate: auth_required}, {id: b, match: {http_status: 403, text: scope}, class: unknown, gate: insufficient_scope}",
	} {
		got := mustParse(t, minimal+"gates: ["+gates+"]\n").Check()
		if len(got) != 1 || got[0].Rule != "b" || got[0].Line != 5 || !strings.Contains(got[0].Detail, name) {
			t.Errorf("got %+v, want one warning about gate b that says %q", got, name)
		}
	}
	for name, fine := range map[string]string{
		"a longer word above":           "  - {id: a, match: {text: modules}, class: auth, disposition: auth}\n  - {id: b, match: {text: module}, class: auth, disposition: auth}\n",
		"a word at its end above":       "  - {id: a, match: {text: 'module$'}, class: auth, disposition: auth}\n  - {id: b, match: {text: 'no module'}, class: auth, disposition: auth}\n",
		"a word in capitals above":      "  - {id: a, match: {text: '(?-i:Module)'}, class: auth, disposition: auth}\n  - {id: b, match: {text: 'no module'}, class: auth, disposition: auth}\n",
		"the decisive block is no any":  "  - {id: a, match: {text: module}, class: auth, disposition: auth}\n  - {id: b, match: {any: 'no module'}, class: auth, disposition: auth}\n",
		"ranges above leave one out":    "  - {id: a, match: {http_status: [400..449, 451..499]}, class: auth, disposition: auth}\n  - {id: b, match: {http_status: 410..490}, class: auth, disposition: auth}\n",
		"rules above leave one out":     "  - {id: a, match: {phase: spawn}, class: auth, disposition: auth}\n  - {id: b, match: {phase: [spawn, connect]}, class: auth, disposition: auth}\n",
		"numbers that were not seen":    "  - {id: a, match: {exit_code: any}, class: auth, disposition: auth}\n  - {id: b, match: {exit_code: none}, class: auth, disposition: auth}\n",
		"a rule that lets some through": "  - {id: a, match: {text: x}, unless: {phase: connect}, class: auth, disposition: auth}\n  - {id: b, match: {text: x}, class: auth, disposition: auth}\n",
		"a field that must be empty":    "  - {id: a, match: {text: '\\A\\z'}, class: auth, disposition: auth}\n",
		"other words":                   "  - {id: a, match: {text: ['a (?P<file>x)', y]}, class: auth, disposition: auth, hint: 'See {file|it}.'}\n",
		"a group in either branch":      "  - {id: a, match: {text: '(?:a (?P<file>x)|b (?P<file>y))+'}, class: auth, disposition: auth, hint: 'See {file}.'}\n",
		"another text has the group":    "  - {id: a, match: {text: '(?P<file>x)', frame: z}, class: auth, disposition: auth, hint: 'See {file}.'}\n",
	} {
		if got := mustParse(t, withRules(fine)).Check(); len(got) != 0 {
			t.Errorf("%s: got %+v, want no warning", name, got)
		}
	}
}

// The schema for editors and the parser know the same keys.
func TestSchemaHasTheParsersKeys(t *testing.T) {
	var schema struct {
		Properties map[string]json.RawMessage
		Defs       map[string]struct{ Properties map[string]json.RawMessage } `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(rules.Schema), &schema); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, text string
		properties map[string]json.RawMessage
	}{
		{"set", "bogus: 1\n" + minimal, schema.Properties},
		{"rule", withRules("  - {id: a, bogus: 1, class: auth, disposition: auth}\n"), schema.Defs["rule"].Properties},
		{"match", withRules("  - {id: a, match: {bogus: 1}, class: auth, disposition: auth}\n"), schema.Defs["match"].Properties},
		{"policy", "any_failures: {after: 0, bogus: 1}\n" + minimal, schema.Defs["policy"].Properties},
		{"gate", minimal + "gates:\n  - {id: a, bogus: 1, gate: auth_required}\n", schema.Defs["gate"].Properties},
	} {
		_, err := rules.Parse("test.yaml", []byte(tc.text))
		m := regexp.MustCompile(`unknown key "bogus", one of (.*) is expected`).FindStringSubmatch(err.Error())
		if m == nil {
			t.Fatalf("%s: got %v", tc.name, err)
		}
		var keys []string
		for key := range tc.properties {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if diff := cmp.Diff(strings.Split(m[1], ", "), keys); diff != "" {
			t.Errorf("%s (-parser +schema):\n%s", tc.name, diff)
		}
	}
}

// What is counted is known always, so that none of it is 0.
func TestNoneIsNothingCounted(t *testing.T) {
	s := mustParse(t, withRules("  - {id: quiet, match: {stderr_bytes: none, junk_lines: none}, class: config, disposition: auth}\n"))
	for _, tc := range []struct {
		e    events.Evidence
		want string
	}{
		{events.Evidence{}, "quiet"},
		{events.Evidence{StderrBytes: 1}, "last"},
		{events.Evidence{StdoutJunk: &events.Junk{Count: 1}}, "last"},
	} {
		if got := s.Classify(tc.e).Rule; got != tc.want {
			t.Errorf("%+v is judged by %q, want %q", tc.e, got, tc.want)
		}
	}
}

func TestAValueOfAnotherKindIsOneFault(t *testing.T) {
	for _, match := range []string{"null", "[]", "x", "{exit_code: null}", "{phase: null}", "{signal: {}}", "{text: null}", "{http_status: {from: 400}}"} {
		_, err := rules.Parse("test.yaml", []byte(withRules("  - {id: a, match: "+match+", class: auth, disposition: auth}\n")))
		if faults, ok := errors.AsType[rules.ParseErrors](err); !ok || len(faults) != 1 {
			t.Errorf("match %s: %v", match, err)
			for _, f := range faults {
				t.Log(f)
			}
		}
	}
}
