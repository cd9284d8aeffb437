package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/api"
)

func (p *program) skipsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skips",
		Short: "List the servers that are not attempted, and until when",
		Args:  noArgs,
	}
	query := p.moment(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return printList(p, cmd, "/api/skips", query(), 0, p.printSkips)
	}
	return cmd
}

func (p *program) printSkips(skipped []api.SkippedServer) error {
	if len(skipped) == 0 {
		fmt.Fprintln(p.stdout, "No server is skipped.")
		return nil
	}
	t := newTable(p.stdout, "SERVER", "REASON", "CLASS", "RULE", "FAILURES", "SINCE", "UNTIL")
	for _, s := range skipped {
		until := "cleared"
		if s.Skip.Until != nil {
			until = stamp(s.Skip.Until.Time())
		}
		t.row(string(s.Server), strings.ReplaceAll(string(s.Skip.Reason), "_", " "), dash(string(s.Skip.Class)),
			dash(s.Skip.Rule), strconv.Itoa(s.Skip.Failures), stamp(s.Skip.Since.Time()), until)
	}
	return t.flush()
}
