package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mcpledger/projections/rules"
)

func (p *program) rulesCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a rule set and say what is wrong, by line and column",
		Long: "Check the rule set in a file. What is wrong goes to standard error as FILE:LINE:COLUMN, and\n" +
			"the exit code is 2; what is allowed and probably no intention is printed as a warning, with\n" +
			"exit code 0.",
		Args: exactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error { return p.checkRules(args[0]) },
	}
}

// checkedRules is what a check of a rule set found, as --json prints it.
type checkedRules struct {
	File     string        `json:"file"`
	Set      string        `json:"set"` // empty when it has errors
	Hash     string        `json:"hash"`
	Rules    int           `json:"rules"`
	Gates    int           `json:"gates"`
	Errors   []rulesRemark `json:"errors"`
	Warnings []rulesRemark `json:"warnings"`
}

// rulesRemark is something about a place in a rule set. Line and Column are from 1, 0
// when unknown.
type rulesRemark struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
}

func (p *program) checkRules(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return usagef("%v", err)
	}
	found := checkedRules{File: file, Errors: []rulesRemark{}, Warnings: []rulesRemark{}}
	set, err := rules.Parse(file, text)
	faults, wrong := errors.AsType[rules.ParseErrors](err)
	switch {
	case wrong:
		for _, f := range faults {
			found.Errors = append(found.Errors, rulesRemark{f.Line, f.Column, f.Rule, f.Detail})
		}
	case err != nil:
		return err
	default:
		found.Set, found.Hash, found.Rules, found.Gates = set.Name(), set.Hash(), len(set.Rules()), len(set.Gates())
		found.Warnings = append(found.Warnings, warningsOf(set)...)
	}
	if p.json {
		err = p.printJSON(found)
	} else {
		err = p.printChecked(found, faults)
	}
	if err == nil && wrong {
		return &exitError{code: exitUsage}
	}
	return err
}

// warningsOf returns what is allowed in a set and probably no intention, and why it may
// not be put in force.
func warningsOf(set *rules.Set) []rulesRemark {
	var all []rulesRemark
	for _, w := range set.Check() {
		all = append(all, rulesRemark{Line: w.Line, Rule: w.Rule, Detail: w.Detail})
	}
	for _, g := range set.GatesBeyondLaw3() {
		all = append(all, rulesRemark{Line: g.Line, Column: g.Column, Rule: g.ID, Detail: "gates connections on more than 401, 403, scope and missing credentials, so the set can be replayed and shadowed but not put in force"})
	}
	if builtin, err := rules.Builtin(set.Name()); err == nil && builtin.Hash() != set.Hash() {
		line, column := set.NamePlace()
		all = append(all, rulesRemark{Line: line, Column: column, Detail: fmt.Sprintf("the set is named %q like a built-in one, so it cannot be put in force", set.Name())})
	}
	return all
}

func (p *program) printChecked(found checkedRules, faults rules.ParseErrors) error {
	for _, f := range faults {
		fmt.Fprintln(p.stderr, oneLine(f.Error()))
	}
	for _, w := range found.Warnings {
		p.warnOfRule(found.File, w)
	}
	if len(faults) > 0 {
		return nil
	}
	_, err := fmt.Fprintf(p.stdout, "%s is a valid rule set: %s, with %s and %s\n",
		found.File, found.Set, count(found.Rules, "rule"), count(found.Gates, "gate"))
	return err
}

// warnOfRule prints a remark about a set that is valid.
func (p *program) warnOfRule(file string, w rulesRemark) {
	remark := &rules.ParseError{Name: file, Line: w.Line, Column: w.Column, Rule: w.Rule, Detail: w.Detail}
	fmt.Fprintf(p.stdout, "warning: %s\n", oneLine(remark.Error()))
}
