package rules_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"testing"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// corpusEnv may name a file of labelled failures, one JSON object a line, with
// variants to be merged over each: same_failure_variant must keep the signature,
// near_miss must change it.
const corpusEnv = "MCPLEDGER_CORPUS"

// corpusNames maps the names of such a file to those of the evidence.
var corpusNames = map[string]string{"stderr": "stderr_tail", "duration_ms": "elapsed_ms", "command_kind": "command"}

// corpusCase is one line of the file: the evidence's fields among the labels.
type corpusCase map[string]any

func (c corpusCase) text(key string) string {
	s, _ := c[key].(string)
	return s
}

// with returns the case with the fields of its variant merged over it, and whether
// it has that variant.
func (c corpusCase) with(variant string) (corpusCase, bool) {
	fields, ok := c[variant].(map[string]any)
	merged := maps.Clone(c)
	maps.Copy(merged, fields)
	return merged, ok
}

func (c corpusCase) evidence(t *testing.T) events.Evidence {
	t.Helper()
	fields := map[string]any{}
	for key, value := range c {
		if name, ok := corpusNames[key]; ok {
			key = name
		}
		if value != nil {
			fields[key] = value
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var e events.Evidence
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatalf("%s: %v", c.text("id"), err)
	}
	return e
}

func readCorpus(t *testing.T) []corpusCase {
	t.Helper()
	path := os.Getenv(corpusEnv)
	if path == "" {
		t.Skip(corpusEnv + " names no file")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []corpusCase
	for line := range bytes.Lines(text) {
		var c corpusCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// tally counts how often a claim held.
type tally struct{ held, all int }

func (c *tally) count(ok bool) bool {
	c.all++
	if ok {
		c.held++
	}
	return ok
}

func (c *tally) atLeast(t *testing.T, what string, share float64) {
	t.Helper()
	if c.all == 0 {
		return
	}
	got := float64(c.held) / float64(c.all)
	t.Logf("%-40s %d of %d (%.1f %%)", what, c.held, c.all, 100*got)
	if got < share {
		t.Errorf("%s: %.1f %%, want at least %.1f %%", what, 100*got, 100*share)
	}
}

// The default set agrees with the labels of a corpus of real failures.
func TestDefaultSetAgreesWithCorpus(t *testing.T) {
	set := rules.Default()
	var class, disposition, same, apart, kept, rendered tally
	judge := func(c corpusCase, label string) rules.Verdict {
		v := set.Classify(c.evidence(t))
		wantClass, wantDisposition := rules.Class(c.text("expected_class")), rules.Disposition(c.text("expected_disposition"))
		if !class.count(v.Class == wantClass) || v.Disposition != wantDisposition {
			t.Logf("%s%s: got %s/%s by %s from %q, want %s/%s", c.text("id"), label, v.Class, v.Disposition, v.Rule, v.Text, wantClass, wantDisposition)
		}
		disposition.count(v.Disposition == wantDisposition)
		if wantDisposition == rules.DispositionTransient {
			kept.count(v.Disposition == rules.DispositionTransient)
		}
		return v
	}
	for _, c := range readCorpus(t) {
		v := judge(c, "")
		if variant, ok := c.with("same_failure_variant"); ok {
			w := set.Classify(variant.evidence(t))
			if !same.count(v.Signature == w.Signature) {
				t.Logf("%s: a variant of the same failure has another signature: %s %q, %s %q", c.text("id"), v.Rule, v.Text, w.Rule, w.Text)
			}
		}
		if variant, ok := c.with("rendering_variant"); ok {
			w := set.Classify(variant.evidence(t))
			if !rendered.count(v.Signature == w.Signature) {
				t.Logf("%s: another rendering has another signature: %s %q, %s %q", c.text("id"), v.Rule, v.Text, w.Rule, w.Text)
			}
		}
		if miss, ok := c.with("near_miss"); ok {
			w := judge(miss, " (near miss)")
			if !apart.count(v.Signature != w.Signature) {
				t.Logf("%s: another failure has the same signature: %s %q, %q", c.text("id"), v.Rule, v.Text, w.Text)
			}
		}
	}
	class.atLeast(t, "class", 0.97)
	disposition.atLeast(t, "disposition", 0.98)
	kept.atLeast(t, "transient kept transient", 1)
	same.atLeast(t, "same failure, same signature", 1)
	rendered.atLeast(t, "same failure, other rendering", 0.5)
	apart.atLeast(t, "other failure, other signature", 0.99)
}
