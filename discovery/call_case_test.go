package discovery_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/projections"
)

// callCase is a row with the server it is tried on.
type callCase struct {
	row  callRow
	name events.ServerName
	bad  *badServer // nil for a program or an entry
	// waited is closed when the call of a first row waits; followed tells when.
	waited   chan struct{}
	followed *followed
}

// followed calls what is set in it when somebody begins to follow the log of a world, as
// a call does that waits for an outcome.
type followed struct{ call atomic.Pointer[func()] }

func newFollowed(w *world) *followed {
	f := &followed{}
	w.through = func(l events.Log) events.Log {
		return overheard{l, func() {
			if call := f.call.Load(); call != nil {
				(*call)()
			}
		}}
	}
	return f
}

func newCallCase(w *world, name string, row callRow) *callCase {
	c := &callCase{row: row, name: events.ServerName(name)}
	switch {
	case row.address != nil:
		w.entries[name] = map[string]any{"url": row.address(w.t)}
	case row.entry != nil:
		w.entries[name] = row.entry
	case row.program != nil:
		fake := *row.program
		fake.Tools = 1
		w.program(name, fake)
		if row.want.code == discovery.CodeToolNotFound && row.tool != "fly" {
			w.entries[name]["mcpledger"] = map[string]any{"tools": map[string]any{"deny": []string{row.tool}}}
		}
	default:
		method := row.method
		if method == "" {
			method = "tools/call"
		}
		script := row.script
		if row.first {
			c.waited = make(chan struct{})
			script = then(func(_ http.ResponseWriter, r *http.Request, _ rpcRequest) {
				select {
				case <-c.waited:
				case <-r.Context().Done():
				}
			}, row.script)
		}
		c.bad = newBadServer(w.t, row.remote, method, script)
		c.bad.armed.Store(row.first)
		w.entries[name] = map[string]any{"url": c.bad.url}
		if row.first { // its turn comes when others have had theirs
			w.entries[name]["mcpledger"] = map[string]any{"timeouts": map[string]any{"start": "10m"}}
		}
	}
	return c
}

// run makes the row's call and looks at what follows.
func (c *callCase) run(t *testing.T, r *running) consequence {
	state, tool := c.row.state, c.row.tool
	if state == "" {
		state = projections.StateReady
	}
	if c.row.first {
		state = projections.StateDiscovering
		waits := sync.OnceFunc(func() { close(c.waited) })
		c.followed.call.Store(&waits)
		defer c.followed.call.Store(nil)
	}
	if tool == "" {
		tool = victim
	}
	before := r.awaitState(c.name, state)
	if c.row.before != nil {
		c.row.before(r, string(c.name))
	}
	used := int64(0)
	if c.bad != nil {
		if !c.row.fresh && !c.row.first {
			used = r.generation(r.call(c.name, "echo", `{}`))
		}
		c.bad.armed.Store(true)
	}
	out, err := r.tryCall(c.name, tool, `{}`, c.row.timeout)
	// On a slow machine the time may end before the call is sent.
	for limit := 2 * c.row.timeout; err == nil && c.row.timeout > 0 && c.row.want.sent > 0 && !out.Dispatched && limit < patience; limit *= 2 {
		out, err = r.tryCall(c.name, tool, `{}`, limit)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log(told(out))
	r.wantCall("neighbour", "echo")
	got := consequence{sent: c.sent(out), sibling: callable}
	if out.Failure != nil {
		got.code = out.Failure.Code
	}
	c.checkRecord(t, r, out)

	after := r.server(c.name)
	if after.Gate != nil {
		got.gate = string(after.Gate.Kind)
	}
	if after.Reachability != before.Reachability && !c.row.first {
		t.Errorf("a call moved reachability from %s to %s", before.Reachability, after.Reachability)
	}
	if used == 0 {
		used = r.generation(out)
	}
	limit := time.Duration(0)
	if c.row.fresh || c.row.first {
		limit = c.row.timeout // for it waits for the same session
	}
	sibling, err := r.tryCall(c.name, "echo", `{}`, limit)
	if err != nil {
		t.Fatal(err)
	}
	if sibling.Failure != nil {
		got.sibling = fmt.Sprintf("%s: %s", sibling.Outcome, sibling.Failure.Code)
	}
	if after.Gate != nil {
		c.bad.armed.Store(false)
		r.discover(c.name)
		sibling = r.call(c.name, "echo", `{}`)
	}
	switch next := r.generation(sibling); {
	case used == 0 && c.row.before == nil, next == 0:
	case next == used || used == 0:
		got.session = kept
	default:
		got.session = discarded
	}
	return got
}

// sent is how often the server got the call: as it counted over HTTP, and as the
// evidence has it for a process, which does not count.
func (c *callCase) sent(out discovery.CallOutcome) int {
	switch {
	case c.bad != nil && c.bad.method == "tools/call":
		return int(c.bad.struck.Load())
	case c.bad != nil:
		return c.bad.inner.Count("tools/call")
	case out.Dispatched:
		return 1
	}
	return 0
}

// checkRecord looks at what the log holds of a call.
func (c *callCase) checkRecord(t *testing.T, r *running, out discovery.CallOutcome) {
	t.Helper()
	var types []events.Type
	dispatched := false
	for e, err := range r.log.Read(context.Background(), events.Query{CallID: out.CallID}) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
		switch d := e.Data.(type) {
		case events.ToolCallSucceeded:
			dispatched = true
		case events.ToolCallFailed:
			dispatched = d.Dispatched
			if d.Evidence.Dispatched != d.Dispatched {
				t.Errorf("evidence says dispatched %v, the event %v", d.Evidence.Dispatched, d.Dispatched)
			}
		}
	}
	want := []events.Type{events.TypeToolCallStarted, "toolcall." + events.Type(out.Outcome)}
	if out.Outcome == projections.OutcomeRefused {
		want = want[1:]
		if out.Failure.Detail == "" {
			t.Error("a refusal without a reason")
		}
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if out.Dispatched != dispatched {
		t.Errorf("the caller hears dispatched %v, the log has %v", out.Dispatched, dispatched)
	}
	if want := c.row.want.sent == 1; out.Dispatched != want {
		t.Errorf("dispatched %v, want %v", out.Dispatched, want)
	}
}
