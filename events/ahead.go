package events

import (
	"context"
	"iter"
)

// Ahead begins to read what q selects, in a goroutine of its own, and yields it in
// order in pieces of n events, the last one shorter. One piece at most is read ahead of
// the one in use, which is good until the next is asked for. The first error is yielded
// and ends it. What Ahead returns is ranged over once, or else ctx must end.
func Ahead(ctx context.Context, log Log, q Query, n int) iter.Seq2[[]Event, error] {
	ctx, cancel := context.WithCancel(ctx)
	a := ahead{filled: make(chan piece), empty: make(chan []Event, 2)}
	for range cap(a.empty) {
		a.empty <- make([]Event, 0, n)
	}
	go func() {
		defer close(a.filled)
		a.fill(ctx, log.Read(ctx, q), n)
	}()
	return func(yield func([]Event, error) bool) {
		defer cancel()
		for p := range a.filled {
			if !yield(p.events, p.err) || p.err != nil {
				return
			}
			a.empty <- p.events
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// ahead is what goes between who reads and who uses.
type ahead struct {
	filled chan piece
	empty  chan []Event
}

type piece struct {
	events []Event
	err    error
}

// fill puts what is read into empty pieces, until its end, an error or ctx's end.
func (a *ahead) fill(ctx context.Context, read iter.Seq2[Event, error], n int) {
	send := func(p piece) bool {
		select {
		case a.filled <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	p := piece{events: <-a.empty}
	for e, err := range read {
		if err != nil {
			send(piece{err: err})
			return
		}
		if p.events = append(p.events, e); len(p.events) < n {
			continue
		}
		if !send(p) {
			return
		}
		select {
		case used := <-a.empty:
			p.events = used[:0]
		case <-ctx.Done():
			return
		}
	}
	if len(p.events) > 0 {
		send(p)
	}
}
