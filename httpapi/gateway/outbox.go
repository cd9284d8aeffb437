package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds on what waits for one client.
const (
	maxNotices     = 1024
	maxNoticeBytes = 1 << 20
	// maxReaders is how many streams a session may have open; past that the oldest end.
	maxReaders = 4
)

// outbox holds what a client is to hear and has not heard yet. Notices of one key are
// one, so a client that does not read costs no more than there are things to tell of.
// Several streams may read it: the one opened last gets what there is, since those before
// it may be of connections that are dead. It is safe for concurrent use.
type outbox struct {
	numbered bool // its events have ids: streams of 2026-07-28 are not resumed

	mu      sync.Mutex
	pending []notice
	waiting map[string]bool // keys of pending
	bytes   int             // of pending
	readers []*reader       // the last one gets what there is
	last    int64           // id of the event sent last, from 1
}

// notice is a notification that is not sent yet.
type notice struct {
	key     string
	message []byte
	id      int64 // of the event it is sent as; 0: it has none
}

// reader is a stream that an outbox is read by.
type reader struct {
	wake chan struct{}
	end  context.CancelFunc
}

// note adds what is to be sent, unless the same is waiting already. Where too much waits,
// coarse stands for it, which says less; there are few keys of those.
func (o *outbox) note(n, coarse notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting[n.key] {
		return
	}
	if len(o.pending) >= maxNotices || o.bytes+len(n.message) > maxNoticeBytes {
		if n = coarse; o.waiting[n.key] {
			return
		}
	}
	o.add(n)
	o.wakeLast()
}

// tell notes what there is but one of.
func (o *outbox) tell(method string, params json.RawMessage) {
	n := notice{key: method, message: notification(method, params)}
	o.note(n, n)
}

// add appends a notice; o.mu is held.
func (o *outbox) add(n notice) {
	if o.waiting == nil {
		o.waiting = map[string]bool{}
	}
	o.pending = append(o.pending, n)
	o.waiting[n.key] = true
	o.bytes += len(n.message)
}

// wakeLast has the reader look that gets what there is; o.mu is held.
func (o *outbox) wakeLast() {
	if len(o.readers) == 0 {
		return
	}
	select {
	case o.readers[len(o.readers)-1].wake <- struct{}{}:
	default: // it is awake already
	}
}

// take returns what a reader is to send now, which then waits no more.
func (o *outbox) take(r *reader) []notice {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.readers[len(o.readers)-1] != r {
		return nil
	}
	taken := o.pending
	o.pending, o.waiting, o.bytes = nil, nil, 0
	for i := range taken {
		if o.numbered {
			o.last++
			taken[i].id = o.last
		}
	}
	return taken
}

// sent returns the id of the event sent last, 0 for none.
func (o *outbox) sent() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// putBack has what was taken and not sent wait again.
func (o *outbox) putBack(taken []notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range taken {
		if !o.waiting[n.key] {
			o.add(n)
		}
	}
}

// join adds a reader, whose stream end ends.
func (o *outbox) join(end context.CancelFunc) *reader {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &reader{wake: make(chan struct{}, 1), end: end}
	o.readers = append(o.readers, r)
	for _, old := range o.readers[:max(0, len(o.readers)-maxReaders)] {
		old.end()
	}
	o.wakeLast()
	return r
}

// leave removes a reader. The one opened last before it gets what there is.
func (o *outbox) leave(r *reader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readers = slices.DeleteFunc(o.readers, func(one *reader) bool { return one == r })
	o.wakeLast()
}

// serve sends what there is to hear until ctx ends, or until the client counts as gone,
// which is the error. The stream has its place among those of the client before begin
// lets the client know that it is open.
func (o *outbox) serve(ctx context.Context, w http.ResponseWriter, begin func() error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	r := o.join(end)
	defer o.leave(r)
	if err := begin(); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		taken := o.take(r)
		for i, n := range taken {
			if err := writeEvent(w, n.id, n.message); err != nil {
				o.putBack(taken[i:])
				return err
			}
		}
		select {
		case <-r.wake:
		case <-beat.C:
			if err := writeHeartbeat(w); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
