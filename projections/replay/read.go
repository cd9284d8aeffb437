package replay

import (
	"context"
	"iter"

	"mcpledger/events"
)

// pieceEvents is how many events are folded at a time.
var pieceEvents = 512

// piece is a stretch of the log.
type piece struct {
	events []events.Event
	err    error
}

// pieces yields the events up to and including a place in stretches, in order. The
// next is read and decoded while one is folded. What is yielded is good until the
// next is asked for.
func pieces(ctx context.Context, log events.Log, upTo events.Sequence) iter.Seq2[[]events.Event, error] {
	return func(yield func([]events.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		filled, empty := make(chan piece), make(chan []events.Event, 2)
		for range cap(empty) {
			empty <- make([]events.Event, 0, pieceEvents)
		}
		go func() {
			defer close(filled)
			fill(ctx, log, upTo, filled, empty)
		}()
		for p := range filled {
			if !yield(p.events, p.err) || p.err != nil {
				return
			}
			empty <- p.events
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// fill reads the log into empty pieces, until its end, an error or ctx's end.
func fill(ctx context.Context, log events.Log, upTo events.Sequence, filled chan<- piece, empty <-chan []events.Event) {
	send := func(p piece) bool {
		select {
		case filled <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	p := piece{events: <-empty}
	for e, err := range log.Read(ctx, events.Query{Before: upTo + 1, Bare: true}) {
		if err != nil {
			send(piece{err: err})
			return
		}
		if p.events = append(p.events, e); len(p.events) < pieceEvents {
			continue
		}
		if !send(p) {
			return
		}
		select {
		case used := <-empty:
			p.events = used[:0]
		case <-ctx.Done():
			return
		}
	}
	send(p)
}
