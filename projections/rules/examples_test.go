package rules_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// example is one failure of testdata/examples with the judgment the default set must
// reach. Same and Other hold fields to be merged over the evidence: the same failure
// another time, and another failure that looks like it.
type example struct {
	ID       string         `yaml:"id"`
	Want     string         `yaml:"want"` // class/disposition
	Evidence map[string]any `yaml:"evidence"`
	Same     map[string]any `yaml:"same"`
	Other    map[string]any `yaml:"other"`
	Hint     string         `yaml:"hint"` // the whole hint; empty: any
}

// with returns the evidence with fields merged over it.
func (x example) with(t testing.TB, fields map[string]any) events.Evidence {
	t.Helper()
	merged := map[string]any{}
	for _, m := range []map[string]any{x.Evidence, fields} {
		for key, value := range m {
			merged[key] = value
		}
	}
	raw, err := json.Marshal(merged)
	if err != nil {
		t.Fatal(err)
	}
	var e events.Evidence
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		t.Fatalf("%s: %v", x.ID, err)
	}
	return e
}

func readExamples(t testing.TB) []example {
	t.Helper()
	paths, err := filepath.Glob("testdata/examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []example
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var list []example
		if err := yaml.Unmarshal(text, &list); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, list...)
	}
	return all
}

func TestDefaultSetJudgesEveryExample(t *testing.T) {
	set := rules.Default()
	for _, x := range readExamples(t) {
		t.Run(x.ID, func(t *testing.T) {
			v := set.Classify(x.with(t, nil))
			if got := string(v.Class) + "/" + string(v.Disposition); got != x.Want {
				t.Errorf("got %s by rule %s from %q, want %s", got, v.Rule, v.Text, x.Want)
			}
			if x.Hint != "" && v.Hint != x.Hint {
				t.Errorf("got hint %q, want %q", v.Hint, x.Hint)
			}
			if strings.ContainsAny(v.Hint, "…{}") {
				t.Errorf("got hint %q, want one without a gap", v.Hint)
			}
			if x.Same != nil {
				if w := set.Classify(x.with(t, x.Same)); w.Signature != v.Signature {
					t.Errorf("the same failure another time has another signature: %q by %s, then %q by %s", v.Text, v.Rule, w.Text, w.Rule)
				}
			}
			if x.Other != nil {
				if w := set.Classify(x.with(t, x.Other)); w.Signature == v.Signature {
					t.Errorf("another failure has the same signature: %q and %q by %s", v.Text, w.Text, v.Rule)
				}
			}
		})
	}
}
