package replay

import (
	"context"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// Alone puts one side through the log and returns its state, and how many attempts
// it avoided or does not know.
func Alone(ctx context.Context, log events.Log, set *rules.Set) (state *projections.State, parted int, err error) {
	head, err := log.Head(ctx)
	if err != nil {
		return nil, 0, err
	}
	s := newSide(set, func(time.Time, events.ServerName) bool { return true })
	for piece, err := range pieces(ctx, log, head.Sequence, pieceEvents) {
		if err != nil {
			return nil, 0, err
		}
		s.fold(piece)
	}
	s.finish()
	for _, c := range s.counts {
		parted += c.avoided + c.unknown + c.delayed + c.refused
	}
	return s.state, parted, nil
}

// InPiecesOf returns the options of a replay that reads so many events at a time.
func (o Options) InPiecesOf(n int) Options {
	o.piece = n
	return o
}
