package discovery_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
)

// BenchmarkCall measures tool calls through the service, start and outcome durable,
// against two others in the same run: a bare proxy that commits two rows of the same
// size around the same request, and a direct call that records nothing.
func BenchmarkCall(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			w := newWorld(b)
			w.entries["remote"] = map[string]any{"url": mcptest.NewHTTP(b, mcptest.HTTP{}).URL}
			r := w.start()
			r.awaitState("remote", projections.StateReady)
			proxy := newBareProxy(b)
			direct := newDirect(b)
			ours := func(n int) error {
				out, err := r.tryCall("remote", "echo", fmt.Sprintf(`{"n":%d}`, n), 0)
				if err == nil && out.Failure != nil {
					return fmt.Errorf("%s", told(out))
				}
				return err
			}
			for _, warm := range []func(int) error{ours, proxy.call, direct} {
				if err := warm(0); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			took := timed(b, b.N, callers, ours)
			b.StopTimer()
			floor, bare := timed(b, b.N, callers, proxy.call), timed(b, b.N, callers, direct)
			b.ReportMetric(took.perSecond, "calls/s")
			b.ReportMetric(took.perSecond/floor.perSecond, "x-floor")
			b.ReportMetric(took.perSecond/bare.perSecond, "x-direct")
			b.ReportMetric(float64((took.p50 - floor.p50).Microseconds()), "added-p50-µs")
		})
	}
}

// timing is how fast calls were.
type timing struct {
	perSecond float64
	p50       time.Duration
}

// timed makes n calls by as many callers at the same time.
func timed(b *testing.B, n, callers int, call func(n int) error) timing {
	times := make([]time.Duration, n)
	var all sync.WaitGroup
	began := time.Now()
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < n; i += callers {
				start := time.Now()
				if err := call(i); err != nil {
					b.Error(err)
					return
				}
				times[i] = time.Since(start)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	slices.Sort(times)
	return timing{perSecond: float64(n) / took.Seconds(), p50: times[n/2]}
}

// newDirect returns a call on a session with a server of its own.
func newDirect(b *testing.B) func(n int) error {
	session, err := upstream.Open(context.Background(), upstream.Target{
		Name: "remote", Transport: events.TransportHTTP, URL: mcptest.NewHTTP(b, mcptest.HTTP{}).URL, Now: time.Now,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = session.Close(context.Background()) })
	return func(n int) error {
		_, err := session.CallTool(context.Background(), "echo", fmt.Appendf(nil, `{"n":%d}`, n), upstream.CallOptions{})
		return err
	}
}

// bareProxy forwards a call and commits a row before and after it, all that wait in
// one transaction. It does nothing else.
type bareProxy struct {
	url  string
	rows chan row
}

type row struct {
	body []byte
	done chan error
}

func newBareProxy(b *testing.B) *bareProxy {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "floor.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE rows (sequence INTEGER PRIMARY KEY, id TEXT UNIQUE, type TEXT, subject TEXT, body BLOB, hash BLOB) STRICT`); err != nil {
		b.Fatal(err)
	}
	p := &bareProxy{url: mcptest.NewHTTP(b, mcptest.HTTP{Sessionless: true}).URL, rows: make(chan row, 64)}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for first := range p.rows {
			group := []row{first}
			for len(p.rows) > 0 {
				group = append(group, <-p.rows)
			}
			err := commitRows(db, group)
			for _, r := range group {
				r.done <- err
			}
		}
	}()
	b.Cleanup(func() {
		close(p.rows)
		<-stopped
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return p
}

func commitRows(db *sql.DB, group []row) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for i, r := range group {
		if _, err := tx.Exec(`INSERT INTO rows (id, type, subject, body, hash) VALUES (?, ?, ?, ?, ?)`,
			fmt.Sprint(time.Now().UnixNano(), i), "toolcall", "remote", r.body, r.body[:32]); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (p *bareProxy) write() error {
	r := row{body: bytes.Repeat([]byte("x"), 300), done: make(chan error, 1)}
	p.rows <- r
	return <-r.done
}

func (p *bareProxy) call(n int) error {
	if err := p.write(); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": n + 1, "method": "tools/call", "params": map[string]any{"name": "echo", "arguments": map[string]int{"n": n}},
	})
	if err != nil {
		return err
	}
	resp, err := http.Post(p.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if closed := resp.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return p.write()
}
