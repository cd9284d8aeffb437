package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"

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
	f, possible, err := l.newFilter(ctx, q)
	if err != nil {
		return nil, err
	}
	p := &pager{
		log: l, filter: f, window: scannedSequences, desc: q.Desc, limit: q.Limit,
		low: int64(q.After), high: maxSequence, more: possible,
	}
	if q.Before > 0 {
		p.high = int64(q.Before)
	}
	if f.where == "" || f.indexed {
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
