package discovery

import (
	"context"
	"time"

	"mcpledger/discovery/clock"
)

// turns bounds the attempts at the same time. One that lasts long mostly waits for a
// server that does not answer, so after a while it gives its turn to the next and goes on
// beside: servers that hang, for minutes where a package runner starts them, keep nobody
// waiting. Those that go on are bounded, too: where programs are slow to start since they
// compete for the processor, more of them would only run into their limits. Servers that
// lasted long before do not take a turn again: they go on beside from the beginning, and
// leave room there for those of which nothing is known.
type turns struct {
	now     func() time.Time
	at      clock.At
	giveWay time.Duration // how long an attempt keeps its turn

	short chan struct{} // one for each attempt that has its turn
	long  chan struct{} // one for each that goes on beside
	again chan struct{} // one for each of those whose server lasted long before
}

// longPerTurn is how many attempts may go on beside each one that has its turn, and
// againPerTurn how many of these on servers that lasted long before.
const (
	longPerTurn  = 3
	againPerTurn = 2
)

func newTurns(parallel int, giveWay time.Duration, now func() time.Time, at clock.At) *turns {
	return &turns{
		now: now, at: at, giveWay: giveWay,
		short: make(chan struct{}, parallel), long: make(chan struct{}, parallel*longPerTurn),
		again: make(chan struct{}, parallel*againPerTurn),
	}
}

// take waits for a turn and returns how to end it, or the cause of ctx's end.
func (t *turns) take(ctx context.Context) (end context.CancelFunc, err error) {
	select {
	case t.short <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	lasts, end := context.WithCancel(context.Background())
	go t.hold(lasts)
	return end, nil
}

// takeBeside waits for a place beside the turns, for a server that lasted long before,
// and returns how to give it back, or the cause of ctx's end.
func (t *turns) takeBeside(ctx context.Context) (end context.CancelFunc, err error) {
	taken := make([]chan struct{}, 0, 2)
	end = func() {
		for _, places := range taken {
			<-places
		}
	}
	for _, places := range []chan struct{}{t.again, t.long} {
		select {
		case places <- struct{}{}:
			taken = append(taken, places)
		case <-ctx.Done():
			end()
			return nil, context.Cause(ctx)
		}
	}
	return end, nil
}

// hold keeps a turn for as long as lasts does, or gives it away.
func (t *turns) hold(lasts context.Context) {
	held := t.short
	if t.at.Wait(lasts, t.now().Add(t.giveWay)) == nil {
		select {
		case t.long <- struct{}{}:
			<-held
			held = t.long
		case <-lasts.Done():
		}
	}
	<-lasts.Done()
	<-held
}
