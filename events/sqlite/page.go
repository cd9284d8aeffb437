package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"mcpledger/events"
)

// Reading goes page by page, each in a transaction of its own, so that a long read
// holds up no checkpoint. A page ends after pageEvents events or, where a filter
// makes matches rare, after as many sequences as can be looked through quickly: by
// an index, or row by row.
const (
	pageEvents       = 512
	indexedSequences = 1 << 18
	scannedSequences = 1 << 14
)

// frequentTypes is the last number of a type that events_rare leaves out.
const frequentTypes = 16

// maxSequence is past every sequence.
const maxSequence = math.MaxInt64

// pager reads the rows that match a query, a page at a time.
type pager struct {
	log *Log
	filter
	window int64 // sequences looked through for one page
	desc   bool
	limit  int   // rows yet to be returned; 0: all
	low    int64 // sequences above it are yet to be looked at
	high   int64 // and below it
	more   bool
}

func (l *Log) newPager(ctx context.Context, q events.Query) (*pager, error) {
	p := &pager{
		log: l, filter: filter{bare: q.Bare}, window: scannedSequences, desc: q.Desc, limit: q.Limit,
		low: int64(q.After), high: maxSequence, more: true,
	}
	if q.Before > 0 {
		p.high = int64(q.Before)
	}
	without, err := l.numbers(ctx, texts(q.Without))
	if err != nil {
		return nil, err
	}
	p.isNoneOf("type", without)
	types := texts(q.Types)
	var typeIDs []int64
	for _, c := range []struct {
		column string
		names  []string
	}{
		{"subject", optional(string(q.Subject))}, {"source", optional(q.Source)},
		{"config_key", optional(string(q.ConfigKey))}, {"type", types},
	} {
		if len(c.names) == 0 {
			continue
		}
		ids, err := l.numbers(ctx, c.names)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			p.more = false // no event has a name that no event has
			return p, nil
		}
		p.isOneOf(c.column, ids)
		typeIDs = ids // of the last column, if there are any
	}
	indexed := q.ID != "" || q.Subject != "" || q.RunID != "" || q.CallID != ""
	rare := len(types) > 0 && slices.Min(typeIDs) > frequentTypes
	if rare && !indexed {
		p.rareTypes()
	}
	p.is("id = ?", idValue(q.ID))
	p.is("run_id = ?", idValue(q.RunID))
	p.is("attempt_id = ?", idValue(q.AttemptID))
	p.is("call_id = ?", idValue(q.CallID))
	if !q.Since.IsZero() {
		p.is("time >= ?", clampedNanoseconds(q.Since))
	}
	if !q.Until.IsZero() {
		p.is("time < ?", clampedNanoseconds(q.Until))
	}
	if p.where == "" || indexed || rare {
		p.window = indexedSequences
	}
	return p, nil
}

// next returns the next page, which may be empty while p.more is set. It is written
// to buf where that has room.
func (p *pager) next(ctx context.Context, buf []numbered) ([]numbered, error) {
	if err := ctx.Err(); err != nil || !p.more {
		return nil, err
	}
	last, err := p.log.lastSequence(ctx)
	if err != nil {
		return nil, err
	}
	low, high, order := min(p.low, last), min(p.high, last+1), "ASC"
	if p.desc {
		low, order = max(low, high-1-p.window), "DESC"
	} else {
		high = min(high, low+1+p.window)
	}
	want := pageEvents
	if p.limit > 0 {
		want = min(want, p.limit)
	}
	page, err := selectEvents(ctx, p.log.reads, p.filter, low, high, order, want, buf)
	if err != nil {
		return nil, p.log.readError(ctx, err)
	}
	switch full := len(page) == want; {
	case full && p.desc:
		p.high = page[want-1].sequence
	case full:
		p.low = page[want-1].sequence
	case p.desc:
		p.high = low + 1
	default:
		p.low = high - 1
	}
	p.more = p.low < min(p.high-1, last)
	if p.limit > 0 {
		p.limit -= len(page)
		p.more = p.more && p.limit > 0
	}
	return page, nil
}

