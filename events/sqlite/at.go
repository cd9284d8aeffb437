package sqlite

import (
	"context"
	"database/sql"
	"sort"
	"time"

	"mcpledger/events"
)

// SequenceAt returns the largest sequence recorded at or before t, 0 if none. The
// clock may have been set back: the log is then several stretches in which
// recorded_at never falls, and the last one that begins by t has the answer.
func (l *Log) SequenceAt(ctx context.Context, t time.Time) (events.Sequence, error) {
	last, err := l.lastSequence(ctx)
	if err != nil || last == 0 {
		return 0, err
	}
	starts, err := clockSteps(ctx, l.reads, last)
	if err != nil {
		return 0, l.readError(ctx, err)
	}
	at := clampedNanoseconds(t)
	for _, start := range append(starts, 1) {
		// The first in start..last that was recorded after t follows the one looked for.
		var failed error
		n := sort.Search(int(last-start+1), func(i int) bool {
			recorded, err := l.recordedAt(ctx, start+int64(i))
			if err != nil {
				failed = err
			}
			return recorded > at
		})
		if failed != nil {
			return 0, l.readError(ctx, failed)
		}
		if n > 0 {
			return events.Sequence(start + int64(n) - 1), nil
		}
		last = start - 1
	}
	return 0, nil
}

// clockSteps returns the places up to last where the clock was set back, the last
// one first.
func clockSteps(ctx context.Context, db *sql.DB, last int64) ([]int64, error) {
	rows, err := db.QueryContext(ctx, "SELECT sequence FROM clock_steps WHERE sequence <= ? ORDER BY sequence DESC", last)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var steps []int64
	for rows.Next() {
		var step int64
		if err := rows.Scan(&step); err != nil {
			return nil, unscannable(err)
		}
		steps = append(steps, step)
	}
	return steps, rows.Err()
}

func (l *Log) recordedAt(ctx context.Context, sequence int64) (int64, error) {
	var at int64
	err := l.reads.QueryRowContext(ctx, "SELECT recorded_at FROM events WHERE sequence = ?", sequence).Scan(&at)
	return at, err
}
