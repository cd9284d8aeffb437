package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

func (p *program) exportCommand() *cobra.Command {
	var out string
	var first, last int64
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the events, with all they refer to, as lines of JSON",
		Long: "Write the events, with all they refer to, as lines of JSON, beside a running service or\n" +
			"without one. \"" + self + " import\" takes one of the whole log.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("%s takes no arguments, but was given %q; a file is named with --out", cmd.CommandPath(), args[0])
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "a new `file` to write to; default: standard output")
	cmd.Flags().Var(wholeNumber(&first, 1, 0), "first", "the first event, by `sequence`; default: the first of the log")
	cmd.Flags().Var(wholeNumber(&last, 1, 0), "last", "the last event, by `sequence`; default: the last of the log")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if last != 0 && first > last {
			return usagef("--first %d comes after --last %d, give them in the order of the log", first, last)
		}
		log, err := sqlite.OpenReader(cmd.Context(), p.dataDir)
		if err != nil {
			return withNextStep(err)
		}
		defer func() { err = errors.Join(err, log.Close()) }()
		head, err := log.Head(cmd.Context())
		if err != nil {
			return err
		}
		if first > int64(head.Sequence) {
			return usagef("--first %d is beyond the head of the log, give one of its sequences, up to %d", first, head.Sequence)
		}
		w, finish, err := p.createOutput(out)
		if err != nil {
			return err
		}
		span := sqlite.Span{First: events.Sequence(first), Last: events.Sequence(last)}
		return finish(sqlite.Export(cmd.Context(), log, w, span))
	}
	return cmd
}

// createOutput opens a new file for the user alone, or stdout if path is empty.
// finish closes it, and removes it if the work ended in an error.
func (p *program) createOutput(path string) (w io.Writer, finish func(error) error, err error) {
	if path == "" {
		return p.stdout, func(err error) error { return err }, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil, fmt.Errorf("%w; name a file that does not exist", err)
	}
	if err != nil {
		return nil, nil, err
	}
	return f, func(err error) error {
		if err = errors.Join(err, f.Close()); err != nil {
			return errors.Join(err, os.Remove(path))
		}
		return nil
	}, nil
}
