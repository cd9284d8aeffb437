package sqlite

import (
	"context"
	"errors"

	"mcpledger/events"
)

// Append stores a batch in order, durable before it returns, all or nothing.
// Batches appended at the same time share a sync to disk.
func (l *Log) Append(ctx context.Context, batch []events.Event) (events.Receipt, error) {
	if l.writer == nil {
		return events.Receipt{}, ErrReadOnly
	}
	if len(batch) == 0 {
		return events.Receipt{}, ctx.Err()
	}
	l.writer.callers.Add(1)
	defer l.writer.callers.Add(-1)
	r := &request{batch: make([]prepared, len(batch))}
	for i := range batch {
		if err := r.batch[i].prepare(batch[i]); err != nil {
			return events.Receipt{}, err
		}
	}
	if err := l.writer.submit(ctx, r); err != nil {
		return events.Receipt{}, err
	}
	return r.receipt, nil
}

// OnCommit registers fn to be called with the events of each commit.
func (l *Log) OnCommit(fn func(committed []events.Event)) {
	if l.writer == nil {
		return
	}
	l.writer.mu.Lock()
	defer l.writer.mu.Unlock()
	l.writer.subscribers = append(l.writer.subscribers, fn)
}

// Unavailable returns why the log cannot be written at present, an error that is
// events.ErrUnavailable or events.ErrCorrupt; nil when it can.
func (l *Log) Unavailable() error {
	if l.writer == nil {
		return nil
	}
	return l.writer.state()
}

func isConflict(err error) bool { return errors.Is(err, events.ErrConflict) }
