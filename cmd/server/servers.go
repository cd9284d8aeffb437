package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/api"
)

func (p *program) serversCommand() *cobra.Command {
	var state, needs, class string
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "List the servers with their state and the reason for it",
		Args:  noArgs,
	}
	cmd.Flags().StringVar(&state, "state", "", "only servers in this `state`, such as skipped")
	cmd.Flags().StringVar(&needs, "needs", "", "only servers that `need` this, such as dependency")
	cmd.Flags().StringVar(&class, "class", "", "only servers whose cause is of this `class`")
	query := moment(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q := query()
		set(q, "state", state)
		set(q, "needs", needs)
		set(q, "class", class)
		return printList(p, cmd, "/api/servers", q, 0, p.printServers)
	}
	return cmd
}

func (p *program) printServers(servers []api.Server) error {
	if len(servers) == 0 {
		fmt.Fprintln(p.stdout, "No servers.")
		return nil
	}
	t := newTable(p.stdout, "SERVER", "STATE", "TOOLS", "NEEDS", "REASON")
	for _, s := range servers {
		t.row(string(s.Name), string(s.State), strconv.Itoa(s.Catalogue.Tools), string(s.Needs), s.StateReason)
	}
	return t.flush()
}
