package discovery_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"mcpledger/discovery/clock"
	"mcpledger/events"
	"mcpledger/projections"
)

// testClock is a clock that a test moves, with what waits by it. It stands still but
// for that, and for short waits, which pass as they begin: so what the service does
// takes no time on it, however slow the machine.
type testClock struct {
	mu      sync.Mutex
	time    time.Time
	short   time.Duration // the longest wait that is short
	waiting map[*testTimer]bool
	changed chan struct{} // closed when something began to wait
}

// testTimer waits until at, unless it is not among the waiting.
type testTimer struct {
	clock *testClock
	at    time.Time
	call  func()
}

func newTestClock() *testClock {
	return &testClock{
		time: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), short: time.Second,
		waiting: map[*testTimer]bool{}, changed: make(chan struct{}),
	}
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

// call is a clock.At.
func (c *testClock) call(t time.Time, f func()) clock.Timer {
	timer := &testTimer{clock: c, call: f}
	timer.Reset(t)
	return timer
}

// Reset implements clock.Timer.
func (t *testTimer) Reset(at time.Time) {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.at = at
	t.clock.waiting[t] = true
	close(t.clock.changed)
	t.clock.changed = make(chan struct{})
	if at.Sub(t.clock.time) <= t.clock.short {
		t.clock.moveTo(at)
	}
}

// Stop implements clock.Timer.
func (t *testTimer) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	delete(t.clock.waiting, t)
}

// setShort says which waits pass as they begin, and returns which did before.
func (c *testClock) setShort(longest time.Duration) (before time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.short = c.short, longest
	return before
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moveTo(c.time.Add(d))
}

// moveTo makes the calls whose time has come by then, the earliest first. The clock is
// held, and does not go back.
func (c *testClock) moveTo(then time.Time) {
	for {
		var first *testTimer
		for t := range c.waiting {
			if !t.at.After(then) && (first == nil || t.at.Before(first.at)) {
				first = t
			}
		}
		if first == nil {
			break
		}
		delete(c.waiting, first)
		if first.at.After(c.time) {
			c.time = first.at
		}
		go first.call()
	}
	if then.After(c.time) {
		c.time = then
	}
}

// awaitWaiting returns once n things wait that end in d from now.
func (c *testClock) awaitWaiting(t *testing.T, n int, d time.Duration) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		c.mu.Lock()
		changed, waiting := c.changed, 0
		for timer := range c.waiting {
			if timer.at.Equal(c.time.Add(d)) {
				waiting++
			}
		}
		c.mu.Unlock()
		if waiting == n {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("%d things end in %s from now, want %d", waiting, d, n)
		}
	}
}

// awaitLimit returns once an attempt is under way that may go on for d from now.
func (c *testClock) awaitLimit(t *testing.T, d time.Duration) {
	t.Helper()
	waiting := 1
	if d == time.Minute {
		waiting = 2 // the schedule looks up after a minute, too
	}
	c.awaitWaiting(t, waiting, d)
}

// life is a running service that is seen through its time by its log.
type life struct {
	*running
	seen events.Sequence
	runs int // under way, by what was seen
}

// note takes what a run's begin and end say.
func (l *life) note(e events.Event) {
	l.seen = e.Sequence
	switch e.Type {
	case events.TypeDiscoveryRunStarted:
		l.runs++
	case events.TypeDiscoveryRunCompleted:
		l.runs--
	}
}

// rest waits until no run is under way and no server is due, and returns when the next
// one is; false if none ever is.
func (l *life) rest() (next time.Time, ever bool) {
	l.w.t.Helper()
	for e, err := range l.log.Read(context.Background(), events.Query{After: l.seen}) {
		if err != nil {
			l.w.t.Fatal(err)
		}
		l.note(e)
	}
	resting := func() bool {
		var head events.Sequence
		next, ever, head = l.next()
		return l.runs == 0 && l.seen >= head && (!ever || next.After(l.w.now()))
	}
	if resting() {
		return next, ever
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for e, err := range l.log.Follow(ctx, l.seen) {
		if err != nil {
			break
		}
		if l.note(e); resting() {
			return next, ever
		}
	}
	l.w.t.Fatalf("no rest at %s: %d runs are under way, an attempt is due at %s", l.w.now(), l.runs, next)
	return next, ever
}

// next returns when the next attempt on any server is due, and the place in the log
// from which that is known.
func (l *life) next() (next time.Time, ever bool, head events.Sequence) {
	l.w.t.Helper()
	err := l.engine.View(func(s *projections.State) {
		head = s.Sequence()
		for _, v := range s.Servers(l.w.now()) {
			if at := v.NextAttempt; !at.IsZero() && (!ever || at.Before(next)) {
				next, ever = at, true
			}
		}
	})
	if err != nil {
		l.w.t.Fatal(err)
	}
	return next, ever, head
}

// pass lets a time pass, from one due attempt to the next.
func (l *life) pass(d time.Duration) {
	l.w.t.Helper()
	for until := l.w.now().Add(d); ; {
		next, ever := l.rest()
		if !ever || next.After(until) {
			l.w.clock.advance(until.Sub(l.w.now()))
			return
		}
		l.w.clock.advance(next.Sub(l.w.now()))
	}
}
