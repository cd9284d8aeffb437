package eventstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
)

func commits(t *testing.T, l events.Log) {
	var mu sync.Mutex
	var seen []events.Event
	l.OnCommit(func(es []events.Event) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, es...)
	})
	first := At(noon).Failed("a", "k", events.Evidence{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				r, err := l.Append(context.Background(), []events.Event{At(noon).Failed("a", "k", events.Evidence{}), first})
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				mu.Lock()
				n := events.Sequence(len(seen))
				mu.Unlock()
				if n < r.Last() {
					t.Errorf("append returned %d when commits had shown %d events", r.Last(), n)
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(read(t, l, events.Query{}), seen); diff != "" {
		t.Errorf("commits differ from the log (-log +commits):\n%s", diff)
	}
	if len(seen) != 8*20+1 {
		t.Errorf("%d events were shown, want %d: each once, duplicates never", len(seen), 8*20+1)
	}
}

func readable(t *testing.T, l events.Log) {
	shown, looked := make(chan events.Event), make(chan bool)
	go func() {
		defer close(looked)
		for e := range shown {
			if head, err := l.Head(context.Background()); err != nil || head.Sequence != e.Sequence || head.Hash != e.Hash {
				t.Errorf("the head is %v, %v when event %d is shown", head, err, e.Sequence)
			}
			n := 0
			for _, err := range l.Read(context.Background(), events.Query{After: e.Sequence - 1}) {
				if err != nil {
					t.Errorf("read: %v", err)
				}
				n++
			}
			if n != 1 {
				t.Errorf("%d events are read from %d on when it is shown, want 1", n, e.Sequence)
			}
			looked <- true
		}
	}()
	l.OnCommit(func(es []events.Event) {
		shown <- es[len(es)-1]
		<-looked
	})
	for range 3 {
		append1(t, l, At(noon).Failed("a", "k", events.Evidence{}), At(noon).Failed("a", "k", events.Evidence{}))
	}
	close(shown)
	<-looked
}

func follow(t *testing.T, l events.Log) {
	const appenders, each = 4, 50
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var shown atomic.Int64
	l.OnCommit(func(es []events.Event) { shown.Store(int64(es[len(es)-1].Sequence)) })
	append1(t, l, At(noon).Failed("a", "k", events.Evidence{}))
	var wg sync.WaitGroup
	for i := range appenders {
		wg.Go(func() {
			for j := range each {
				e := At(noon).Failed(events.ServerName(fmt.Sprint(i)), "k", events.Evidence{ElapsedMS: int64(j)})
				if _, err := l.Append(ctx, []events.Event{e}); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	next := events.Sequence(2)
	for e, err := range l.Follow(ctx, 1) {
		if err != nil {
			t.Fatalf("follow: %v", err)
		}
		if e.Sequence != next {
			t.Fatalf("got sequence %d, want %d", e.Sequence, next)
		}
		if last := shown.Load(); last < int64(next) {
			t.Errorf("event %d is followed when commits had shown %d", next, last)
		}
		if next++; next > appenders*each+1 {
			break
		}
	}
	wg.Wait()
	if next != appenders*each+2 {
		t.Errorf("the follower ended before sequence %d", next)
	}
}

func wakes(t *testing.T, l events.Log) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got := make(chan events.Event)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e, err := range l.Follow(ctx, 0) {
			if err != nil {
				t.Errorf("follow: %v", err)
				return
			}
			got <- e
		}
	}()
	for range 3 {
		e := At(noon).Failed("a", "k", events.Evidence{})
		append1(t, l, e)
		if followed := <-got; followed.ID != e.ID {
			t.Errorf("followed %s, want %s", followed.ID, e.ID)
		}
	}
	cancel()
	<-ended
}

func cancelled(t *testing.T, l events.Log) {
	append1(t, l, At(noon).Failed("a", "k", events.Evidence{}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Append(ctx, []events.Event{At(noon).Failed("a", "k", events.Evidence{})}); !errors.Is(err, context.Canceled) {
		t.Errorf("append: got %v, want context.Canceled", err)
	}
	for _, err := range l.Read(ctx, events.Query{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("read: got %v, want context.Canceled", err)
		}
	}
	for e, err := range l.Follow(ctx, 0) {
		t.Errorf("follow yielded %v, %v", e, err)
	}
}

func closed(t *testing.T, l events.Log) {
	append1(t, l, At(noon).Failed("a", "k", events.Evidence{}))
	ended := make(chan struct{})
	first := make(chan struct{})
	go func() {
		defer close(ended)
		for _, err := range l.Follow(context.Background(), 0) {
			if err != nil {
				t.Errorf("follow: %v", err)
			}
			close(first)
		}
	}()
	<-first
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	<-ended
	if _, err := l.Append(context.Background(), []events.Event{At(noon).Failed("a", "k", events.Evidence{})}); !errors.Is(err, events.ErrClosed) {
		t.Errorf("append: got %v, want ErrClosed", err)
	}
	if _, err := l.Head(context.Background()); !errors.Is(err, events.ErrClosed) {
		t.Errorf("head: got %v, want ErrClosed", err)
	}
	for _, err := range l.Read(context.Background(), events.Query{}) {
		if !errors.Is(err, events.ErrClosed) {
			t.Errorf("read: got %v, want ErrClosed", err)
		}
	}
}
