package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"mcpledger/discovery/config"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/events/sqlite"
)

// largeLog is a data folder with a million events about a thousand servers, fifty of
// them broken, and the config that goes with it.
type largeLog struct {
	program, config, data string
	servers               int
}

// The two servers of a largeLog that can be called; the others are programs that
// nobody starts.
const (
	echoServer = "answers"   // says back what it is told
	vastServer = "vast"      // answers a call with vastBytes
	vastBytes  = 64 << 20    // more than a result may have
	oftenAsked = "server-07" // the beginning of the names whose history is read
)

// BenchmarkMillionEvents makes a log of a million events, once, and measures what a
// log of that size could make slow or large.
func BenchmarkMillionEvents(b *testing.B) {
	const programs, broken, total = 998, 50, 1_000_000
	dir := b.TempDir()
	l := largeLog{
		program: buildProgram(b), config: filepath.Join(dir, "mcp.json"), data: filepath.Join(dir, "data"), servers: programs + 2,
	}
	entries := map[string]any{
		echoServer: map[string]any{"url": mcptest.NewHTTP(b, mcptest.HTTP{}).URL},
		vastServer: map[string]any{"url": mcptest.NewHTTP(b, mcptest.HTTP{Mishap: mcptest.HugeBody, At: "tools/call", Bytes: vastBytes}).URL},
	}
	for i := range programs {
		entries[fmt.Sprintf("server-%04d", i)] = map[string]any{"command": "/bin/false", "args": []string{fmt.Sprint(i)}}
	}
	writeJSON(b, l.config, map[string]any{"mcpServers": entries})
	fillLog(b, l.data, l.config, broken, total)
	l.serve(b).stop() // leaves a snapshot behind
	b.Run("Start", l.start)
	b.Run("Memory", l.memory)
	b.Run("History", l.history)
}

// serve starts the program over the log and returns it when it knows every server.
func (l largeLog) serve(b *testing.B) runningProgram {
	b.Helper()
	return serving(b, l.program, l.config, l.data, func(rows []toolsRow) bool { return len(rows) == l.servers })
}

// start is the median time from the start of the process to a complete answer of GET
// /api/tools, with a snapshot. The bar is 300 ms.
func (l largeLog) start(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		p := l.serve(b)
		took = append(took, p.took)
		b.StopTimer()
		p.stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(median(took).Milliseconds()), "ms/start")
}

// history is the time of the first page of a server's history against a bare read of
// the same rows, as a ratio of medians.
func (l largeLog) history(b *testing.B) {
	p := l.serve(b)
	defer p.stop()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.Join(l.data, "ledger.db"), RawQuery: "mode=ro"}).String())
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const page = 100
	var asked, bare []time.Duration
	for n := 0; b.Loop(); n = (n + 1) % 100 {
		name := fmt.Sprintf("%s%02d", oftenAsked, n)
		began := time.Now()
		answer := p.get(b, "/api/servers/"+name+"/history")
		between := time.Now()
		rows := bareRows(b, db, name, page)
		asked, bare = append(asked, between.Sub(began)), append(bare, time.Since(between))
		if shown := strings.Count(string(answer), `"recorded_at"`); shown != page || rows != page {
			b.Fatalf("%s: a page of %d events and %d rows, want %d", name, shown, rows, page)
		}
	}
	b.ReportMetric(float64(median(asked).Microseconds()), "p50-µs")
	b.ReportMetric(float64(median(asked))/float64(median(bare)), "x-bare")
}

// bareRows reads the newest rows about a server and returns how many there were.
func bareRows(b *testing.B, db *sql.DB, name string, limit int) (n int) {
	b.Helper()
	rows, err := db.Query(`SELECT sequence, id, time, recorded_at, config_key, run_id, attempt_id, call_id, data, hash FROM events
		WHERE subject = (SELECT id FROM names WHERE name = ?) ORDER BY sequence DESC LIMIT ?`, name, limit)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	row := make([]any, 10)
	for i := range row {
		row[i] = new(any)
	}
	for rows.Next() {
		if err := rows.Scan(row...); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return n
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// fillLog writes the history of a fleet: every server configured, most of them with a
// catalogue, the broken ones skipped, and calls up to the total.
func fillLog(b *testing.B, data, file string, broken, total int) {
	b.Helper()
	ctx := context.Background()
	now := time.Now().Add(-10 * time.Minute) // so that no skip ends meanwhile
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
		if i == 0 {
			names[i] = "echo" // the one that can be called
		}
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
