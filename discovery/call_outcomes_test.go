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
	w.frozen = time.Now() // so that "right after" is not a matter of speed
	w.program("neighbour", mcptest.Fake{})
	followed := newFollowed(w)
	cases := map[string]*callCase{}
	for i, chapter := range callRows {
		for j, row := range chapter.rows {
			name := fmt.Sprintf("s%d-%d", i, j)
			cases[name] = newCallCase(w, name, row)
			cases[name].followed = followed
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

// refused reports whether the call was refused before it had a start.
func (c consequence) refused() bool {
	switch c.code {
	case discovery.CodeMissingCredential, discovery.CodeBlocked, discovery.CodeSkipped, discovery.CodeBraked,
		discovery.CodeDisabled, discovery.CodeToolNotFound, discovery.CodeDiscovering, discovery.CodeNotConnected:
		return true
	}
	return false
}
