package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// The exit codes of preflight, besides 0 for ready.
const (
	exitUnknownServer = 10
	exitNoLedger      = 20 // no service and no log
)

// preflightExits are the exit codes by the state of a server.
var preflightExits = map[projections.ServerState]int{
	projections.StateReady:       exitOK,
	projections.StateSkipped:     11,
	projections.StateBlocked:     12,
	projections.StateUnreachable: 13,
	projections.StateFailed:      13,
	projections.StateDiscovering: 14,
	projections.StateDisabled:    15,
}

func (p *program) preflightCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "preflight [NAME...]",
		Short: "Tell whether servers are ready, by exit code; connects to none",
		Long: "Tell whether the servers named, or all, are ready. Nothing is connected or started.\n" +
			"The exit code is that of the first server that is not ready: 10 unknown server,\n" +
			"11 skipped, 12 blocked, 13 unreachable or failed, 14 still discovering, 15 disabled;\n" +
			"0 when all are ready, 20 when there is no log and no service that answers.",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: p.completeServers(0),
		RunE: func(cmd *cobra.Command, names []string) error {
			c, err := p.openClient(cmd.Context())
			if err == nil {
				err = closing(c, func(c *client) error { return p.preflight(cmd, c, names) })
			}
			if errors.Is(err, fs.ErrNotExist) || isUnreachable(err) {
				return &exitError{code: exitNoLedger, message: err.Error()}
			}
			return err
		},
	}
}

// verdict is what preflight says of one server.
type verdict struct {
	Server events.ServerName `json:"server"`
	State  string            `json:"state"`
	Reason string            `json:"reason"`
	Exit   int               `json:"exit"`
}

func (p *program) preflight(cmd *cobra.Command, c *client, names []string) error {
	_, servers, err := list[api.Server](cmd.Context(), c, "/api/servers", url.Values{}, 0)
	if err != nil {
		return err
	}
	verdicts := []verdict{}
	if len(names) == 0 {
		for _, s := range servers {
			verdicts = append(verdicts, verdictOn(s))
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(servers, func(s api.Server) bool { return string(s.Name) == name })
		if i < 0 {
			verdicts = append(verdicts, verdict{events.ServerName(name), "unknown", "No entry of the config has this name", exitUnknownServer})
			continue
		}
		verdicts = append(verdicts, verdictOn(servers[i]))
	}
	if err := p.printVerdicts(verdicts); err != nil {
		return err
	}
	for _, v := range verdicts {
		if v.Exit != exitOK {
			return &exitError{code: v.Exit}
		}
	}
	return nil
}

func verdictOn(s api.Server) verdict {
	return verdict{s.Name, string(s.State), s.StateReason, preflightExits[s.State]}
}

func (p *program) printVerdicts(verdicts []verdict) error {
	if p.json {
		return p.printJSON(verdicts)
	}
	if len(verdicts) == 0 {
		_, err := fmt.Fprintln(p.stdout, "No servers.")
		return err
	}
	t := newTable(p.stdout, "SERVER", "STATE", "REASON")
	for _, v := range verdicts {
		t.row(string(v.Server), v.State, v.Reason)
	}
	return t.flush()
}
