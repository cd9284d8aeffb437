package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

func (p *program) backupCommand() *cobra.Command {
	var withKey bool
	cmd := &cobra.Command{
		Use:   "backup FOLDER",
		Short: "Copy the log into a new data folder, beside a running service or without one",
		Long: "Copy the log, as it is at one moment, into a new data folder, beside a running service or\n" +
			"without one. Without --with-key the copy has no secret.key: restored from it, every server\n" +
			"is a new connection and is tried once.",
		Args: exactArgs("FOLDER"),
	}
	cmd.Flags().BoolVar(&withKey, "with-key", false, "copy secret.key, too; keep such a backup like a password")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := sqlite.Backup(cmd.Context(), p.dataDir, args[0], withKey)
		if errors.Is(err, sqlite.ErrNotEmpty) {
			return fmt.Errorf("%w; name a folder that is empty or does not exist", err)
		}
		if errors.Is(err, events.ErrInUse) {
			return fmt.Errorf("%w; wait for it, or name another folder", err)
		}
		if errors.Is(err, events.ErrUnavailable) {
			return fmt.Errorf("%w; make room there, or name another folder", err)
		}
		if err != nil {
			return withNextStep(err)
		}
		if p.json {
			return p.printJSON(map[string]any{"folder": args[0], "with_key": withKey})
		}
		fmt.Fprintf(p.stdout, "The log is copied to %s\n", args[0])
		return nil
	}
	return cmd
}
