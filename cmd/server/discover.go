package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"time"

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
			"and --force attempts those too. What happens is shown as it happens, until all is over;\n" +
			"whoever interrupts the command leaves the attempts to the service. Those that are being\n" +
			"attempted already are left to the run they are in, and shown and waited for, too. With\n" +
			"--json the service's answer is printed: the outcome of the one server, or for all the run\n" +
			"that was begun, without waiting for it.",
		Args:              oneServerOrAll,
		ValidArgsFunction: p.completeServers(1),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a `sentence` to record with the attempt")
	cmd.Flags().BoolVar(&force, "force", false, "attempt the skipped ones too; for a server that is named it goes without saying")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withService(cmd, func(c *client) error {
			if len(args) == 0 {
				return p.discoverAll(cmd.Context(), c, api.DiscoverSelection{Force: force, Reason: reason})
			}
			return p.discoverOne(cmd.Context(), c, events.ServerName(args[0]), reason)
		})
	}
	return cmd
}

// discoverAll has the servers attempted that fit the selection and shows how it goes
// until their run is over. With --json it prints what was begun, and does not wait.
func (p *program) discoverAll(ctx context.Context, c *client, selection api.DiscoverSelection) error {
	const path = "/api/discover"
	var raw json.RawMessage
	if p.json {
		if err := c.post(ctx, path, nil, selection, &raw); err != nil {
			return err
		}
		return p.printJSON(raw)
	}
	happening, err := c.happening(ctx) // before the run, so that none of it is missed
	if err != nil {
		return err
	}
	defer happening.stop()
	var accepted api.DiscoverAccepted
	if err := c.post(ctx, path, nil, selection, &accepted); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "Attempting %d of %s, in run %s\n", accepted.Queued, count(accepted.Matched, "server"), dash(accepted.RunId))
	if accepted.Queued == 0 {
		return nil
	}
	view := p.newDiscoverView(accepted.Queued)
	defer view.clear()
	runs := newWatchedRuns(accepted)
	for _, j := range accepted.Joined {
		view.begin(j.Server, "is being attempted already, in run "+j.RunId)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case e, open := <-happening.events:
			switch {
			case !open:
				return fmt.Errorf("the service went away during run %s; \"%s servers%s\" tells how the servers stand", accepted.RunId, self, p.aim)
			case e.Type == events.TypeDiscoveryRunCompleted:
				if runs.end(e.RunId) {
					view.sum()
					return nil
				}
			case runs.attempts(e):
				view.take(e)
			}
		case <-tick.C:
			view.draw()
		}
	}
}

// watchedRuns are the runs in which the servers of one discovery are attempted.
type watchedRuns struct {
	own    string                       // the run that was begun for it
	joined map[events.ServerName]string // runs of others, by the server that is waited for
	open   map[string]bool              // those that are not over
}

func newWatchedRuns(accepted api.DiscoverAccepted) watchedRuns {
	w := watchedRuns{joined: map[events.ServerName]string{}, open: map[string]bool{}}
	for _, j := range accepted.Joined {
		w.joined[j.Server] = j.RunId
		w.open[j.RunId] = true
	}
	if len(accepted.Joined) < accepted.Queued {
		w.own = accepted.RunId
		w.open[w.own] = true
	}
	return w
}

// attempts reports whether an event is of an attempt on a server of the discovery. A run
// that was joined may attempt others, too.
func (w watchedRuns) attempts(e api.Event) bool {
	run, joined := w.joined[e.Subject]
	if !joined {
		run = w.own
	}
	return e.RunId != "" && e.RunId == run
}

// end notes that a run is over, and reports whether all are.
func (w watchedRuns) end(run string) bool {
	delete(w.open, run)
	return len(w.open) == 0
}

// discoverOne has a server attempted, shows how it goes, and says how the server stands
// then. That it did not succeed is an error without words.
func (p *program) discoverOne(ctx context.Context, c *client, name events.ServerName, reason string) error {
	path := "/api/servers/" + url.PathEscape(string(name)) + "/discover"
	var raw json.RawMessage
	attempt := func() error {
		return c.post(ctx, path, url.Values{"wait": {"true"}}, api.Reasoned{Reason: reason}, &raw)
	}
	show := attempt
	if !p.json {
		show = func() error { return p.showing(ctx, c, name, attempt) }
	}
	if err := show(); err != nil {
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

// showing shows what happens to a server while attempt, which waits for the outcome,
// is under way.
func (p *program) showing(ctx context.Context, c *client, name events.ServerName, attempt func() error) error {
	happening, err := c.happening(ctx)
	if err != nil {
		return err
	}
	defer happening.stop()
	over := make(chan error, 1)
	go func() { over <- attempt() }()
	view := p.newDiscoverView(1)
	defer view.clear()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, until := happening.after, api.Sequence(math.MaxInt64)
	for last < until {
		select {
		case e, open := <-happening.events:
			if !open {
				if until == math.MaxInt64 {
					err = <-over // what there is to see is lost, the outcome is not
				}
				return err
			}
			if last = e.Sequence; e.Subject == name && !isReported(e) {
				view.take(e)
			}
		case err = <-over:
			if err != nil {
				return err
			}
			var now api.Readiness
			if c.get(ctx, "/readyz", nil, &now) != nil {
				return nil
			}
			until = now.Sequence // the outcome is there, and its event still to come
		case <-tick.C:
			view.draw()
		}
	}
	return nil
}

// isReported reports whether an event was told by a host of its own attempts: it has
// the host's name for its source and its actor.
func isReported(e api.Event) bool { return e.Source == e.Actor }
