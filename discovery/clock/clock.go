// Package clock is how the code of discovery waits for a time. What is due in an hour,
// and what ends after ten minutes, goes by the same clock as what is recorded; so a
// test that moves the clock moves all of it.
package clock

import (
	"context"
	"time"
)

// At calls f, in a goroutine of its own, once it is t; at once if that is past.
type At func(t time.Time, f func()) Timer

// Timer is a call that waits for its time. It is safe for concurrent use.
type Timer interface {
	// Reset moves the call to another time. One that was made is made again.
	Reset(t time.Time)
	// Stop has no call made any more, unless Reset comes after it. A call that has
	// begun goes on.
	Stop()
}

// Running returns At for a clock that runs as the wall clock does, however far from it.
func Running(now func() time.Time) At {
	return func(t time.Time, f func()) Timer {
		return running{time.AfterFunc(t.Sub(now()), f), now}
	}
}

type running struct {
	timer *time.Timer
	now   func() time.Time
}

func (r running) Reset(t time.Time) { r.timer.Reset(t.Sub(r.now())) }
func (r running) Stop()             { r.timer.Stop() }

// Until returns ctx, ended with cause once it is t, and a function that ends it before
// and stops the timer.
func (at At) Until(ctx context.Context, t time.Time, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := at(t, func() { cancel(cause) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// Wait returns nil once it is t, or the cause of ctx's end.
func (at At) Wait(ctx context.Context, t time.Time) error {
	come := make(chan struct{})
	defer at(t, func() { close(come) }).Stop()
	select {
	case <-come:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
