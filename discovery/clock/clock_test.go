package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpledger/discovery/clock"
)

// A clock that is an hour ahead waits as long as any other.
func TestARunningClockCallsWhenItIsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		now := func() time.Time { return time.Now().Add(time.Hour) }
		at := clock.Running(now)
		called := make(chan time.Duration, 2)
		call := func() { called <- time.Since(began) }
		timer := at(now().Add(time.Minute), call)
		if got := <-called; got != time.Minute {
			t.Errorf("called after %s, want a minute", got)
		}
		timer.Reset(now().Add(time.Second))
		if got := <-called; got != time.Minute+time.Second {
			t.Errorf("called again after %s, want a minute and a second", got)
		}
		at(now().Add(-time.Hour), call)
		if got := <-called; got != time.Minute+time.Second {
			t.Errorf("a time that is past came after %s", got)
		}
		at(now().Add(time.Minute), call).Stop()
		time.Sleep(time.Hour)
		if len(called) > 0 {
			t.Errorf("a stopped timer called after %s", <-called)
		}
	})
}

func TestAContextEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, began, late := clock.Running(time.Now), time.Now(), errors.New("late")
		ctx, done := at.Until(t.Context(), began.Add(time.Minute), late)
		defer done()
		<-ctx.Done()
		if time.Since(began) != time.Minute || !errors.Is(context.Cause(ctx), late) {
			t.Errorf("ended after %s, %v", time.Since(began), context.Cause(ctx))
		}
		ctx, done = at.Until(t.Context(), time.Now().Add(time.Minute), late)
		done()
		time.Sleep(time.Hour)
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			t.Errorf("one that was done with says %v", cause)
		}
	})
}

func TestAWaitEndsWithItsTimeOrItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, began := clock.Running(time.Now), time.Now()
		if err := at.Wait(t.Context(), began.Add(time.Minute)); err != nil || time.Since(began) != time.Minute {
			t.Errorf("waited %s, %v, want a minute", time.Since(began), err)
		}
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		at(time.Now().Add(time.Second), func() { cancel(enough) })
		if err := at.Wait(ctx, time.Now().Add(time.Hour)); !errors.Is(err, enough) {
			t.Errorf("a cancelled wait says %v", err)
		}
	})
}
