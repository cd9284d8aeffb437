package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

func (p *program) discoverCommand() *cobra.Command {
	var reason string
	var force bool
	cmd := &cobra.Command{
		Use:   "discover [NAME]",
		Short: "Have a server attempted now, or all that are not skipped",
		Long: "Have a server attempted now, whatever its skip says, and wait for the outcome; a\n" +
			"failure is not counted. Without a name all servers are attempted that are not skipped,\n" +
			"and --force attempts those too; the command does not wait then.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s takes one server's name, or none for all: %s", cmd.CommandPath(), cmd.UseLine())
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a `sentence` to record with the attempt")
	cmd.Flags().BoolVar(&force, "force", false, "attempt the skipped ones too; for a server that is named it goes without saying")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withClient(cmd, func(c *client) error {
			if !c.running {
				return errNeedsService
			}
			if len(args) == 0 {
				return p.discoverAll(cmd, c, api.DiscoverSelection{Force: force, Reason: reason})
			}
			return p.discoverOne(cmd, c, events.ServerName(args[0]), reason)
		})
	}
	return cmd
}

// errNeedsService tells that a command writes, and nobody is there to write.
var errNeedsService = errors.New("no service holds this data folder, and this command needs one; start it with \"server serve\" or name one with --url")

func (p *program) discoverAll(cmd *cobra.Command, c *client, selection api.DiscoverSelection) error {
	const path = "/api/discover"
	var raw json.RawMessage
	if err := c.post(cmd.Context(), path, nil, selection, &raw); err != nil {
		return err
	}
	return printAnswer(p, path, raw, func(a api.DiscoverAccepted) error {
		fmt.Fprintf(p.stdout, "Attempting %d of %s, in run %s\n", a.Queued, count(a.Matched, "server"), dash(a.RunId))
		return nil
	})
}

func (p *program) discoverOne(cmd *cobra.Command, c *client, name events.ServerName, reason string) error {
	path := "/api/servers/" + url.PathEscape(string(name)) + "/discover"
	var raw json.RawMessage
	if err := c.post(cmd.Context(), path, url.Values{"wait": {"true"}}, api.Reasoned{Reason: reason}, &raw); err != nil {
		return err
	}
	var outcome api.DiscoveryOutcome
	if err := json.Unmarshal(raw, &outcome); err != nil {
		return unreadable(path, err)
	}
	err := printAnswer(p, path, raw, func(o api.DiscoveryOutcome) error {
		what := string(o.Outcome)
		if o.Error != "" {
			what += ", " + string(o.Class) + ": " + brief(o.Error)
		}
		fmt.Fprintf(p.stdout, "%s %s; it is %s now\n", oneLine(string(name)), oneLine(what), o.State)
		return nil
	})
	if err == nil && outcome.Outcome != projections.OutcomeSucceeded {
		return &exitError{code: exitFailed}
	}
	return err
}
