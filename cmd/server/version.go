package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionInfo{version, revision(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}
			if p.json {
				return p.printJSON(v)
			}
			commit := ""
			if v.Revision != "" {
				commit = " (" + v.Revision + ")"
			}
			fmt.Fprintf(p.stdout, "mcpledger %s%s %s %s\n", v.Version, commit, v.Platform, v.Go)
			return nil
		},
	}
}

// versionInfo is what version prints as JSON.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // the commit, cut short; empty if the build does not know it
	Platform string `json:"platform"` // such as linux/amd64
	Go       string `json:"go"`
}

// revision returns the commit the program was built from, empty if the build does not
// know it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return ""
}
