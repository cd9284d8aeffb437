package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mcpledger/projections/rules"
)

func (p *program) rulesTestCommand() *cobra.Command {
	var with string
	var all bool
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Judge examples of failures and compare with what was expected",
		Long: "Judge the examples in a file by a rule set, and list those it judges otherwise than the\n" +
			"example expects. The file is a YAML list, or has one JSON object a line. An example has an id,\n" +
			"the evidence, under \"evidence\" or beside the rest, and what is expected of the verdict:\n" +
			"expected_class, expected_disposition, expected_rule, or want as CLASS/DISPOSITION. Fields under\n" +
			"same (or same_failure_variant) are put over the evidence and must not change the signature;\n" +
			"those under other (or near_miss) must. The exit code is 1 when one differs.",
		Args: exactArgs("FILE"),
	}
	cmd.Flags().StringVar(&with, "rules", rules.DefaultName, "the rule `set` or file to judge by")
	cmd.Flags().BoolVar(&all, "all", false, "list the examples that are judged as expected, too")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		set, err := readRules(with)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(args[0])
		if err != nil {
			return usagef("%v", err)
		}
		examples, err := readExamples(text)
		if err != nil {
			return usagef("%s: %v", args[0], err)
		}
		return p.testRules(set, examples, all)
	}
	return cmd
}

// judgedExample is what a rule set made of one expectation of an example.
type judgedExample struct {
	ID       string `json:"id"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
	Rule     string `json:"rule"` // that gave the verdict
	Text     string `json:"text"` // that decided
	OK       bool   `json:"ok"`
}

// testRules judges examples, prints those that are judged otherwise than expected, or
// all, and returns an error if there is one.
func (p *program) testRules(set *rules.Set, examples []example, all bool) error {
	shown, differ, judged := []judgedExample{}, 0, 0
	for _, x := range examples {
		for _, j := range x.judge(set) {
			judged++
			if !j.OK {
				differ++
			}
			if all || !j.OK {
				shown = append(shown, j)
			}
		}
	}
	if err := p.printJudged(set, shown, judged, differ); err != nil {
		return err
	}
	if differ > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

func (p *program) printJudged(set *rules.Set, shown []judgedExample, judged, differ int) error {
	if p.json {
		return p.printJSON(map[string]any{
			"set": set.Name(), "hash": set.Hash(), "judged": judged, "differ": differ, "examples": shown,
		})
	}
	if len(shown) > 0 {
		t := newTable(p.stdout, "EXAMPLE", "RESULT", "EXPECTED", "GOT", "RULE", "DECISIVE TEXT")
		for _, j := range shown {
			mark := "ok"
			if !j.OK {
				mark = "differs"
			}
			t.row(j.ID, mark, j.Expected, j.Got, j.Rule, j.Text)
		}
		if err := t.flush(); err != nil {
			return err
		}
		fmt.Fprintln(p.stdout)
	}
	_, err := fmt.Fprintf(p.stdout, "%s judges %d of %s as expected\n", set.Name(), judged-differ, count(judged, "expectation"))
	return err
}

// judge compares what a set makes of the example and of its variants with what is
// expected of them.
func (x example) judge(set *rules.Set) []judgedExample {
	v := set.Classify(x.evidence)
	var all []judgedExample
	if x.expected != (expectation{}) {
		all = append(all, x.expected.compare(x.id, v))
	}
	for _, s := range x.variants {
		w := set.Classify(s.evidence)
		signature := judgedExample{ID: x.id + " " + s.name, Expected: "the same signature", Got: "another", Rule: w.Rule, Text: w.Text}
		if s.differs {
			signature.Expected, signature.Got = "another signature", "the same"
		}
		if signature.OK = (w.Signature == v.Signature) != s.differs; signature.OK {
			signature.Got = signature.Expected
		}
		all = append(all, signature)
		if s.expected != (expectation{}) {
			all = append(all, s.expected.compare(x.id+" "+s.name, w))
		}
	}
	return all
}

// compare holds a verdict against what is expected of it; what is not expected is not
// looked at.
func (e expectation) compare(id string, v rules.Verdict) judgedExample {
	j := judgedExample{ID: id, Rule: v.Rule, Text: v.Text, OK: true}
	for _, part := range []struct{ want, got string }{
		{e.class, string(v.Class)}, {e.disposition, string(v.Disposition)}, {e.rule, v.Rule},
	} {
		if part.want == "" {
			continue
		}
		j.Expected, j.Got = joined(j.Expected, part.want), joined(j.Got, part.got)
		j.OK = j.OK && part.want == part.got
	}
	return j
}

func joined(a, b string) string {
	if a == "" {
		return cmp.Or(b, "-")
	}
	return a + "/" + cmp.Or(b, "-")
}
