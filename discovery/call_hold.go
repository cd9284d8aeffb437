package discovery

import (
	"context"
	"net/http"
	"sync"
)

// hold keeps new calls of a connection back while the server is refusing one: from
// the status of its answer, which settles that a gate is set, until that is recorded,
// which the rest of a slow body may put off.
type hold struct {
	mu    sync.Mutex
	count int
	over  chan struct{} // closed when count is 0 again; nil while it is
}

// refusing reports whether a status of an answer sets a gate.
func refusing(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// watch follows one call: onStatus is told the status of its answer, recorded that its
// outcome is. A status that comes later than that holds nothing back.
func (h *hold) watch() (onStatus func(status int), recorded func()) {
	var mu sync.Mutex
	var begun, over bool
	onStatus = func(status int) {
		mu.Lock()
		defer mu.Unlock()
		if refusing(status) && !begun && !over {
			begun = true
			h.begin()
		}
	}
	return onStatus, func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		if begun {
			h.end()
		}
	}
}

func (h *hold) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == 0 {
		h.over = make(chan struct{})
	}
	h.count++
}

func (h *hold) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count--; h.count == 0 {
		close(h.over)
		h.over = nil
	}
}

// wait returns once no call is held back, or ctx ends. It reports whether it had to
// wait.
func (h *hold) wait(ctx context.Context) (waited bool) {
	for {
		h.mu.Lock()
		over := h.over
		h.mu.Unlock()
		if over == nil {
			return waited
		}
		waited = true
		select {
		case <-over:
		case <-ctx.Done():
			return waited
		}
	}
}
