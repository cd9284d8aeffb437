package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// buildProgram builds the program as people run it.
func buildProgram(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "mcpledger")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", path, ".").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// runningProgram is the program as a process, with its data folder.
type runningProgram struct {
	*exec.Cmd
	client *client
	took   time.Duration // from its start to a complete answer of GET /api/tools
}

// serving starts the program and returns it once an answer of GET /api/tools is
// complete.
func serving(b *testing.B, program, configFile, data string, complete func([]toolsRow) bool) runningProgram {
	b.Helper()
	_ = os.Remove(serviceFilePath(data))
	p := runningProgram{Cmd: exec.Command(program, "--config", configFile, "--data", data, "--listen", "127.0.0.1:0")}
	began := time.Now()
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond) // asking all the time would slow what is measured
	defer tick.Stop()
	for deadline := began.Add(2 * time.Minute); ; <-tick.C {
		if rows, ok := askTools(data); ok && complete(rows) {
			p.took = time.Since(began)
			var err error
			if p.client, err = asOperator(data).openClient(b.Context()); err != nil {
				p.stop()
				b.Fatal(err)
			}
			return p
		}
		if time.Now().After(deadline) {
			p.stop()
			b.Fatal("no complete answer within two minutes")
		}
	}
}

// asOperator returns the command line as it asks the service that holds data.
func asOperator(data string) *program {
	return &program{dataDir: data, lookupEnv: os.LookupEnv, now: time.Now}
}

// stop ends the program in good order.
func (p runningProgram) stop() {
	_ = p.Process.Signal(os.Interrupt)
	_ = p.Wait()
}

type toolsRow struct {
	State string `json:"state"`
}

func askTools(data string) ([]toolsRow, bool) {
	service, running, err := readServiceFile(data)
	if err != nil || !running {
		return nil, false
	}
	answer, err := http.Get(service.Address + "/api/tools?summary=true")
	if err != nil {
		return nil, false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, false
	}
	var rows []toolsRow
	return rows, json.Unmarshal(body, &rows) == nil
}

// BenchmarkColdFleet is the time until a hundred stdio servers that were never tried
// are listed, as a ratio to a bare loop that launches and lists them with the same
// parallelism. The bar is 1.3.
func BenchmarkColdFleet(b *testing.B) {
	const servers = 100
	program := buildProgram(b)
	entries := map[string]any{}
	for i := range servers {
		entries[fmt.Sprintf("server-%03d", i)] = map[string]any{"command": program, "args": []string{"sample-server", "toolbox"}}
	}
	file := filepath.Join(b.TempDir(), "mcp.json")
	writeJSON(b, file, map[string]any{"mcpServers": entries})
	ready := func(rows []toolsRow) bool {
		n := 0
		for _, r := range rows {
			if r.State == "ready" {
				n++
			}
		}
		return n == servers
	}
	var bare, fleets time.Duration
	for b.Loop() {
		bare += bareFleet(b, program, servers)
		fleet := serving(b, program, file, filepath.Join(b.TempDir(), "data"), ready)
		fleet.stop()
		fleets += fleet.took
	}
	b.ReportMetric(fleets.Seconds()/bare.Seconds(), "x-bare")
	b.ReportMetric(fleets.Seconds()/float64(b.N), "s/fleet")
}

func bareFleet(b *testing.B, program string, servers int) time.Duration {
	b.Helper()
	began := time.Now()
	slots := make(chan struct{}, max(4, 2*runtime.NumCPU()))
	var all sync.WaitGroup
	for range servers {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx := context.Background()
			session, err := upstream.Open(ctx, upstream.Target{
				Transport: events.TransportStdio, Command: program, Args: []string{"sample-server", "toolbox"},
				Env: upstream.Environ(os.Environ(), nil, false), Redactor: config.NewRedactor(),
				Client: upstream.ClientInfo{Name: "bench"}, Now: time.Now,
			})
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := session.ListTools(ctx); err != nil {
				b.Error(err)
			}
			_ = session.Close(ctx)
		})
	}
	all.Wait()
	return time.Since(began)
}

func writeJSON(b *testing.B, path string, v any) {
	b.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o600); err != nil {
		b.Fatal(err)
	}
}
