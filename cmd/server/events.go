package main

import (
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/httpapi/api"
)

func (p *program) eventsCommand() *cobra.Command {
	var server, eventType string
	var since, until time.Time
	var after int64
	var limit int
	var follow bool
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List the events of the log, newest first, or follow them as they come",
		Long: "List the events of the log, newest first. With --follow print those that come, each once,\n" +
			"until interrupted: when the service is restarted the command looks for it and goes on where\n" +
			"it was, and when none holds the data folder any more it follows the log itself. It says so on\n" +
			"standard error.",
		Args: noArgs,
	}
	cmd.Flags().StringVar(&server, "server", "", "only events about this `server`")
	cmd.Flags().Var(choice(&eventType, events.Types()...), "type", "only events of this `type`, such as discovery.failed")
	cmd.Flags().Var(timeOf(&since, p.now), "since", "only from this `time` on, such as 2026-03-04T12:00:00Z, or 2h for two hours ago")
	cmd.Flags().Var(timeOf(&until, p.now), "until", "only before this `time`")
	cmd.Flags().Var(wholeNumber(&after, 0, 0), "after", "only events after this `sequence`")
	cmd.Flags().BoolVar(&follow, "follow", false, "print new events as they come, until interrupted")
	listLimit(cmd, &limit)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q := url.Values{}
		if cmd.Flags().Changed("after") {
			q.Set("after", strconv.FormatInt(after, 10))
		}
		if follow {
			if !since.IsZero() || !until.IsZero() {
				return usagef("--follow shows what comes, so it takes neither --since nor --until; --after begins it earlier")
			}
			only := func(e api.Event) bool {
				return (server == "" || string(e.Subject) == server) && (eventType == "" || string(e.Type) == eventType)
			}
			return (&follower{p: p, only: only, after: q.Get("after")}).run(cmd.Context())
		}
		q.Set("order", "desc")
		set(q, "server", server)
		set(q, "type", eventType)
		set(q, "since", timeParameter(since))
		set(q, "until", timeParameter(until))
		return printList(p, cmd, "/api/events", q, limit, p.printEvents)
	}
	return cmd
}
