package projections_test

import (
	"fmt"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

const (
	self   = "mcpledger/test"
	server = events.ServerName("weather")
	keyA   = events.ConfigKey("k1_aaaaaaaaaaaaaaaa.vvvvvvvvvvvvvvvv")
	keyA2  = events.ConfigKey("k1_aaaaaaaaaaaaaaaa.wwwwwwwwwwwwwwww")
	keyB   = events.ConfigKey("k1_bbbbbbbbbbbbbbbb.vvvvvvvvvvvvvvvv")
)

// history builds a log in memory, one event after another, with a clock of its own.
type history struct {
	events []events.Event
	now    time.Time
	on     events.ServerName // what happens, happens to it
	key    events.ConfigKey
	entry  events.ServerConfigured
	runs   int
}

// newHistory is a service that just started with one stdio server in its config.
func newHistory() *history {
	h := &history{now: start, on: server, key: keyA}
	h.restart()
	h.configure(events.ChangeAdded, keyA)
	return h
}

func (h *history) add(e events.Event) {
	e.Sequence = events.Sequence(len(h.events) + 1)
	e.ID = fmt.Sprintf("e%d", e.Sequence)
	if e.Source == "" {
		e.Source = self
	}
	e.Type, e.Time, e.RecordedAt = e.Data.EventType(), h.now, h.now
	h.events = append(h.events, e)
}

func (h *history) about(d events.Data) {
	h.add(events.Event{Subject: h.on, ConfigKey: h.key, Data: d})
}

func (h *history) wait(d time.Duration) { h.now = h.now.Add(d) }

func (h *history) restart() { h.add(events.Event{Data: events.ServiceStarted{Instance: self}}) }

func (h *history) configure(change events.Change, key events.ConfigKey) {
	h.key = key
	h.entry.Change, h.entry.Transport = change, events.TransportStdio
	h.about(h.entry)
}

// attempt records one attempt of a run of its own with the outcome given.
func (h *history) attempt(trigger events.Trigger, outcome ...events.Data) {
	h.runs++
	h.attemptIn(fmt.Sprintf("run%d", h.runs), trigger, outcome...)
}

func (h *history) attemptIn(run string, trigger events.Trigger, outcome ...events.Data) {
	id := fmt.Sprintf("attempt%d", len(h.events))
	for _, d := range append([]events.Data{events.DiscoveryStarted{Trigger: trigger, Attempt: 1}}, outcome...) {
		h.add(events.Event{Subject: h.on, ConfigKey: h.key, RunID: run, AttemptID: id, Data: d})
		h.wait(time.Second)
	}
}

func (h *history) fold() *projections.State { return fold(h.events) }

func fold(all []events.Event) *projections.State {
	s := projections.New(rules.Default())
	for _, e := range all {
		s.Apply(e)
	}
	return s
}

func (h *history) server(t *testing.T) projections.Server {
	t.Helper()
	v, ok := h.fold().Server(server, h.now)
	if !ok {
		t.Fatalf("server %q is not listed", server)
	}
	return v
}

func exits(code int, stderr string) events.DiscoveryFailed {
	return events.DiscoveryFailed{Evidence: events.Evidence{
		Phase: events.PhaseHandshake, Transport: events.TransportStdio, ErrorKind: events.KindExit,
		ExitCode: &code, EndedBy: events.EndedByServer, StderrTail: stderr, Error: "transport closed",
	}}
}

var (
	diesOnImport = exits(1, "Traceback (most recent call last):\n  File \"/srv/app.py\", line 3, in <module>\n    import fitz\nModuleNotFoundError: No module named 'fitz'")
	diesOnOther  = exits(1, "Traceback (most recent call last):\n  File \"/srv/app.py\", line 4, in <module>\n    import yaml\nModuleNotFoundError: No module named 'yaml'")
	answers401   = events.DiscoveryFailed{Evidence: events.Evidence{
		Phase: events.PhaseHandshake, Transport: events.TransportHTTP, ErrorKind: events.KindHTTPStatus, HTTPStatus: 401,
		WWWAuthenticate: "Bearer realm=\"mcp\"",
	}}
	refused = events.DiscoveryFailed{Evidence: events.Evidence{
		Phase: events.PhaseConnect, Transport: events.TransportHTTP, ErrorKind: events.KindRefused,
		Error: "dial tcp 127.0.0.1:7701: connect: connection refused",
	}}
	notFound = events.DiscoveryFailed{Evidence: events.Evidence{
		Phase: events.PhaseSpawn, Transport: events.TransportStdio, ErrorKind: events.KindExecNotFound, Command: "acme-mcp",
		Error: "exec: \"acme-mcp\": executable file not found in $PATH",
	}}
	succeeds  = events.DiscoverySucceeded{ProtocolVersion: "2025-11-25", CatalogueHash: "h1", ToolCount: 2}
	catalogue = events.CatalogueChanged{Hash: "h1", Added: []string{"forecast", "now"}, Tools: []byte(`[{"name":"forecast"},{"name":"now"}]`)}
	cancelled = events.DiscoveryCancelled{Reason: "shutdown"}
)

func TestSkip(t *testing.T) {
	type step func(*history)
	dies := func(h *history) { h.attempt(events.TriggerStartup, diesOnImport); h.restart() }
	fails := func(d events.DiscoveryFailed) step {
		return func(h *history) { h.attempt(events.TriggerRetry, d) }
	}
	after := func(d time.Duration) step { return func(h *history) { h.wait(d) } }
	manually := func(d events.Data) step { return func(h *history) { h.attempt(events.TriggerManual, d) } }
	works := func(h *history) { h.attempt(events.TriggerSkipExpired, succeeds, catalogue) }
	becomes := func(c events.Change, k events.ConfigKey) step { return func(h *history) { h.configure(c, k) } }
	times := func(n int, s step) step {
		return func(h *history) {
			for range n {
				s(h)
			}
		}
	}
	abandons := (*history).crash
	for _, c := range []struct {
		name  string
		steps []step
		want  projections.Decision
	}{
		{"a new server is attempted", nil, projections.DecideAttempt},
		{"two identical failures are bad luck", []step{dies, dies}, projections.DecideAttempt},
		{"the third in a row is remembered", []step{dies, dies, dies}, projections.DecideSkip},
		{"another failure starts the count anew", []step{dies, dies, fails(diesOnOther), dies}, projections.DecideAttempt},
		{"a cancelled attempt never counts", []step{dies, dies, func(h *history) { h.attempt(events.TriggerStartup, cancelled) }}, projections.DecideAttempt},
		{"a person's attempt never counts", []step{dies, dies, manually(diesOnImport)}, projections.DecideAttempt},
		{"a person's success ends a skip", []step{dies, dies, dies, manually(succeeds)}, projections.DecideAttempt},
		{"an hour later one probe may pass", []step{dies, dies, dies, after(61 * time.Minute)}, projections.DecideAttempt},
		{"a failed probe is skipped for longer", []step{dies, dies, dies, after(61 * time.Minute), fails(diesOnImport), after(2 * time.Hour)}, projections.DecideSkip},
		{"a failed probe of another kind is skipped for longer", []step{dies, dies, dies, after(61 * time.Minute), fails(diesOnOther), after(2 * time.Hour)}, projections.DecideSkip},
		{"failures inside a skip do not lengthen it", []step{dies, dies, dies, dies, dies, dies, after(61 * time.Minute)}, projections.DecideAttempt},
		{"a success forgets it all", []step{dies, dies, dies, after(61 * time.Minute), works, dies, dies}, projections.DecideAttempt},
		{"a changed entry is a new connection", []step{dies, dies, dies, becomes(events.ChangeKey, keyB)}, projections.DecideAttempt},
		{"going back brings the skip back", []step{dies, dies, dies, becomes(events.ChangeKey, keyB), becomes(events.ChangeKey, keyA)}, projections.DecideSkip},
		{"a changed description changes nothing", []step{dies, dies, dies, becomes(events.ChangeSettings, keyA)}, projections.DecideSkip},
		{"changed values give one probe", []step{dies, dies, dies, becomes(events.ChangeValues, keyA2)}, projections.DecideAttempt},
		{"one login failure is enough", []step{fails(answers401)}, projections.DecideSkip},
		{"changed values end a login skip", []step{fails(answers401), becomes(events.ChangeValues, keyA2)}, projections.DecideAttempt},
		{"a missing command is skipped at once", []step{fails(notFound)}, projections.DecideSkip},
		{"a missing command is looked for again after 15 min", []step{fails(notFound), after(16 * time.Minute)}, projections.DecideAttempt},
		{"nine refused connections in two hours are not enough", []step{times(9, func(h *history) { h.wait(10 * time.Minute); fails(refused)(h) })}, projections.DecideAttempt},
		{"ten over an hour and a half are", []step{times(10, func(h *history) { h.wait(10 * time.Minute); fails(refused)(h) })}, projections.DecideSkip},
		{"ten within a minute are not", []step{times(10, fails(refused))}, projections.DecideAttempt},
		{"a start that takes the service down twice counts", []step{times(5, abandons)}, projections.DecideSkip},
		{"a start cut short once does not", []step{dies, dies, abandons}, projections.DecideAttempt},
		{"cleared by hand starts at zero", []step{dies, dies, dies, func(h *history) { h.about(events.SkipCleared{Reason: "fixed"}) }, dies, dies}, projections.DecideAttempt},
		{"a pin holds", []step{works, func(h *history) { h.about(events.SkipPinned{Reason: "broken"}) }, after(1000 * time.Hour)}, projections.DecideSkip},
		{"a local fact that changed gives one probe", []step{dies, dies, dies, func(h *history) { h.about(events.SkipRequalified{Reason: "installed"}) }}, projections.DecideAttempt},
		{"flapping text is skipped in the end", []step{times(21, func(h *history) {
			h.wait(2 * time.Hour)
			fails(diesOnImport)(h)
			h.wait(time.Hour)
			fails(diesOnOther)(h)
		})}, projections.DecideSkip},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory()
			for _, s := range c.steps {
				s(h)
			}
			if v := h.server(t); v.Decision != c.want {
				t.Errorf("decision %s, want %s\nstate %s: %s\nskip %+v", v.Decision, c.want, v.State, v.Reason, v.Skip)
			}
		})
	}
}
