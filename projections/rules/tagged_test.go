package rules_test

import (
	"regexp"
	"strings"
	"testing"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

func TestATagBeforeEachLineChangesNoJudgment(t *testing.T) {
	set := rules.Default()
	several, indented := regexp.MustCompile(`\S\s*\n\s*\S`), regexp.MustCompile(`\n[ \t]+\S`)
	for tag, may := range map[string]*regexp.Regexp{"crm-1  | ": several, "[crm] ": indented} {
		n := 0
		for _, x := range readExamples(t) {
			e := x.with(t, nil)
			if !may.MatchString(e.StderrTail) {
				continue
			}
			n++
			v := set.Classify(e)
			e.StderrHead, e.StderrTail = tagged(e.StderrHead, tag), tagged(e.StderrTail, tag)
			if w := set.Classify(e); w.Rule != v.Rule || w.Signature != v.Signature || w.Text != v.Text {
				t.Errorf("%s: %q by %s, with %q %q by %s", x.ID, v.Text, v.Rule, tag, w.Text, w.Rule)
			}
		}
		if n < 50 {
			t.Errorf("%q was put before the lines of %d examples alone", tag, n)
		}
	}
}

// A program's own tag stands before records, each of which says something of its own.
func TestAProgramsOwnTagBeginsRecords(t *testing.T) {
	v := rules.Default().Classify(events.Evidence{StderrTail: "[crm] Failed to start: CRM_API_KEY must be set\n[crm] Retrying in 5 s"})
	if want := "Failed to start: CRM_API_KEY must be set"; v.Text != want {
		t.Errorf("decided by %q, want %q", v.Text, want)
	}
}

// The beginning of a long text is cut wherever its room ends.
func TestATagThatIsCutChangesNoJudgment(t *testing.T) {
	const tag, said = "crm-1  | ", "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nModuleNotFoundError: No module named 'crm'\n"
	set := rules.Default()
	want := set.Classify(events.Evidence{StderrHead: said})
	for end := range tag {
		for _, mark := range []string{"", "…"} {
			got := set.Classify(events.Evidence{StderrHead: tagged(said, tag) + tag[:end] + mark})
			if got.Rule != want.Rule || got.Signature != want.Signature || got.Text != want.Text {
				t.Errorf("cut to %q: %q by %s, want %q by %s", tag[:end]+mark, got.Text, got.Rule, want.Text, want.Rule)
			}
		}
	}
}

func tagged(text, tag string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(tag + line)
	}
	return b.String()
}
