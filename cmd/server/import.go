package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"mcpledger/events/sqlite"
)

// importSource is the source of the event that records an import: no service holds
// the log then.
const importSource = "import"

func (p *program) importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Put an export into an empty data folder; - reads standard input",
		Long: "Put an export of a whole log into the data folder, which must be empty or not exist.\n" +
			"Every event keeps its place and its hash; one more event records the import. The folder\n" +
			"gets a secret.key of its own, so every server is a new connection to it.",
		Args: exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var in io.Reader = p.stdin
			from := "standard input"
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in, from = f, filepath.Base(args[0])
			}
			imported, err := sqlite.Import(cmd.Context(), p.dataDir, in, sqlite.ImportOptions{Now: p.now, Source: importSource, From: from})
			if errors.Is(err, sqlite.ErrNotEmpty) {
				return fmt.Errorf("%w; give an empty folder with --data", err)
			}
			if err != nil {
				return withNextStep(err)
			}
			if p.json {
				return p.printJSON(map[string]any{"first": imported.First, "last": imported.Last, "folder": p.dataDir})
			}
			fmt.Fprintf(p.stdout, "Events #%d to #%d are in %s\n", imported.First, imported.Last, p.dataDir)
			return nil
		},
	}
}
