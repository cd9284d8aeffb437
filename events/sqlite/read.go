package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"mcpledger/events"
)

// Read yields the events that match q. While one page is decoded and used, the next
// one is read.
func (l *Log) Read(ctx context.Context, q events.Query) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		p, err := l.newPager(ctx, q)
		if err != nil {
			yield(events.Event{}, err)
			return
		}
		next, d := p.ahead(ctx), l.newDecoder(ctx, q.Bare)
		for {
			rows, more, err := next()
			for i := range rows {
				e, err := d.decode(&rows[i])
				if !yield(e, err) || err != nil {
					return
				}
			}
			if err != nil {
				yield(events.Event{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// decoder spells out what rows have by number and by hash.
type decoder struct {
	bare    bool
	name    func(id int64) (string, error)
	content func(hash string) (*events.Loaded, error)
	wrap    func(error) error
	buf     []byte // of the last payload of a bare read, whose events have no part of it
}

func (l *Log) newDecoder(ctx context.Context, bare bool) *decoder {
	return &decoder{
		bare: bare,
		name: func(id int64) (string, error) { return l.names.text(ctx, id) },
		content: func(hash string) (*events.Loaded, error) {
			content, err := l.content(ctx, hash)
			if errors.Is(err, events.ErrNotFound) {
				return nil, fmt.Errorf("%w: %w", events.ErrCorrupt, err)
			}
			return content, err
		},
		wrap: func(err error) error { return l.readError(ctx, err) },
	}
}

func (d *decoder) decode(row *numbered) (events.Event, error) {
	if err := row.spell(d.name, d.buf); err != nil {
		return events.Event{}, d.wrap(err)
	}
	if !d.bare {
		return row.event(d.content)
	}
	d.buf = row.data
	return row.bareEvent(d.content)
}

// Head returns the last event's place and hash.
func (l *Log) Head(ctx context.Context) (events.Head, error) {
	if l.isClosed() {
		return events.Head{}, events.ErrClosed
	}
	if l.writer != nil {
		return *l.writer.head.Load(), nil
	}
	var p place
	var hash []byte
	err := l.reads.QueryRowContext(ctx, "SELECT sequence, hash FROM events ORDER BY sequence DESC LIMIT 1").Scan(&p.sequence, &hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return events.Head{}, l.readError(ctx, err)
	}
	copy(p.hash[:], hash)
	return p.headOf(), nil
}

func (l *Log) lastSequence(ctx context.Context) (int64, error) {
	head, err := l.Head(ctx)
	return int64(head.Sequence), err
}

// readError says what an error of a read amounts to.
func (l *Log) readError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case l.isClosed():
		return events.ErrClosed
	}
	return fmt.Errorf("read log in %s: %w", l.dir, explain(err))
}
