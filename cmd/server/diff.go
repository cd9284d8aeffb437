package main

import (
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/api"
)

func (p *program) diffCommand() *cobra.Command {
	var rules string
	cmd := &cobra.Command{
		Use:   "diff FROM [TO]",
		Short: "List the servers that stand differently at two moments",
		Long: "List the servers whose state, skip, gate or catalogue differ between two moments, each a\n" +
			"time such as 2026-03-04T12:00:00Z, 2h for two hours ago, or a sequence of the log. Without TO it\n" +
			"is the present.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("%s wants one moment or two: %s", cmd.CommandPath(), cmd.UseLine())
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&rules, "rules", "", "judge both moments by another rule `set`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		query := url.Values{}
		for i, given := range args {
			at, err := readMoment(given, p.now())
			if err != nil {
				return usagef("the %s moment is %q, %v", []string{"first", "second"}[i], given, err)
			}
			query.Set([]string{"from", "to"}[i], at)
		}
		set(query, "rules", rules)
		return printList(p, cmd, "/api/diff", query, 0, p.printDiff)
	}
	return cmd
}

func (p *program) printDiff(items []api.DiffItem) error {
	if len(items) == 0 {
		_, err := p.stdout.Write([]byte("No server differs.\n"))
		return err
	}
	t := newTable(p.stdout, "SERVER", "WAS", "NOW", "DIFFERS IN", "REASON NOW")
	for _, d := range items {
		in := make([]string, len(d.Changed))
		for i, c := range d.Changed {
			in[i] = string(c)
		}
		reason := ""
		if d.Now != nil {
			reason = d.Now.StateReason
		}
		t.row(string(d.Server), stateOf(d.Was), stateOf(d.Now), strings.Join(in, ", "), reason)
	}
	return t.flush()
}

// stateOf is a server's state at a moment, "-" when no entry configures it then.
func stateOf(s *api.Standing) string {
	if s == nil {
		return "-"
	}
	return string(s.State)
}
