package sqlite_test

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/migrations"
)

// The floor the log is measured against: prepared inserts of finished rows into the
// same schema, durable in the same way, and nothing else.
type floor struct {
	db       *sql.DB
	insert   *sql.Stmt
	sequence int64
}

func newFloor(b *testing.B) *floor {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "floor.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if err := migrations.Apply(ctx, db); err != nil {
		b.Fatal(err)
	}
	f := &floor{db: db}
	f.insert, err = db.Prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// row returns the columns of a finished row as large as those of callStarted.
func (f *floor) row() []any {
	f.sequence++
	id, call := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	now := time.Now().UnixNano()
	return []any{f.sequence, id[:], 1, 2, 3, now, 1, now, 4, nil, nil, call[:], 5, nil, make([]byte, 105), make([]byte, 32)}
}

func (f *floor) commit(b *testing.B, rows [][]any) {
	tx, err := f.db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	insert := tx.Stmt(f.insert)
	defer func() { _ = insert.Close() }()
	for _, row := range rows {
		if _, err := insert.Exec(row...); err != nil {
			b.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}

func callStarted() events.Event {
	sum := sha256.Sum256([]byte(rand.Text()))
	return events.Event{
		ID: uuid.Must(uuid.NewV7()).String(), Source: "service-1", Type: events.TypeToolCallStarted,
		Subject: "weather", ConfigKey: "k1_abcdefghijklmnop.abcdefghijklmnop", Time: time.Now(), DataVersion: 1,
		CallID: uuid.Must(uuid.NewV7()).String(), Actor: "agent",
		Data: events.ToolCallStarted{Tool: "get_forecast", ArgumentsHash: fmt.Sprintf("%x", sum), ArgumentsSize: 120, Caller: "agent", Generation: 1},
	}
}

// BenchmarkAppend64 has 64 callers append single events, against a floor of one
// caller that has 64 rows at hand for each transaction, just before. The bar is 0.8 of
// the floor. Told is the pass in the middle by its ratio: on a machine that others use,
// single passes say anything.
func BenchmarkAppend64(b *testing.B) {
	const callers, each = 64, 64
	f := newFloor(b)
	l := open(b, b.TempDir())
	type pass struct{ ours, floor time.Duration }
	var all []pass
	for b.Loop() {
		rows := make([][]any, callers*each)
		batches := make([][]events.Event, callers*each)
		for i := range rows {
			rows[i], batches[i] = f.row(), []events.Event{callStarted()}
		}
		begin := time.Now()
		for i := range each {
			f.commit(b, rows[i*callers:(i+1)*callers])
		}
		floor := time.Since(begin)

		begin = time.Now()
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				// Each takes every 64th, so that ids come in about their order, as they do.
				for j := i; j < len(batches); j += callers {
					if _, err := l.Append(ctx, batches[j]); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		all = append(all, pass{time.Since(begin), floor})
	}
	ofFloor := func(p pass) float64 { return p.floor.Seconds() / p.ours.Seconds() }
	slices.SortFunc(all, func(a, b pass) int { return cmp.Compare(ofFloor(a), ofFloor(b)) })
	middle := all[len(all)/2]
	b.ReportMetric(callers*each/middle.ours.Seconds(), "events/s")
	b.ReportMetric(callers*each/middle.floor.Seconds(), "floor-events/s")
	b.ReportMetric(ofFloor(middle), "of-floor")
}

// BenchmarkAppend1 has one caller append single events, against single-row
// transactions. The bar is 1.3 times the floor's median.
func BenchmarkAppend1(b *testing.B) {
	f := newFloor(b)
	l := open(b, b.TempDir())
	var ours, floors []time.Duration
	for b.Loop() {
		row, event := [][]any{f.row()}, []events.Event{callStarted()}
		begin := time.Now()
		f.commit(b, row)
		floors = append(floors, time.Since(begin))
		begin = time.Now()
		if _, err := l.Append(ctx, event); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(begin))
	}
	slices.Sort(ours)
	slices.Sort(floors)
	p50, floor50 := ours[len(ours)/2], floors[len(floors)/2]
	b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
	b.ReportMetric(float64(floor50.Microseconds()), "floor-p50-µs")
	b.ReportMetric(float64(p50)/float64(floor50), "x-floor")
}

// BenchmarkRead reads a long log, decoded.
func BenchmarkRead(b *testing.B) {
	b.Run("calls", func(b *testing.B) {
		benchmarkRead(b, func(int) []events.Event { return []events.Event{callStarted(), callStarted()} })
	})
	b.Run("failures", func(b *testing.B) { benchmarkRead(b, repeatedFailure) })
}

func benchmarkRead(b *testing.B, pair func(i int) []events.Event) {
	const n = 50_000
	l := open(b, b.TempDir())
	for i := range n / 500 {
		var batch []events.Event
		for j := range 250 {
			batch = append(batch, pair(250*i+j)...)
		}
		add(b, l, batch...)
	}
	begin := time.Now()
	for b.Loop() {
		read := 0
		for _, err := range l.Read(ctx, events.Query{}) {
			if err != nil {
				b.Fatal(err)
			}
			read++
		}
		if read != n {
			b.Fatalf("read %d events, want %d", read, n)
		}
	}
	b.ReportMetric(float64(n*b.N)/time.Since(begin).Seconds(), "events/s")
}

// repeatedFailure is what one more run of a server that fails in the same way adds:
// an attempt with local facts and its outcome with a traceback.
func repeatedFailure(i int) []events.Event {
	run, attempt, exit, spoke := uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String(), 1, int64(37+i%50)
	at := noon.Add(time.Duration(i)*time.Hour + time.Duration(i*7919))
	event := func(data events.Data) events.Event {
		return events.Event{
			ID: uuid.Must(uuid.NewV7()).String(), Source: "0190c0de-0000-7000-8000-00000000000a", Type: data.EventType(),
			Subject: "google-sheets", ConfigKey: "k1_abcdefghijklmnop.abcdefghijklmnop", Time: at, DataVersion: 1,
			RunID: run, AttemptID: attempt, Data: data,
		}
	}
	return []events.Event{
		event(events.DiscoveryStarted{Attempt: 1, Trigger: events.TriggerRetry, LimitMS: 60_000, Facts: []events.LocalFact{
			{Path: "/home/ada/.local/bin/uvx", Found: true, Size: 332_168, MTime: noon},
			{Path: "/home/ada/servers/google-sheets", Found: true, Size: 4096, MTime: noon},
		}}),
		event(events.DiscoveryFailed{Evidence: events.Evidence{
			Phase: events.PhaseHandshake, Transport: events.TransportStdio, Error: "transport closed: the process ended before it answered",
			ErrorKind: events.KindExit, Command: "uvx mcp-google-sheets@latest", ExitCode: &exit, EndedBy: events.EndedByServer,
			StderrTail:  strings.Repeat("  File \"/home/ada/.cache/uv/archive/lib/python3.12/site-packages/server.py\", line 12\n", 20) + "ModuleNotFoundError: No module named 'mcp.server.fastmcp'",
			StderrBytes: 1840, StderrLastMS: &spoke, ElapsedMS: int64(1200 + i%300), LimitMS: 60_000,
		}}),
	}
}

// failureBytes returns what n repeated failures add to the files on disk, each.
func failureBytes(t testing.TB, n int) float64 {
	dir := t.TempDir()
	size := func() int64 {
		var total int64
		for _, name := range []string{"ledger.db", "ledger.db-wal"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
				total += info.Size()
			}
		}
		return total
	}
	grow := func(from, to int) int64 {
		l, err := sqlite.Open(ctx, dir, options)
		if err != nil {
			t.Fatal(err)
		}
		for i := from; i < to; i += 50 {
			var batch []events.Event
			for j := i; j < i+50; j++ {
				batch = append(batch, repeatedFailure(j)...)
			}
			add(t, l, batch...)
		}
		closeLog(t, l)
		return size()
	}
	before := grow(0, 100)
	return float64(grow(100, 100+n)-before) / float64(n)
}

func TestARepeatedFailureCosts600BytesAtMost(t *testing.T) {
	if got := failureBytes(t, 1000); got > 600 {
		t.Errorf("a repeated failure costs %.0f bytes on disk, want 600 at most", got)
	}
}

func BenchmarkRepeatedFailureBytes(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(failureBytes(b, 2000), "B/failure")
	}
}
