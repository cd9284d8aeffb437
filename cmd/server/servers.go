package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/api"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// The words that --state and --needs take.
var (
	serverStates = []projections.ServerState{
		projections.StateDisabled, projections.StateBlocked, projections.StateSkipped, projections.StateDiscovering,
		projections.StateUnreachable, projections.StateFailed, projections.StateReady,
	}
	serverNeeds = []projections.Needs{
		projections.NeedsNothing, projections.NeedsWait, projections.NeedsLogin, projections.NeedsCredential,
		projections.NeedsConfig, projections.NeedsDependency, projections.NeedsOperator,
	}
)

func (p *program) serversCommand() *cobra.Command {
	var state, needs, class string
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "List the servers with their state and the reason for it",
		Args:  noArgs,
	}
	cmd.Flags().Var(choice(&state, serverStates...), "state", "only servers in this `state`, such as skipped")
	cmd.Flags().Var(choice(&needs, serverNeeds...), "needs", "only servers that `need` this, such as dependency")
	cmd.Flags().Var(choice(&class, rules.Classes...), "class", "only servers whose cause is of this `class`")
	query := p.moment(cmd)
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
		t.row(string(s.Name), string(s.State), toolsInWords(s), string(s.Needs), s.StateReason)
	}
	return t.flush()
}

// toolsInWords says how many tools a server offers, and of how many that are known where
// its state keeps them back: "0 of 12".
func toolsInWords(s api.Server) string {
	known := strconv.Itoa(s.Catalogue.Tools)
	if s.Catalogue.Tools > 0 && !s.State.OffersTools() {
		return "0 of " + known
	}
	return known
}
