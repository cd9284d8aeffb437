package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"mcpledger/events"
)

// request is a batch, or what is stored beside the events, that waits to be stored.
type request struct {
	batch  []prepared
	beside func(*store) error // for what is no event; batch is empty then

	receipt events.Receipt
	err     error
	done    chan struct{} // closed when the fields above are set
}

// writer is the one goroutine that writes the log, and what others see of it.
type writer struct {
	store    *store
	dir      string
	now      func() time.Time
	log      *slog.Logger
	maxGroup int           // events in one transaction, unless one batch has more
	retry    time.Duration // between looks whether a log that was unavailable can be written

	callers   atomic.Int64 // within Append, whose requests are here or soon will be
	requests  chan *request
	closing   chan struct{}
	closed    chan struct{} // closed when all is stored
	committed *broadcast
	commits   int           // since the last checkpoint
	due       chan struct{} // tells that a checkpoint is

	head      atomic.Pointer[events.Head]
	announced atomic.Int64 // sequence of the last event that OnCommit's functions were called with

	mu          sync.Mutex
	subscribers []func([]events.Event)
	unavailable error
}

// patience is how many turns the writer gives, one after the other, to callers who
// do not come. A turn in which nobody else has work takes a tenth of a microsecond.
const patience = 300

// submit hands a request to the writer and waits until it is stored or refused.
func (w *writer) submit(ctx context.Context, r *request) error {
	r.done = make(chan struct{})
	select {
	case w.requests <- r:
	case <-w.closing:
		return events.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	case <-w.closed:
	}
	select {
	case <-r.done:
		return r.err
	default:
		return events.ErrClosed // it came in when the last one had been taken out
	}
}

// run stores what is submitted until closing is closed and nobody waits any more.
func (w *writer) run() {
	defer close(w.closed)
	timer := time.NewTimer(w.retry)
	defer timer.Stop()
	for {
		select {
		case r := <-w.requests:
			w.commit(r)
		case <-timer.C:
			if w.state() != nil {
				w.commit(nil)
			}
			timer.Reset(w.retry)
		case <-w.closing:
			select {
			case r := <-w.requests:
				w.commit(r)
			default:
				return
			}
		}
	}
}

// commit stores a group of requests, the first and those that come with it, in one
// transaction and answers them. A batch in conflict is refused alone. Without a first
// one it writes the head again, which tells whether the log can be written.
func (w *writer) commit(first *request) {
	group, err := w.transact(first)
	w.setState(err)
	if err == nil {
		w.announce(group)
		w.count()
	}
	for _, r := range group {
		if err != nil {
			r.receipt, r.err = events.Receipt{}, err
		}
		close(r.done)
	}
}

// transact stores a group and returns it. An error means that nothing of it is stored.
func (w *writer) transact(first *request) ([]*request, error) {
	var group []*request
	if first != nil {
		group = append(group, first)
	}
	if err := w.store.begin(); err != nil {
		return group, w.failed(err)
	}
	group, err := w.addGroup(group)
	if err == nil {
		err = w.store.commit()
	}
	if err != nil {
		w.store.rollback()
		return group, w.failed(err)
	}
	return group, nil
}

// addGroup stores a group and the requests that come with it, which it returns too.
// Each is stored while those after it are still prepared. A group of which the log has
// an event already is begun again, and stored one event after the other.
func (w *writer) addGroup(group []*request) ([]*request, error) {
	add := w.store.addTogether
	for added := 0; added < len(group); {
		err := add(group[added:], w.now().UnixNano())
		if errors.Is(err, errKnown) {
			w.store.rollback()
			if err := w.store.begin(); err != nil {
				return group, err
			}
			add, added = w.store.addEach, 0
			continue
		}
		if err != nil {
			return group, err
		}
		added = len(group)
		group = w.gather(group)
	}
	return group, nil
}

// gather returns a group with the requests that join it by now, if any do. Callers who
// are on their way are waited for, a little: many callers who append one event after
// the other would else share a sync by halves, one half preparing while the other
// commits.
func (w *writer) gather(group []*request) []*request {
	n, before := 0, len(group)
	for _, r := range group {
		n += len(r.batch)
	}
	for turns := 0; n < w.maxGroup; {
		select {
		case r := <-w.requests:
			group = append(group, r)
			n += len(r.batch)
		default:
			if len(group) > before || int64(len(group)) >= w.callers.Load() || turns == patience {
				return group
			}
			turns++
			runtime.Gosched()
		}
	}
	return group
}

func (w *writer) failed(err error) error {
	return fmt.Errorf("append to %s: %w", w.dir, explain(err))
}

// announce tells everybody of a commit, in the order in which it must be seen:
// Head, those registered with OnCommit, Follow.
func (w *writer) announce(group []*request) {
	n := 0
	for _, r := range group {
		n += len(r.receipt.Sequences) - r.receipt.Duplicates
	}
	stored := make([]events.Event, 0, n)
	for _, r := range group {
		if r.err != nil {
			continue
		}
		for i := range r.batch {
			if p := &r.batch[i]; p.added {
				stored = append(stored, p.stored())
			}
		}
	}
	if len(stored) == 0 {
		return
	}
	head := w.store.head.headOf()
	w.head.Store(&head)
	w.mu.Lock()
	subscribers := w.subscribers
	w.mu.Unlock()
	for _, fn := range subscribers {
		fn(stored)
	}
	w.announced.Store(int64(head.Sequence))
	w.committed.send()
}

// count asks for a checkpoint now and then.
func (w *writer) count() {
	if w.commits++; w.commits < checkpointCommits {
		return
	}
	w.commits = 0
	select {
	case w.due <- struct{}{}:
	default: // one is under way
	}
}

// state returns why the log could not be written last time, nil if it could.
func (w *writer) state() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unavailable
}

func (w *writer) setState(err error) {
	w.mu.Lock()
	before := w.unavailable
	w.unavailable = err
	w.mu.Unlock()
	switch {
	case err != nil && before == nil:
		w.log.LogAttrs(background, slog.LevelError, "log unavailable", slog.Any("err", err))
	case err == nil && before != nil:
		w.log.LogAttrs(background, slog.LevelInfo, "log available again")
	}
}

// broadcast wakes everybody who waits on the channel of wait.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{ch: make(chan struct{})} }

// wait returns a channel that is closed at the next send. Take it before looking
// for what a send announces.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ch)
	b.ch = make(chan struct{})
}
