package gateway

import (
	"context"
	"slices"
	"sync"
)

// underway has the requests of a session that are under way, by id. Each message comes on
// a connection of its own, so a cancellation may overtake the request that it means; it
// waits for that here. The zero underway has none. It is safe for concurrent use.
type underway struct {
	mu    sync.Mutex
	calls map[string]context.CancelCauseFunc
	early recentIDs // were cancelled before they came
	over  recentIDs // ended a moment ago: a cancellation of them comes too late
}

// begin notes a request under way, which done ends; cancel of the same id cancels it, also
// one that came before. It is not ok while another of that id is under way, for then
// nobody could tell which of them is meant.
func (u *underway) begin(ctx context.Context, id string) (_ context.Context, done func(), ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls[id] != nil {
		return nil, nil, false
	}
	if u.calls == nil {
		u.calls = map[string]context.CancelCauseFunc{}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	u.calls[id] = cancel
	if u.early.remove(id) {
		cancel(errCancelled)
	}
	return ctx, func() {
		cancel(nil)
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.calls, id)
		u.over.add(id)
	}, true
}

// cancel cancels the request of that id, or has it cancelled when it comes. One that is
// over stays so: its client may use the id once more.
func (u *underway) cancel(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if cancel := u.calls[id]; cancel != nil {
		cancel(errCancelled)
		return
	}
	if !slices.Contains(u.over, id) {
		u.early.add(id)
	}
}

// recentIDs are the last ids that something happened to, the latest last.
type recentIDs []string

// Bounds on them. An id that is longer is nobody's who cancels.
const (
	maxRecentIDs     = 64
	maxRecentIDBytes = 256
)

func (r *recentIDs) add(id string) {
	if len(id) > maxRecentIDBytes {
		return
	}
	r.remove(id)
	*r = append(*r, id)
	*r = slices.Delete(*r, 0, max(0, len(*r)-maxRecentIDs))
}

// remove forgets an id, and reports whether it was there.
func (r *recentIDs) remove(id string) bool {
	i := slices.Index(*r, id)
	if i < 0 {
		return false
	}
	*r = slices.Delete(*r, i, i+1)
	return true
}
