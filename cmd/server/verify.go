package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

func (p *program) verifyCommand() *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no event of the log was changed, dropped or swapped",
		Long: "Check that no event of the log was changed, dropped or swapped, and that the database is as\n" +
			"its migrations made it, with the triggers that keep events as they are, beside a running\n" +
			"service or without one; the exit code is 1 where something is wrong. That the whole log\n" +
			"was replaced by an older copy shows only against a head that was noted elsewhere: --head\n" +
			"takes it as /readyz and this command print it.",
		Args: noArgs,
	}
	cmd.Flags().StringVar(&head, "head", "", "a noted `head` of the log, N:HASH")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var o sqlite.VerifyOptions
		if cmd.Flags().Changed("head") {
			noted, err := parseHead(head)
			if err != nil {
				return err
			}
			o.Head = &noted
		}
		report, err := sqlite.Verify(cmd.Context(), p.dataDir, o)
		if err != nil {
			return withNextStep(err)
		}
		if err := p.printVerification(report); err != nil {
			return err
		}
		if !report.OK() {
			return &exitError{code: exitFailed}
		}
		return nil
	}
	return cmd
}

// parseHead reads what events.Head writes.
func parseHead(text string) (events.Head, error) {
	number, hash, _ := strings.Cut(text, ":")
	sequence, err := strconv.ParseInt(number, 10, 64)
	if err != nil || sequence < 1 || len(hash) != 64 {
		return events.Head{}, usagef("--head is %q, give it as it was printed: N:HASH", text)
	}
	return events.Head{Sequence: events.Sequence(sequence), Hash: hash}, nil
}

func (p *program) printVerification(r sqlite.VerifyReport) error {
	if p.json {
		return p.printJSON(map[string]any{
			"ok": r.OK(), "problem": r.Problem, "bad": r.Bad, "events": r.Events, "contents": r.Contents,
			"head": r.Head.String(), "signed": r.Signed,
		})
	}
	if !r.OK() {
		fmt.Fprintf(p.stdout, "The log is damaged: %s\n", r.Problem)
		if r.Bad == 0 {
			fmt.Fprintf(p.stdout, "%s read, each in its place in the chain.\n", count(int(r.Events), "event"))
		} else {
			fmt.Fprintf(p.stdout, "%s before that are sound.\n", count(int(r.Events), "event"))
		}
		return nil
	}
	fmt.Fprintf(p.stdout, "The log is sound: %s, %s kept beside them.\n", count(int(r.Events), "event"), count(int(r.Contents), "text"))
	if !r.Signed {
		fmt.Fprintln(p.stdout, "There is no secret.key, so a log that was cut at its end would look the same.")
	}
	fmt.Fprintf(p.stdout, "Its head is %s\n", r.Head)
	return nil
}
