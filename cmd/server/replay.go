package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/httpapi/api"
	"mcpledger/projections/replay"
	"mcpledger/projections/rules"
)

// replayExits are the exit codes of replay by its verdict.
var replayExits = map[replay.Outcome]int{replay.Same: exitOK, replay.Changed: 3, replay.Worse: 4}

func (p *program) replayCommand() *cobra.Command {
	var with, servers []string
	var opts replay.Options
	cmd := &cobra.Command{
		Use:   "replay --rules SET|FILE",
		Short: "Tell what another rule set would have done with the past; changes nothing",
		Long: "Put the log through the active rule set and another one, and tell where they part: which\n" +
			"failures they judge differently, how each server would stand, which attempts would have been\n" +
			"saved and which recoveries noticed late. The running service is asked, or the log itself when\n" +
			"none runs. Several sets are put beside each other, a line each. The exit code is 0 when nothing\n" +
			"differs, 3 when something does, and 4 when recoveries would be noticed later or good calls\n" +
			"refused; of several sets that of the worst.",
		Args: noArgs,
	}
	cmd.Flags().StringArrayVar(&with, "rules", nil, "the rule `set` or file to try; may be given several times")
	cmd.Flags().Var(timeOf(&opts.Since, p.now), "since", "count only what happened from this `time` on, such as 2026-03-04T12:00:00Z, or 2h for two hours ago")
	cmd.Flags().Var(timeOf(&opts.Until, p.now), "until", "count only what happened before this `time`")
	cmd.Flags().StringArrayVar(&servers, "server", nil, "count only this `server`; may be given several times")
	cmd.Flags().BoolVar(&opts.All, "all", false, "list what both sets judge alike, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(with) == 0 {
			return usagef("%s wants the rules to try: --rules SET or --rules FILE", cmd.CommandPath())
		}
		for _, name := range servers {
			opts.Servers = append(opts.Servers, events.ServerName(name))
		}
		return p.tryRules(cmd, with, opts)
	}
	return cmd
}

// tryRules replays the log under each of the rule sets named, and prints where they part
// from the one in force. The exit code is that of the worst.
func (p *program) tryRules(cmd *cobra.Command, named []string, opts replay.Options) error {
	var sets []*rules.Set
	for _, arg := range named {
		set, err := p.rulesToTry(cmd, arg)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var reports []replay.Report
	worst := exitOK
	for _, set := range sets {
		report, err := p.replay(ctx, set, opts)
		if ctx.Err() != nil {
			return errors.New("the replay was interrupted")
		}
		if errors.Is(err, replay.ErrUnknownServer) || errors.Is(err, replay.ErrEmptySpan) {
			return usagef("nothing would be counted: %v", err)
		}
		if err != nil {
			return err
		}
		reports = append(reports, report)
		worst = max(worst, replayExits[report.Verdict])
	}
	if err := p.printReplays(named, reports); err != nil {
		return err
	}
	if worst != exitOK {
		return &exitError{code: worst}
	}
	return nil
}

// replay has the service replay the log, or does it here when none runs.
func (p *program) replay(ctx context.Context, set *rules.Set, opts replay.Options) (replay.Report, error) {
	if p.url == "" {
		if _, running, err := readServiceFile(p.dataDir); err != nil || !running {
			return p.replayHere(ctx, set, opts)
		}
	}
	c, err := p.openClient(ctx)
	if err != nil {
		return replay.Report{}, err
	}
	if !c.running {
		if err := c.close(); err != nil {
			return replay.Report{}, err
		}
		return p.replayHere(ctx, set, opts)
	}
	var report replay.Report
	err = closing(c, func(c *client) error {
		report, err = p.replayThere(ctx, c, set, opts)
		return err
	})
	return report, err
}

// replayHere replays the log of the data folder in this process.
func (p *program) replayHere(ctx context.Context, set *rules.Set, opts replay.Options) (report replay.Report, err error) {
	log, err := sqlite.OpenReader(ctx, p.dataDir)
	if err != nil {
		return replay.Report{}, withNextStep(err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	active, err := p.readingRules(ctx, log)
	if err != nil {
		return replay.Report{}, err
	}
	bar := p.newProgressBar()
	defer bar.end()
	opts.Now = p.now
	opts.Progress = func(done, total events.Sequence) { bar.show(float64(done) / float64(total)) }
	return replay.Run(ctx, log, active, set, opts)
}

// replayPoll is how often the service is asked how far a replay is.
const replayPoll = 100 * time.Millisecond

// cancelPatience bounds how long a service may take to hear that nobody waits any more.
const cancelPatience = 5 * time.Second

// replayThere has a service replay its log. A replay that nobody waits for any more is
// cancelled, since the service makes one at a time.
func (p *program) replayThere(ctx context.Context, c *client, set *rules.Set, opts replay.Options) (report replay.Report, err error) {
	text, err := json.Marshal(set.Text())
	if err != nil {
		return replay.Report{}, err
	}
	asked := api.ReplayRequest{
		Rules: text, Since: timeParameter(opts.Since), Until: timeParameter(opts.Until), Servers: opts.Servers, All: opts.All,
	}
	var accepted api.ReplayAccepted
	if err := c.post(ctx, "/api/replays", nil, asked, &accepted); err != nil {
		return replay.Report{}, err
	}
	path := "/api/replays/" + url.PathEscape(accepted.ReplayId)
	defer func() {
		if ctx.Err() != nil {
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelPatience)
			defer stop()
			err = errors.Join(err, c.ask(ctx, http.MethodDelete, path, nil, nil, nil))
		}
	}()
	bar := p.newProgressBar()
	defer bar.end()
	tick := time.NewTicker(replayPoll)
	defer tick.Stop()
	for {
		var now api.Replay
		if err := c.get(ctx, path, nil, &now); err != nil {
			return replay.Report{}, err
		}
		switch {
		case now.Report != nil:
			return *now.Report, nil
		case now.Status == api.ReplayStatusFailed:
			return replay.Report{}, fmt.Errorf("the replay failed: %s", now.Error)
		}
		bar.show(now.Progress)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return replay.Report{}, ctx.Err()
		}
	}
}
