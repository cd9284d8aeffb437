package replay

import (
	"slices"

	"mcpledger/events"
)

// refusedCalls are the ids of calls under way that began behind a gate, by server, the
// oldest first.
type refusedCalls map[subject][]string

// maxCalls is how many calls of one server that began behind a gate may be under way.
// Our own service makes 16 at a time; a reporter may never say how one ended, and then
// the oldest is taken as one that did not.
const maxCalls = 256

// begin notes a call.
func (r refusedCalls) begin(e *events.Event) {
	calls := r[about(e)]
	if len(calls) == maxCalls {
		calls = slices.Delete(calls, 0, 1)
	}
	r[about(e)] = append(calls, e.CallID)
}

// end reports, once, whether the call that ended is one of these.
func (r refusedCalls) end(e *events.Event) bool {
	calls := r[about(e)]
	i := slices.Index(calls, e.CallID)
	if i < 0 {
		return false
	}
	if calls = slices.Delete(calls, i, i+1); len(calls) == 0 {
		delete(r, about(e))
	} else {
		r[about(e)] = calls
	}
	return true
}