// ahead returns a function that gives one page after the other, and whether there
// are more. The first is read when it is asked for, the others before they are,
// until ctx ends. A page is good until the next is asked for.
func (p *pager) ahead(ctx context.Context) func() (rows []numbered, more bool, err error) {
	type page struct {
		rows []numbered
		more bool
		err  error
	}
	read := func(buf []numbered) page {
		rows, err := p.next(ctx, buf)
		return page{rows, p.more && err == nil, err}
	}
	var current page
	var pages chan page
	// Three pages are read into, in turn: one is in use, one waits, one is being read.
	free := make(chan []numbered, 3)
	free <- nil
	free <- nil
	readOn := func() {
		defer close(pages)
		for more := true; more; {
			var next page
			select {
			case buf := <-free:
				next = read(buf)
			case <-ctx.Done():
				return
			}
			more = next.more
			select {
			case pages <- next:
			case <-ctx.Done():
				return
			}
		}
	}
	return func() ([]numbered, bool, error) {
		if pages == nil {
			current = read(nil)
			if current.more {
				pages = make(chan page, 1)
				go readOn()
			}
			return current.rows, current.more, current.err
		}
		free <- current.rows
		var ok bool
		if current, ok = <-pages; !ok {
			return nil, false, ctx.Err()
		}
		return current.rows, current.more, current.err
	}
}

// filter is conditions on the columns of events.
type filter struct {
	bare  bool   // the columns of a bare read are enough
	index string // " INDEXED BY " and a name, if SQLite has to be told
	where string // each condition after " AND "
	args  []any
}

// rareTypes asks for the types that events_rare indexes, by that index.
func (f *filter) rareTypes() {
	f.index = " INDEXED BY events_rare"
	f.where += fmt.Sprintf(" AND type > %d", frequentTypes)
}

// isOneOf asks for rows whose column has one of the numbers.
func (f *filter) isOneOf(column string, numbers []int64) {
	for _, n := range numbers {
		f.args = append(f.args, n)
	}
	f.where += " AND " + column + " IN (?" + strings.Repeat(", ?", len(numbers)-1) + ")"
}

// isNoneOf asks for rows whose column has none of the numbers.
func (f *filter) isNoneOf(column string, numbers []int64) {
	if len(numbers) > 0 {
		f.isOneOf(column+" NOT", numbers)
	}
}

// is asks for rows that fulfil condition; a nil value asks nothing.
func (f *filter) is(condition string, value any) {
	if value == nil {
		return
	}
	f.where += " AND " + condition
	f.args = append(f.args, value)
}

// selectEvents returns the matching rows with low < sequence < high, at most limit,
// in that order of sequence, in buf where that has room. With an error it returns those
// before it.
func selectEvents(ctx context.Context, db *sql.DB, f filter, low, high int64, order string, limit int, buf []numbered) (page []numbered, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	args := append(append([]any{low, high}, f.args...), int64(limit))
	selected := columns
	if f.bare {
		selected = bareColumns
	}
	page = buf[:0]
	err = query(conn, "SELECT "+selected+" FROM events"+f.index+" WHERE sequence > ? AND sequence < ?"+
		f.where+" ORDER BY sequence "+order+" LIMIT ?", args, func(row []driver.Value) error {
		e, err := scan(row)
		if err == nil {
			page = append(page, e)
		}
		return err
	})
	return page, errors.Join(err, conn.Close())
}

func optional(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func texts(types []events.Type) []string {
	all := make([]string, len(types))
	for i, t := range types {
		all[i] = string(t)
	}
	return all
}

func clampedNanoseconds(t time.Time) int64 {
	switch {
	case t.Before(events.EarliestTime):
		return events.EarliestTime.UnixNano()
	case t.After(events.LatestTime):
		return events.LatestTime.UnixNano()
	}
	return t.UnixNano()
}

// numbers returns the numbers of those names that have one.
func (l *Log) numbers(ctx context.Context, names []string) ([]int64, error) {
	var ids []int64
	for _, name := range names {
		id, err := l.names.number(ctx, name)
		if err != nil {
			return nil, l.readError(ctx, err)
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
