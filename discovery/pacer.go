package discovery

import (
	"context"
	"time"

	"mcpledger/discovery/clock"
)

// launchesPerSecond bounds how many scheduled attempts begin in a second. Starts
// and people's requests are not slowed.
const launchesPerSecond = 4

// pacer spaces launches evenly.
type pacer struct {
	now  func() time.Time
	at   clock.At
	slot chan time.Time // holds when the next launch may be
}

func newPacer(now func() time.Time, at clock.At) *pacer {
	p := &pacer{now: now, at: at, slot: make(chan time.Time, 1)}
	p.slot <- time.Time{}
	return p
}

// wait returns when the next launch may begin, or with ctx's error.
func (p *pacer) wait(ctx context.Context) error {
	var next time.Time
	select {
	case next = <-p.slot:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if now := p.now(); next.Before(now) {
		next = now
	}
	p.slot <- next.Add(time.Second / launchesPerSecond)
	return p.at.Wait(ctx, next)
}
