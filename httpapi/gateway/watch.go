package gateway

import (
	"context"
	"time"
)

// sweepInterval is how often what lies idle is looked for.
const sweepInterval = time.Minute

// watch tells the clients of each view when what it lists has changed, and ends what
// lies idle, until ctx ends.
func (g *Gateway) watch(ctx context.Context) {
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		changed := g.fleet.changed()
		if wait := g.announce(); wait > 0 {
			again.Reset(wait)
		}
		select {
		case <-changed:
			// What changes together is looked at together.
			if !pause(ctx, settleTime) {
				return
			}
		case <-again.C:
		case <-sweep.C:
			g.sweep()
		case <-ctx.Done():
			return
		}
	}
}

// settleTime is how long after a change the views are looked at.
const settleTime = 50 * time.Millisecond

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// announce has every view tell its clients what changed, and returns how long to wait
// until those that did so a moment ago may again, or a skip runs out; 0 when none has to.
func (g *Gateway) announce() time.Duration {
	now := g.now()
	var soonest time.Duration
	wait := func(until time.Time) {
		if d := until.Sub(now); !until.IsZero() && (soonest == 0 || d < soonest) {
			soonest = d
		}
	}
	for _, v := range g.openViews() {
		wait(v.announce(now))
	}
	if standing, err := g.fleet.now(); err == nil {
		wait(standing.until)
	}
	return soonest
}

// sweep ends sessions that lie idle, drops lists that are no longer good, and has
// servers asked again for the resources that somebody subscribed to: a session that is
// asked is not idle, and one that could not be opened may be by now.
func (g *Gateway) sweep() {
	for _, c := range g.clients.expired() {
		g.drop(c)
	}
	g.lists.sweep()
	g.subscriptions.renewAll()
}
