package main

import (
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// outcomes are the words that --outcome takes.
var outcomes = []projections.Outcome{
	projections.OutcomeSucceeded, projections.OutcomeFailed, projections.OutcomeSkipped,
	projections.OutcomeCancelled, projections.OutcomeAbandoned, projections.OutcomeRefused,
}

func (p *program) historyCommand() *cobra.Command {
	var eventType, outcome, class string
	var since, until time.Time
	var limit int
	cmd := &cobra.Command{
		Use:               "history NAME",
		Short:             "List what happened with a server, newest first",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: p.completeServers(1),
	}
	cmd.Flags().Var(choice(&eventType, events.Types()...), "type", "only events of this `type`, such as discovery.failed")
	cmd.Flags().Var(choice(&outcome, outcomes...), "outcome", "only this `outcome`, such as failed")
	cmd.Flags().Var(choice(&class, rules.Classes...), "class", "only failures of this `class`")
	cmd.Flags().Var(timeOf(&since, p.now), "since", "only from this `time` on, such as 2026-03-04T12:00:00Z, or 2h for two hours ago")
	cmd.Flags().Var(timeOf(&until, p.now), "until", "only before this `time`")
	listLimit(cmd, &limit)
	query := p.moment(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q := query()
		set(q, "type", eventType)
		set(q, "outcome", outcome)
		set(q, "class", class)
		set(q, "since", timeParameter(since))
		set(q, "until", timeParameter(until))
		return printList(p, cmd, "/api/servers/"+url.PathEscape(args[0])+"/history", q, limit, p.printEvents)
	}
	return cmd
}
