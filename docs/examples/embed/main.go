// Command embed is a host with an MCP client of its own that keeps a ledger: before it
// starts a server it asks whether that can help, and afterwards it records what it saw.
// It uses packages events and projections; nothing of mcpledger's own client or HTTP
// API is in it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/google/uuid"

	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// host is what an agent platform adds to its own client.
type host struct {
	log    *sqlite.Log
	engine *projections.Engine
	now    func() time.Time
}

// source names the host in its events. Its history is its own, whoever else reports.
const source = "acme-host"

func openHost(ctx context.Context, dir string, now func() time.Time) (*host, error) {
	log, err := sqlite.Open(ctx, dir, sqlite.Options{Now: now})
	if err != nil {
		return nil, err
	}
	engine := projections.NewEngine(log, rules.Default(), log)
	if err := engine.CatchUp(ctx); err != nil {
		return nil, err
	}
	return &host{log: log, engine: engine, now: now}, nil
}

// decide says whether to attempt a server under a config, and why. The config key is
// any stable string that changes with the config and holds no secret.
func (h *host) decide(server events.ServerName, key events.ConfigKey) (projections.Decision, string, error) {
	decision, reason := projections.DecideAttempt, "nothing is known of it"
	err := h.engine.View(func(s *projections.State) {
		if v, known := s.Reported(source, server, key, h.now()); known {
			decision, reason = v.Decision, v.Reason
		}
	})
	return decision, reason, err
}

// record appends an outcome. It is durable, and the next decide has seen it, when
// record returns. Secrets must be masked before: the log cannot forget.
func (h *host) record(ctx context.Context, server events.ServerName, key events.ConfigKey, d events.Data) error {
	_, err := h.log.Append(ctx, []events.Event{{
		ID: uuid.Must(uuid.NewV7()).String(), Source: source, Type: d.EventType(), Subject: server,
		Time: h.now().UTC(), DataVersion: 1, Data: d, ConfigKey: key,
	}})
	return err
}

// start stands for the host's own client. It returns the evidence of a start that
// failed.
func start(ctx context.Context, command string, args ...string) *events.Evidence {
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return &events.Evidence{Phase: events.PhaseHandshake, Transport: events.TransportStdio, Error: err.Error(), StderrTail: stderr.String()}
	}
	return nil
}

// run starts a server that dies on import until the ledger says to leave it alone.
func run(ctx context.Context, dir string, now func() time.Time, out io.Writer) (err error) {
	h, err := openHost(ctx, dir, now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.log.Close()) }()
	const server, key = events.ServerName("weather"), events.ConfigKey("weather:v1")
	for range 5 {
		decision, reason, err := h.decide(server, key)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", decision, reason)
		if decision != projections.DecideAttempt {
			continue
		}
		var outcome events.Data = events.DiscoverySucceeded{ProtocolVersion: "2025-11-25"}
		if failed := start(ctx, "sh", "-c", `echo "ModuleNotFoundError: No module named 'weatherlib'" >&2; exit 1`); failed != nil {
			outcome = events.DiscoveryFailed{Evidence: *failed}
		}
		if err := h.record(ctx, server, key, outcome); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if err := run(context.Background(), "data", time.Now, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
