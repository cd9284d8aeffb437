package discovery_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

var update = flag.Bool("update", false, "rewrite golden files")

// outcomesPage is the page that shows the rows.
var outcomesPage = filepath.Join("..", "docs", "reference", "call-outcomes.md")

func (r *running) pin(server string) {
	r.w.t.Helper()
	if err := r.Pin(context.Background(), events.ServerName(server), time.Time{}, "broken", "tester"); err != nil {
		r.w.t.Fatal(err)
	}
}

func (r *running) failTenTimes(server string) {
	r.w.t.Helper()
	for range 10 {
		r.call(events.ServerName(server), "fail", `{}`)
	}
}

// Every way for a call to end: what the caller gets, what is recorded, which gate is
// set, what becomes of the session, how often the server was asked, and that the
// sibling works at once.
func TestEveryCallEndsAsThePageSays(t *testing.T) {
	w := newWorld(t)
	w.program("neighbour", mcptest.Fake{})
	cases := map[string]*callCase{}
	for i, chapter := range callRows {
		for j, row := range chapter.rows {
			name := fmt.Sprintf("s%d-%d", i, j)
			cases[name] = newCallCase(w, name, row)
		}
	}
	r := w.start()
	r.awaitState("neighbour", projections.StateReady)
	r.wantCall("neighbour", "echo")

	var page strings.Builder
	page.WriteString(outcomesHead)
	for i, chapter := range callRows {
		fmt.Fprintf(&page, "\n## %s\n\n%s", chapter.chapter, outcomesColumns)
		for j, row := range chapter.rows {
			got := consequence{}
			t.Run(chapter.chapter+"/"+row.name, func(t *testing.T) {
				got = cases[fmt.Sprintf("s%d-%d", i, j)].run(t, r)
				if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(consequence{})); diff != "" {
					t.Errorf("consequence (-want +got):\n%s", diff)
				}
			})
			page.WriteString(got.line(row.name))
		}
	}
	if t.Failed() {
		return
	}
	if *update {
		if err := os.WriteFile(outcomesPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := os.ReadFile(outcomesPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page.String(), string(shown)); diff != "" {
		t.Errorf("%s says otherwise, -update rewrites it (-seen +page):\n%s", outcomesPage, diff)
	}
}

const outcomesHead = `# Call outcomes

How a tool call can end, and what follows. Each row was seen against a real socket or
a real process by ` + "`TestEveryCallEndsAsThePageSays`" + ` in package discovery, which also
keeps this page.

- **Caller** is the outcome and the ` + "`failure.code`" + ` that the caller gets, **event** what the
  log holds of it. A call that failed or succeeded has one ` + "`toolcall.started`" + ` before it.
- **Gate** says whether the server's tools are refused from then on, until a check
  succeeds. Nothing but the statuses 401 and 403 sets one.
- **Session** says whether the session the call was sent on is used for the next call.
  A discarded one is replaced by the next call; nothing is sent again.
- **Sent** is how often the server was sent the call.
- **Sibling** is what another tool of the same server answers right after. Tools of
  other servers answer in every row.
`

const outcomesColumns = "| case | caller | event | gate | session | sent | sibling |\n| --- | --- | --- | --- | --- | --- | --- |\n"

func (c consequence) line(name string) string {
	orDash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	caller, event := "succeeded", string(events.TypeToolCallSucceeded)
	switch {
	case c.code != "" && c.refused():
		caller, event = "refused, `"+c.code+"`", string(events.TypeToolCallRefused)
	case c.code != "":
		caller, event = "failed, `"+c.code+"`", string(events.TypeToolCallFailed)
	}
	sibling := strings.ReplaceAll(c.sibling, ": ", ", `")
	if sibling != c.sibling {
		sibling += "`"
	}
	return fmt.Sprintf("| %s | %s | `%s` | %s | %s | %d | %s |\n",
		strings.ReplaceAll(name, `\"`, `"`), caller, event, orDash(c.gate), orDash(c.session), c.sent, sibling)
}

// callCase is a row with the server it is tried on.
type callCase struct {
	row  callRow
	name events.ServerName
	bad  *badServer // nil for a program or an entry
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
		c.bad = newBadServer(w.t, row.remote, method, row.script)
		w.entries[name] = map[string]any{"url": c.bad.url}
	}
	return c
}

// run makes the row's call and looks at what follows.
func (c *callCase) run(t *testing.T, r *running) consequence {
	state, tool := c.row.state, c.row.tool
	if state == "" {
		state = projections.StateReady
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
		if !c.row.fresh {
			used = r.generation(r.call(c.name, "echo", `{}`))
		}
		c.bad.armed.Store(true)
	}
	out, err := r.tryCall(c.name, tool, `{}`, c.row.timeout)
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
	if after.Reachability != before.Reachability {
		t.Errorf("a call moved reachability from %s to %s", before.Reachability, after.Reachability)
	}
	if used == 0 {
		used = r.generation(out)
	}
	limit := time.Duration(0)
	if c.row.fresh {
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

// refused reports whether the call was refused before it had a start.
func (c consequence) refused() bool {
	switch c.code {
	case discovery.CodeMissingCredential, discovery.CodeBlocked, discovery.CodeSkipped, discovery.CodeBraked,
		discovery.CodeDisabled, discovery.CodeToolNotFound:
		return true
	}
	return false
}
