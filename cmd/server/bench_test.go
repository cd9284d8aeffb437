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

	"github.com/google/uuid"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/events/sqlite"
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

// serving starts the program and returns how long it took until a complete answer of
// GET /api/tools came, and the answer.
func serving(b *testing.B, program, configFile, data string, complete func([]toolsRow) bool) (elapsed time.Duration, stop func()) {
	b.Helper()
	_ = os.Remove(serviceFilePath(data))
	cmd := exec.Command(program, "--config", configFile, "--data", data, "--listen", "127.0.0.1:0")
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}
	tick := time.NewTicker(10 * time.Millisecond) // asking all the time would slow what is measured
	defer tick.Stop()
	for deadline := began.Add(2 * time.Minute); ; <-tick.C {
		if rows, ok := askTools(data); ok && complete(rows) {
			return time.Since(began), stop
		}
		if time.Now().After(deadline) {
			stop()
			b.Fatal("no complete answer within two minutes")
		}
	}
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

// BenchmarkStart is the time from the start of the process to a complete answer of
// GET /api/tools over a log of a million events and a thousand servers, fifty of them
// broken, with a snapshot. The bar is 300 ms.
func BenchmarkStart(b *testing.B) {
	const servers, broken, total = 1000, 50, 1_000_000
	program, dir := buildProgram(b), b.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "mcp.json")
	entries := map[string]any{}
	for i := range servers {
		entries[fmt.Sprintf("server-%04d", i)] = map[string]any{"command": "/bin/false", "args": []string{fmt.Sprint(i)}}
	}
	writeJSON(b, file, map[string]any{"mcpServers": entries})
	fillLog(b, data, file, broken, total)
	all := func(rows []toolsRow) bool { return len(rows) == servers }
	_, stop := serving(b, program, file, data, all) // leaves a snapshot behind
	stop()
	b.ResetTimer()
	for b.Loop() {
		elapsed, stop := serving(b, program, file, data, all)
		b.ReportMetric(float64(elapsed.Milliseconds()), "ms/start")
		b.StopTimer()
		stop()
		b.StartTimer()
	}
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
	for b.Loop() {
		bare := bareFleet(b, program, servers)
		elapsed, stop := serving(b, program, file, filepath.Join(b.TempDir(), "data"), ready)
		stop()
		b.ReportMetric(elapsed.Seconds()/bare.Seconds(), "x-bare")
		b.ReportMetric(elapsed.Seconds(), "s/fleet")
	}
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

// fillLog writes the history of a fleet: every server configured, most of them with a
// catalogue, the broken ones skipped, and calls up to the total.
func fillLog(b *testing.B, data, file string, broken, total int) {
	b.Helper()
	ctx := context.Background()
	now := time.Now().Add(-time.Hour)
	log, err := sqlite.Open(ctx, data, sqlite.Options{Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	key, err := sqlite.LoadKey(data)
	if err != nil {
		b.Fatal(err)
	}
	loaded, err := config.Load(config.Options{Files: []string{file}, Key: sqlite.DeriveKey(key, "config key")})
	if err != nil {
		b.Fatal(err)
	}
	var batch []events.Event
	count := 0
	flush := func() {
		if _, err := log.Append(ctx, batch); err != nil {
			b.Fatal(err)
		}
		batch = batch[:0]
	}
	add := func(e events.Event) {
		e.ID, e.Source, e.Type = uuid.Must(uuid.NewV7()).String(), instanceName(key), e.Data.EventType()
		e.Time, e.DataVersion = now, 1
		batch = append(batch, e)
		if count++; len(batch) == 256 {
			flush()
		}
	}
	add(events.Event{Data: events.ServiceStarted{Instance: instanceName(key)}})
	for _, e := range config.LoadedEvents(loaded, config.Diff(nil, loaded)) {
		add(e)
	}
	exit := 1
	failed := events.DiscoveryFailed{Evidence: events.Evidence{
		Phase: events.PhaseHandshake, Transport: events.TransportStdio, ErrorKind: events.KindExit, ExitCode: &exit,
		StderrTail: "ModuleNotFoundError: No module named 'acme'",
	}}
	tools, names := benchTools(20)
	for i, s := range loaded.Servers {
		e := events.Event{Subject: s.Name, ConfigKey: s.Key}
		if i >= broken {
			e.Data = events.DiscoverySucceeded{ProtocolVersion: "2025-11-25", CatalogueHash: "h", ToolCount: len(names)}
			add(e)
			e.Data = events.CatalogueChanged{Hash: "h", Added: names, Tools: tools}
			add(e)
			continue
		}
		for n := range 3 {
			e.RunID, e.Data = fmt.Sprintf("run-%d-%d", i, n), failed
			add(e)
		}
	}
	for i := 0; count < total-1; i++ {
		s := loaded.Servers[broken+i%(len(loaded.Servers)-broken)]
		e := events.Event{Subject: s.Name, ConfigKey: s.Key, CallID: uuid.Must(uuid.NewV7()).String()}
		e.Data = events.ToolCallStarted{Tool: names[i%len(names)], ArgumentsSize: 40, Caller: "bench"}
		add(e)
		e.Data = events.ToolCallSucceeded{Tool: names[i%len(names)], ElapsedMS: 12, ResultSize: 300}
		add(e)
	}
	flush()
}

// benchTools returns a catalogue of n tools and their names.
func benchTools(n int) (tools json.RawMessage, names []string) {
	var list []map[string]any
	for i := range n {
		names = append(names, fmt.Sprintf("tool_%02d", i))
		list = append(list, map[string]any{
			"name": names[i], "description": "Does one thing of many, and says so in a sentence of some length.",
			"inputSchema": map[string]any{"type": "object", "properties": map[string]any{
				"query": map[string]any{"type": "string", "description": "what to look for"}, "limit": map[string]any{"type": "integer"},
			}, "required": []string{"query"}},
		})
	}
	tools, _ = json.Marshal(list)
	return tools, names
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
