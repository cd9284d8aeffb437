package config_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// view is a server as the golden files show it. Of its key they have the part that
// does not depend on where the file lies.
type view struct {
	Entry       string               `json:"entry"`
	Transport   events.Transport     `json:"transport"`
	Command     string               `json:"command,omitempty"`
	Args        []string             `json:"args,omitempty"`
	Env         map[string]string    `json:"env,omitempty"`
	Cwd         string               `json:"cwd,omitempty"`
	URL         string               `json:"url,omitempty"`
	Headers     map[string]string    `json:"headers,omitempty"`
	InheritEnv  []string             `json:"inherit_env,omitempty"`
	Timeouts    config.Timeouts      `json:"timeouts,omitzero"`
	Runner      string               `json:"runner,omitempty"`
	Package     string               `json:"package,omitempty"`
	Description string               `json:"description,omitempty"`
	Disabled    bool                 `json:"disabled,omitempty"`
	Settings    events.Settings      `json:"settings,omitzero"`
	Written     json.RawMessage      `json:"written"`
	Problem     *events.EntryProblem `json:"problem,omitempty"`
}

func viewOf(s *config.Server) view {
	return view{
		Entry: s.Key.Entry(), Transport: s.Transport, Command: s.Command, Args: s.Args, Env: s.Env,
		Cwd: s.Cwd, URL: s.URL, Headers: s.Headers, InheritEnv: s.InheritEnv, Timeouts: s.Timeouts,
		Runner: s.Runner, Package: s.Package, Description: s.Description, Disabled: s.Disabled,
		Settings: s.Settings, Written: s.Written, Problem: s.Problem,
	}
}

// What each client's file becomes stands in testdata, secrets and all.
func TestEveryClientsFileIsUnderstood(t *testing.T) {
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	lookup := environ(
		"HOME", "/home/kim", "TICKETS_TOKEN", "tk-5d0c9e7712ab",
		"MCPLEDGER_INPUT_PG_URL", "postgres://app:f4Gm-81xK@db.example.com/app",
	)
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := config.Load(config.Options{Files: []string{file}, Key: testKey, LookupEnv: lookup})
			if err != nil {
				t.Fatal(err)
			}
			views := map[events.ServerName]view{}
			for _, srv := range c.Servers {
				views[srv.Name] = viewOf(srv)
			}
			b, err := json.MarshalIndent(map[string]any{
				"servers": views, "warnings": len(c.Warnings), "faults": len(c.Faults), "watched": c.Watched,
			}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			// Where the repository lies is no part of the answer.
			got := strings.ReplaceAll(string(b), here, "FOLDER") + "\n"
			golden := strings.TrimSuffix(file, ".json") + ".golden"
			if *update {
				write(t, golden, got)
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
