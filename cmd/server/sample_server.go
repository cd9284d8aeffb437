package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/spf13/cobra"
)

// sampleSlowStart is how long the slow sample server takes before it answers.
const sampleSlowStart = 4 * time.Second

// sampleServerCommand returns the hidden command that is one stdio server of the
// sample fleet, told by its kind.
func (p *program) sampleServerCommand() *cobra.Command {
	kinds := map[string]func(ctx context.Context) error{
		"toolbox": p.serveToolbox,
		"slow": func(ctx context.Context) error {
			time.Sleep(sampleSlowStart)
			return p.serveToolbox(ctx)
		},
		"import-error": p.dieOnImport,
		"silent": func(context.Context) error {
			_, err := io.Copy(io.Discard, p.stdin)
			return err
		},
	}
	cmd := &cobra.Command{
		Use:    "sample-server KIND",
		Short:  "Be one server of the sample fleet",
		Hidden: true,
		Args:   exactArgs("KIND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			serve, ok := kinds[args[0]]
			if !ok {
				return usagef("there is no sample server %q", args[0])
			}
			return serve(cmd.Context())
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "flaky COUNTER",
		Short: "Fail twice, then work; COUNTER is the file that counts the starts",
		Args:  exactArgs("COUNTER"),
		RunE:  func(cmd *cobra.Command, args []string) error { return p.serveFlaky(cmd.Context(), args[0]) },
	})
	return cmd
}

func (p *program) serveToolbox(ctx context.Context) error {
	return server.NewStdioServer(newToolbox(p.now)).Listen(ctx, p.stdin, p.stdout)
}

// dieOnImport does what a Python server does whose package is not installed.
func (p *program) dieOnImport(context.Context) error {
	fmt.Fprint(p.stderr, `Traceback (most recent call last):
  File "/srv/reports/server.py", line 7, in <module>
    from reportlib.charts import Chart
ModuleNotFoundError: No module named 'reportlib'
`)
	return &exitError{code: 1}
}

// serveFlaky fails at its first two starts as a server does whose database is not up
// yet, and works from the third on.
func (p *program) serveFlaky(ctx context.Context, counter string) error {
	f, err := os.OpenFile(counter, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(".")
	info, statErr := f.Stat()
	f.Close()
	switch {
	case err != nil:
		return err
	case statErr != nil:
		return statErr
	case info.Size() <= 2:
		fmt.Fprintln(p.stderr, "Error: connect ECONNREFUSED 127.0.0.1:5432")
		return &exitError{code: 1}
	}
	return p.serveToolbox(ctx)
}
