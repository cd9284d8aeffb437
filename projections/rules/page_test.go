package rules_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/projections/rules"
)

var update = flag.Bool("update", false, "write docs/reference/rules.md anew")

const rulesPage = "../../docs/reference/rules.md"

// The page of the default set is made from the set, so it cannot say anything else.
func TestRulesPageIsTheDefaultSet(t *testing.T) {
	want := renderRules(rules.Default())
	if *update {
		if err := os.WriteFile(rulesPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(rulesPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the set says; go test ./projections/rules -run RulesPage -args -update (-want +got):\n%s", rulesPage, diff)
	}
}

// The page of the language has every key and every word of it, and its example is a set
// that nothing is wrong with.
func TestLanguagePageHasEveryWord(t *testing.T) {
	const page = "../../docs/reference/rule-language.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal([]byte(rules.Schema), &schema); err != nil {
		t.Fatal(err)
	}
	for _, word := range schemaWords(schema) {
		if !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("%s does not have %q", page, word)
		}
	}
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	set, err := rules.Parse(page, []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if warnings := set.Check(); len(warnings) > 0 {
		t.Errorf("the example of %s has warnings: %+v", page, warnings)
	}
}

// schemaWords lists the keys of the objects that a JSON Schema describes, and the words of
// its enumerations.
func schemaWords(schema any) (words []string) {
	switch node := schema.(type) {
	case []any:
		for _, item := range node {
			words = append(words, schemaWords(item)...)
		}
	case map[string]any:
		for key, value := range node {
			switch of := value.(type) {
			case map[string]any:
				if key == "properties" {
					words = slices.AppendSeq(words, maps.Keys(of))
				}
			case []any:
				for _, word := range of {
					if w, ok := word.(string); ok && key == "enum" && w != "1" {
						words = append(words, w)
					}
				}
			}
			words = append(words, schemaWords(value)...)
		}
	}
	return words
}

func renderRules(set *rules.Set) string {
	var b strings.Builder
	b.WriteString(`# The default rules

Made from the set itself, ` + "`projections/rules/sets/default.yaml`" + `, where each rule's patterns stand. The first rule that
matches decides; a weak one says how something ended and not why, and gives way to a rule above it that matches another
block of text. ` + "`why`" + ` names the rule. Names in braces are filled in from what was seen; where nothing was, the words behind
the bar stand for them. [The rule language](rule-language.md) is described apart.

`)
	unfinished, _ := set.Rule("abandoned")
	for _, r := range append(set.Rules(), unfinished) {
		fmt.Fprintf(&b, "## %s\n\n%s, %s%s; %s.\n\n%s\n\n", r.ID, r.Class, r.Disposition, weak(r), policyWords(r), r.Hint)
	}
	b.WriteString("# Gates\n\nA gate refuses calls until a check succeeds. It follows the status and the header, whatever the class.\n\n")
	b.WriteString("| rule | gate |\n| --- | --- |\n")
	for _, g := range set.Gates() {
		fmt.Fprintf(&b, "| %s | %s |\n", g.ID, g.Gate)
	}
	return b.String()
}

func weak(r rules.Rule) string {
	if r.Weak {
		return ", weak"
	}
	return ""
}

func policyWords(r rules.Rule) string {
	p := r.Policy
	if p.After == 0 {
		return "never skipped"
	}
	var steps []string
	for _, d := range p.TTL {
		steps = append(steps, short(d))
	}
	span := ""
	if p.MinSpan > 0 {
		span = " over at least " + short(p.MinSpan)
	}
	words := fmt.Sprintf("skipped after %d identical runs%s, for %s", p.After, span, strings.Join(steps, ", "))
	if p.After == 1 {
		words = strings.Replace(words, "1 identical runs", "1 run", 1)
	}
	if r.Retry {
		words += "; tried again inside a run"
	}
	return words
}

// short writes a duration without its zero parts: 1h, not 1h0m0s.
func short(d time.Duration) string {
	words := d.String()
	if strings.HasSuffix(words, "m0s") {
		words = strings.TrimSuffix(words, "0s")
	}
	if strings.HasSuffix(words, "h0m") {
		words = strings.TrimSuffix(words, "0m")
	}
	return words
}
