package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// told appends what a host saw of a server that it attempts by itself.
func (w *world) told(host string, name events.ServerName, what ...events.Data) {
	w.Helper()
	for i, d := range what {
		_, err := w.log.Append(context.Background(), []events.Event{{
			ID: fmt.Sprintf("%s-%s-%d", name, d.EventType(), i), Source: host, Type: d.EventType(), Subject: name,
			Time: time.Now(), ConfigKey: "x_" + events.ConfigKey(host), Data: d,
		}})
		w.must(err)
	}
}

// What the API explains to a person an agent is told, too.
func TestAnAgentAsksWhyOfServersThatOnlyHostsReport(t *testing.T) {
	w := newWorld(t)
	w.program("ours", mcptest.Fake{})
	w.options.Caller = func(r *http.Request) string { return r.URL.Query().Get("as") }
	w.start()
	w.await("ours", projections.StateReady)
	dies := events.DiscoveryFailed{Evidence: events.Evidence{
		Phase: events.PhaseHandshake, Transport: events.TransportStdio, Error: "ModuleNotFoundError: No module named 'fitz'",
	}}
	w.told("one", "hosted", dies, dies, dies)
	w.told("other", "hosted", events.DiscoverySucceeded{ToolCount: 1})
	w.told("one", "ours", dies)
	for _, c := range []struct {
		story, path string
		args        map[string]any
		by, state   string
		says        string // of a refusal
	}{
		{"the host that told last", "", map[string]any{"server": "hosted"}, "other", "ready", ""},
		{"a host that is asked for", "", map[string]any{"server": "hosted", "source": "one"}, "one", "skipped", ""},
		{"whoever told of a key", "", map[string]any{"server": "hosted", "config_key": "x_one"}, "one", "skipped", ""},
		{"the host that asks itself", "?as=one", map[string]any{"server": "hosted"}, "one", "skipped", ""},
		{"our own goes before a host's", "", map[string]any{"server": "ours"}, "", "ready", ""},
		{"a host's view of ours", "", map[string]any{"server": "ours", "source": "one"}, "one", "failed", ""},
		{"one that the address names", "?servers=ours,hosted", map[string]any{"server": "hosted"}, "other", "ready", ""},
		{"one that the address does not name", "?servers=ours", map[string]any{"server": "hosted"}, "", "", "No server of that name is configured;"},
		{"one that nobody tells of", "", map[string]any{"server": "nobody"}, "", "", "none is reported as asked for"},
		{"a host that told nothing", "", map[string]any{"server": "hosted", "source": "nobody"}, "", "", "none is reported as asked for"},
	} {
		t.Run(c.story, func(t *testing.T) {
			s := w.connect(legacy, c.path)
			if c.says != "" {
				r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "ledger__why", Arguments: c.args})
				if err != nil || !r.IsError || !strings.Contains(textOf(r), c.says) {
					t.Errorf("%v: %s, want %q in it", err, textOf(r), c.says)
				}
				return
			}
			var why struct {
				State      string
				ReportedBy string `json:"reported_by"`
				Tools      int
			}
			own(t, s, "why", c.args, &why)
			if why.State != c.state || why.ReportedBy != c.by {
				t.Errorf("%s reported by %q, want %s by %q", why.State, why.ReportedBy, c.state, c.by)
			}
			if c.by != "" && why.Tools != 0 {
				t.Errorf("%d tools are said to be offered here", why.Tools)
			}
		})
	}
	var history struct{ Events []any }
	own(t, w.connect(modern, ""), "history", map[string]any{"server": "hosted"}, &history)
	if len(history.Events) != 4 {
		t.Errorf("%d events in the history, want 4", len(history.Events))
	}
}
