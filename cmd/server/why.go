package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/api"
)

func (p *program) whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Explain why a server is as it is, down to the events",
		Args:  exactArgs("NAME"),
	}
	query := moment(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return printOne(p, cmd, "/api/servers/"+url.PathEscape(args[0])+"/why", query(), p.explain)
	}
	return cmd
}

// explain prints the summary, the rule, the events it rests on and what would change
// it, in this order.
func (p *program) explain(why api.Explanation) error {
	w := p.stdout
	fmt.Fprintf(w, "%s is %s\n", oneLine(string(why.Server)), why.State)
	fmt.Fprintf(w, "  %s\n", oneLine(why.Summary))
	if why.Rule.Id != "" {
		r := why.Rule
		fmt.Fprintf(w, "\nRule %s of set %s: %s, %s; %s\n", r.Id, r.Set, r.Class, r.Disposition, policyInWords(r.Policy))
		if r.Hint != "" {
			fmt.Fprintf(w, "  %s\n", oneLine(r.Hint))
		}
	}
	if len(why.Chain) > 0 {
		fmt.Fprintln(w, "\nIt rests on")
		t := newTable(w, "  EVENT", "TIME", "TYPE", "COUNTS", "NOTE")
		for _, l := range why.Chain {
			t.row(fmt.Sprintf("  #%d", l.Sequence), stamp(l.Time.Time()), string(l.Type), strings.ReplaceAll(string(l.Role), "_", " "), l.Note)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	if len(why.ClearsOn) > 0 {
		fmt.Fprintln(w, "\nWhat changes it")
		for _, c := range why.ClearsOn {
			fmt.Fprintf(w, "  %s\n", oneLine(clearingInWords(c)))
		}
	}
	return nil
}

func clearingInWords(c api.Clearing) string {
	words := strings.ReplaceAll(string(c.What), "_", " ")
	if c.At != nil {
		words += " at " + stamp(c.At.Time())
	}
	if c.Detail != "" {
		words += ": " + c.Detail
	}
	return words
}

// policyInWords says when a rule's failures make a skip: "skips after 3 runs for 1h,
// 4h, then 24h".
func policyInWords(policy api.SkipPolicy) string {
	if policy.After == 0 {
		return "never skips"
	}
	words := "skips after " + count(policy.After, "run")
	if policy.MinSpanMs > 0 {
		words += " over at least " + shortDuration(policy.MinSpanMs)
	}
	for i, ms := range policy.TtlMs {
		switch {
		case i == 0:
			words += " for "
		case i == len(policy.TtlMs)-1:
			words += ", then "
		default:
			words += ", "
		}
		words += shortDuration(ms)
	}
	return words
}

// shortDuration writes a duration without the zeros: "1h", "90s", "2m30s".
func shortDuration(ms int64) string {
	s := (time.Duration(ms) * time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
