package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/events/eventstest"
	"mcpledger/projections"
	"mcpledger/projections/replay"
	"mcpledger/projections/rules"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

const (
	self  = "mcpledger/test"
	key   = events.ConfigKey("k1_aaaaaaaaaaaaaaaa.vvvvvvvvvvvvvvvv")
	other = events.ConfigKey("k1_bbbbbbbbbbbbbbbb.vvvvvvvvvvvvvvvv")
)

// values is the key of the same entry with its values changed n times.
func values(n int) events.ConfigKey {
	return events.ConfigKey(fmt.Sprint("k1_aaaaaaaaaaaaaaaa.values", n))
}

// set is the default set with one line of its text replaced.
func set(t testing.TB, old, replacement string) *rules.Set {
	t.Helper()
	text := rules.Default().Text()
	if !strings.Contains(text, old) {
		t.Fatalf("the default set has no %q", old)
	}
	text = strings.Replace(strings.Replace(text, old, replacement, 1), "name: default", "name: candidate", 1)
	s, err := rules.Parse("candidate", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// story writes a log, one event after another, with a clock of its own.
type story struct {
	t    testing.TB
	log  *eventstest.Log
	now  time.Time
	key  events.ConfigKey
	runs int
	// clock is by how much the clock is set as a run's first attempt begins.
	clock time.Duration
}

func newStory(t testing.TB) *story {
	s := &story{t: t, now: noon}
	s.log = eventstest.NewLog(func() time.Time { return s.now })
	s.add(events.Event{Data: events.ServiceStarted{Instance: self}})
	s.configured(events.ChangeAdded, key)
	return s
}

func (s *story) add(e events.Event) {
	s.t.Helper()
	e.ID, e.Type, e.Time, e.DataVersion = eventstest.NewID(), e.Data.EventType(), s.now, 1
	if e.Source == "" {
		e.Source = self
	}
	if _, err := s.log.Append(s.t.Context(), []events.Event{e}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) wait(d time.Duration) { s.now = s.now.Add(d) }

func (s *story) about(d events.Data) {
	s.add(events.Event{Subject: "weather", ConfigKey: s.key, Data: d})
}

func (s *story) configured(change events.Change, k events.ConfigKey) {
	s.key = k
	s.about(events.ServerConfigured{Change: change, Transport: events.TransportStdio})
}

// run records a run with one attempt for each outcome, which take 10 seconds each.
func (s *story) run(trigger events.Trigger, outcomes ...events.Data) {
	s.runs++
	id := fmt.Sprintf("run-%d", s.runs)
	s.add(events.Event{RunID: id, Data: events.DiscoveryRunStarted{Trigger: trigger, Servers: []events.ServerName{"weather"}}})
	s.wait(s.clock)
	for i, d := range outcomes {
		e := events.Event{Subject: "weather", ConfigKey: s.key, RunID: id, AttemptID: fmt.Sprint(id, "-", i)}
		e.Data = events.DiscoveryStarted{Attempt: i + 1, Trigger: trigger}
		s.add(e)
		s.wait(10 * time.Second)
		e.Data = d
		s.add(e)
	}
	s.add(events.Event{RunID: id, Data: events.DiscoveryRunCompleted{}})
}

func (s *story) call(outcome events.Data) {
	s.runs++
	e := events.Event{Subject: "weather", ConfigKey: s.key, CallID: fmt.Sprint("call-", s.runs), Data: events.ToolCallStarted{Tool: "now"}}
	s.add(e)
	s.wait(time.Second)
	e.Data = outcome
	s.add(e)
}

var (
	exit1 = 1
	dies  = events.DiscoveryFailed{Evidence: events.Evidence{
		Phase: events.PhaseHandshake, Transport: events.TransportStdio, ErrorKind: events.KindExit, ExitCode: &exit1,
		StderrTail: "ModuleNotFoundError: No module named 'fitz'", ElapsedMS: 10_000,
	}}
	refuses = events.DiscoveryFailed{Evidence: events.Evidence{
		Phase: events.PhaseConnect, Transport: events.TransportHTTP, ErrorKind: events.KindRefused,
		Error: "dial tcp 192.0.2.1:443: connect: connection refused", ElapsedMS: 10_000,
	}}
	works    = events.DiscoverySucceeded{ProtocolVersion: "2025-11-25", CatalogueHash: "h", ToolCount: 1, ElapsedMS: 10_000}
	callFine = events.ToolCallSucceeded{Tool: "now", ElapsedMS: 5}
	callDown = events.ToolCallFailed{Tool: "now", Evidence: events.Evidence{
		Phase: events.PhaseCallTool, Transport: events.TransportHTTP, ErrorKind: events.KindHTTPStatus, HTTPStatus: 503,
	}}
)

func TestReplay(t *testing.T) {
	hasty := set(t, "deterministic: {after: 3, for: [1h, 4h, 24h]}", "deterministic: {after: 1, for: [24h]}")
	patient := set(t, "deterministic: {after: 3, for: [1h, 4h, 24h]}", "deterministic: {after: 5, for: [1h]}")
	noRetry := set(t, "retry: [network, server_error]", "retry: [server_error]")
	strict := set(t, "gates:\n", "gates:\n  - id: any-failure\n    match: {phase: call_tool}\n    gate: auth_required\n")
	gone := func(s *story) {
		s.run(events.TriggerStartup, dies)
		s.wait(time.Minute)
	}
	for _, c := range []struct {
		name      string
		story     func(s *story)
		candidate *rules.Set
		want      replay.Totals
		verdict   replay.Outcome
	}{
		{"an attempt inside the candidate's skip is avoided, with its time", func(s *story) {
			gone(s)
			s.run(events.TriggerRetry, dies)
		}, hasty, replay.Totals{Failures: 2, AttemptsAvoided: 1, TimeAvoidedMS: 10_000}, replay.Changed},
		{"a person's attempt goes through", func(s *story) {
			gone(s)
			s.run(events.TriggerManual, works)
		}, hasty, replay.Totals{Failures: 1}, replay.Same},
		{"so does one that a call asked for", func(s *story) {
			gone(s)
			s.run(events.TriggerOnUse, works)
		}, hasty, replay.Totals{Failures: 1}, replay.Same},
		{"a success inside a skip is a recovery delayed to the skip's end", func(s *story) {
			gone(s)
			s.run(events.TriggerRetry, works)
			s.wait(48 * time.Hour)
			s.run(events.TriggerManual, works)
		}, hasty, replay.Totals{
			Failures: 1, AttemptsAvoided: 1, TimeAvoidedMS: 10_000, RecoveriesDelayed: 1,
			DelayMS: (24*time.Hour - 70*time.Second).Milliseconds(),
		}, replay.Worse},
		{"or to the next success that went through", func(s *story) {
			gone(s)
			s.run(events.TriggerRetry, works)
			s.wait(time.Hour)
			s.run(events.TriggerManual, works)
			s.run(events.TriggerManual, works)
		}, hasty, replay.Totals{
			Failures: 1, AttemptsAvoided: 1, TimeAvoidedMS: 10_000, RecoveriesDelayed: 1,
			DelayMS: (time.Hour + 10*time.Second).Milliseconds(),
		}, replay.Worse},
		{"be it under a changed entry", func(s *story) {
			gone(s)
			s.run(events.TriggerRetry, works)
			s.wait(time.Hour)
			s.configured(events.ChangeKey, other)
			s.run(events.TriggerConfigChanged, works)
			s.run(events.TriggerManual, works)
		}, hasty, replay.Totals{
			Failures: 1, AttemptsAvoided: 1, TimeAvoidedMS: 10_000, RecoveriesDelayed: 1,
			DelayMS: (time.Hour + 10*time.Second).Milliseconds(),
		}, replay.Worse},
		{"or to the moment a person cleared it", func(s *story) {
			gone(s)
			s.run(events.TriggerRetry, works)
			s.wait(time.Hour)
			s.about(events.SkipCleared{Reason: "fixed"})
			s.wait(time.Hour)
			s.run(events.TriggerCheck, works)
		}, hasty, replay.Totals{
			Failures: 1, AttemptsAvoided: 1, TimeAvoidedMS: 10_000, RecoveriesDelayed: 1, DelayMS: time.Hour.Milliseconds(),
		}, replay.Worse},
		{"a server that fails again and comes back is another recovery", func(s *story) {
			gone(s)
			s.run(events.TriggerRetry, works, dies)
			s.run(events.TriggerRetry, works)
			s.wait(time.Minute)
			s.about(events.SkipRequalified{Reason: "reinstalled"})
		}, hasty, replay.Totals{
			Failures: 2, AttemptsAvoided: 3, TimeAvoidedMS: 30_000, RecoveriesDelayed: 2, DelayMS: 70_000,
		}, replay.Worse},
		{"or to the end of the log", func(s *story) {
			gone(s)
			s.run(events.TriggerRetry, works)
			s.wait(2 * time.Hour)
			s.about(events.SkipRequalified{Reason: "reinstalled"})
		}, hasty, replay.Totals{
			Failures: 1, AttemptsAvoided: 1, TimeAvoidedMS: 10_000, RecoveriesDelayed: 1, DelayMS: (2 * time.Hour).Milliseconds(),
		}, replay.Worse},
		{"successes in a row are one recovery", func(s *story) {
			gone(s)
			s.run(events.TriggerRetry, works)
			s.run(events.TriggerCheck, works)
		}, hasty, replay.Totals{
			Failures: 1, AttemptsAvoided: 2, TimeAvoidedMS: 20_000, RecoveriesDelayed: 1, DelayMS: 10_000,
		}, replay.Worse},
		{"what would have been attempted and was not is unknown", func(s *story) {
			gone(s)
			gone(s)
			gone(s)
			s.about(events.DiscoverySkipped{Reason: "identical_failures", Since: s.now, Until: s.now.Add(time.Hour)})
		}, patient, replay.Totals{Failures: 3, AttemptsUnknown: 1}, replay.Changed},
		{"a skip of both is recorded on both", func(s *story) {
			gone(s)
			gone(s)
			gone(s)
			s.about(events.DiscoverySkipped{Reason: "identical_failures", Since: s.now, Until: s.now.Add(time.Hour)})
		}, rules.Default(), replay.Totals{Failures: 3}, replay.Same},
		{"an attempt in a run after one that would not be tried again is avoided", func(s *story) {
			s.run(events.TriggerStartup, refuses, refuses, works)
		}, noRetry, replay.Totals{Failures: 2, AttemptsAvoided: 2, TimeAvoidedMS: 20_000}, replay.Changed},
		{"so is one after a probe, which a run of its own would have tried again", func(s *story) {
			gone(s)
			s.wait(25 * time.Hour)
			s.run(events.TriggerRetry, refuses, refuses)
		}, hasty, replay.Totals{Failures: 3, AttemptsAvoided: 1, TimeAvoidedMS: 10_000}, replay.Changed},
		{"a call behind the candidate's gate that succeeded is a good call refused", func(s *story) {
			s.run(events.TriggerStartup, works)
			s.call(callDown)
			s.call(callFine)
			s.call(callDown)
		}, strict, replay.Totals{Failures: 2, GoodCallsRefused: 1}, replay.Worse},
		{"of more calls under way behind a gate than anybody makes, the oldest are not counted", func(s *story) {
			s.run(events.TriggerStartup, works)
			s.call(callDown)
			for _, d := range []events.Data{events.ToolCallStarted{Tool: "now"}, callFine} {
				for n := range 300 {
					s.add(events.Event{Subject: "weather", ConfigKey: s.key, CallID: fmt.Sprint("at-once-", n), Data: d})
				}
			}
			s.call(callFine)
		}, strict, replay.Totals{Failures: 1, GoodCallsRefused: 257}, replay.Worse},
		{"a check that succeeds opens the candidate's gate", func(s *story) {
			s.run(events.TriggerStartup, works)
			s.call(callDown)
			s.run(events.TriggerCheck, works)
			s.call(callFine)
		}, strict, replay.Totals{Failures: 1}, replay.Same},
		{"the first attempt of a connection goes through, even when it inherited the skip", func(s *story) {
			gone(s)
			for n := range 5 {
				s.configured(events.ChangeValues, values(n))
				s.run(events.TriggerConfigChanged, dies)
			}
		}, hasty, replay.Totals{Failures: 6}, replay.Same},
		{"a skip that was decided just before its end is no other skip", func(s *story) {
			gone(s)
			gone(s)
			s.run(events.TriggerRetry, dies)
			since := s.now
			s.wait(time.Hour)
			s.about(events.DiscoverySkipped{Reason: "identical_failures", Since: since, Until: s.now})
		}, rules.Default(), replay.Totals{Failures: 3}, replay.Same},
		{"a pin holds on both sides", func(s *story) {
			s.run(events.TriggerStartup, works)
			s.about(events.SkipPinned{Reason: "broken"})
			s.about(events.DiscoverySkipped{Reason: "pinned", Since: s.now})
		}, hasty, replay.Totals{}, replay.Same},
		{"a reporter's outcomes are judged, too", func(s *story) {
			for range 3 {
				s.wait(time.Minute)
				s.add(events.Event{Source: "a-host", Subject: "notes", ConfigKey: events.DefaultConfigKey, Data: dies})
			}
		}, hasty, replay.Totals{Failures: 3, AttemptsAvoided: 2, TimeAvoidedMS: 20_000}, replay.Changed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			c.story(s)
			report, err := replay.Run(t.Context(), s.log, rules.Default(), c.candidate, replay.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, report.Totals); diff != "" {
				t.Errorf("totals (-want +got):\n%s", diff)
			}
			if report.Verdict != c.verdict {
				t.Errorf("verdict %s, want %s; servers %+v", report.Verdict, c.verdict, report.Servers)
			}
		})
	}
}

func TestReportNamesWhatChanged(t *testing.T) {
	s := newStory(t)
	s.run(events.TriggerStartup, dies)
	s.run(events.TriggerRetry, dies)
	s.run(events.TriggerRetry, refuses)
	renamed := set(t, "- id: python-module-missing\n", "- id: module-gone\n")
	report, err := replay.Run(t.Context(), s.log, rules.Default(), renamed, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Failures) != 2 || report.Totals.Reclassified != 2 || report.Verdict != replay.Changed {
		t.Fatalf("%d failures listed, %d reclassified, %s; want 2, 2, changed", len(report.Failures), report.Totals.Reclassified, report.Verdict)
	}
	row := report.Failures[0]
	was, now := rules.Default().Classify(dies.Evidence), renamed.Classify(dies.Evidence)
	want := replay.Failure{
		EventID: row.EventID, Server: "weather",
		Was: replay.Judgment{Class: was.Class, Signature: was.Signature}, Now: replay.Judgment{Class: now.Class, Signature: now.Signature},
	}
	if row != want {
		t.Errorf("first row %+v, want %+v", row, want)
	}
	var of []events.Type
	for e, err := range s.log.Read(t.Context(), events.Query{ID: row.EventID}) {
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, e.Type)
	}
	if !slices.Equal(of, []events.Type{events.TypeDiscoveryFailed}) {
		t.Errorf("first row of %s", of)
	}
	all, err := replay.Run(t.Context(), s.log, rules.Default(), renamed, replay.Options{All: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Failures) != 3 || len(all.Servers) != 1 || all.Servers[0].Was != projections.StateFailed {
		t.Errorf("with all rows: %+v", all)
	}
}

func TestFiltersLimitTheReportAndNotTheFold(t *testing.T) {
	hasty := set(t, "deterministic: {after: 3, for: [1h, 4h, 24h]}", "deterministic: {after: 1, for: [24h]}")
	s := newStory(t)
	s.run(events.TriggerStartup, dies)
	s.wait(time.Hour)
	later := s.now
	s.run(events.TriggerRetry, dies)
	if _, err := s.log.Append(t.Context(), []events.Event{{
		ID: "notes", Source: self, Type: events.TypeServerConfigured, Subject: "notes", Time: s.now, DataVersion: 1,
		ConfigKey: other, Data: events.ServerConfigured{Change: events.ChangeAdded, Transport: events.TransportStdio},
	}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name            string
		opts            replay.Options
		avoided, failed int64
		servers         int
	}{
		{"no filter", replay.Options{}, 1, 2, 1},
		{"what came first still makes the skip", replay.Options{Since: later}, 1, 1, 1},
		{"what is too late is not counted", replay.Options{Until: later}, 0, 1, 1},
		{"another server", replay.Options{Servers: []events.ServerName{"notes"}}, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			report, err := replay.Run(t.Context(), s.log, rules.Default(), hasty, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			if report.Totals.AttemptsAvoided != c.avoided || report.Totals.Failures != c.failed || len(report.Servers) != c.servers {
				t.Errorf("%d avoided, %d failures, %d servers; want %d, %d, %d",
					report.Totals.AttemptsAvoided, report.Totals.Failures, len(report.Servers), c.avoided, c.failed, c.servers)
			}
		})
	}
}

func TestAReplaySaysHowManyEventsItCounts(t *testing.T) {
	s := newStory(t)
	s.run(events.TriggerStartup, dies)
	s.wait(time.Hour)
	s.about(events.Unknown{Type: "weather.changed", JSON: []byte(`{"to":"rain"}`)})
	s.add(events.Event{Data: events.ServiceStopped{}})
	for _, c := range []struct {
		name    string
		opts    replay.Options
		counted int64
	}{
		{"all", replay.Options{}, 8},
		{"those of the span", replay.Options{Since: s.now}, 2},
		{"those about the server", replay.Options{Servers: []events.ServerName{"weather"}}, 4},
		{"none", replay.Options{Until: noon}, 0},
	} {
		report, err := replay.Run(t.Context(), s.log, rules.Default(), rules.Default(), c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if report.Events != 8 || report.EventsCounted != c.counted || report.EventsPassedOver != 1 {
			t.Errorf("%s: %d of %d counted, %d passed over; want %d of 8, and 1",
				c.name, report.EventsCounted, report.Events, report.EventsPassedOver, c.counted)
		}
	}
}

// A table of what a year changes counts all of it, though not every failure is listed.
func TestKindsOfFailuresAreCountedToTheEnd(t *testing.T) {
	s := newStory(t)
	for i := range 1200 {
		s.wait(time.Minute)
		if i%3 == 0 {
			s.run(events.TriggerManual, refuses)
		} else {
			s.run(events.TriggerManual, dies)
		}
	}
	scoped, err := rules.Builtin("call-scoped")
	if err != nil {
		t.Fatal(err)
	}
	report, err := replay.Run(t.Context(), s.log, rules.Default(), scoped, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Failures) != 1000 || report.FailuresOmitted != 200 {
		t.Errorf("%d failures listed, %d omitted", len(report.Failures), report.FailuresOmitted)
	}
	if k := report.Kinds; len(k) != 2 || k[0].Times != 800 || k[1].Times != 400 || k[1].EventID != report.Failures[0].EventID || report.KindsOmitted != 0 {
		t.Errorf("kinds %+v, %d failures of others", k, report.KindsOmitted)
	}

	s = newStory(t)
	for i := range 1010 {
		odd := dies
		odd.Evidence.StderrTail = fmt.Sprintf("ModuleNotFoundError: No module named 'lib%c%c%c'", 'a'+i/676, 'a'+i/26%26, 'a'+i%26)
		s.run(events.TriggerManual, odd)
	}
	if report, err = replay.Run(t.Context(), s.log, rules.Default(), scoped, replay.Options{}); err != nil {
		t.Fatal(err)
	}
	if len(report.Kinds) != 1000 || report.KindsOmitted != 10 {
		t.Errorf("%d kinds listed, %d failures of others; want 1000 and 10", len(report.Kinds), report.KindsOmitted)
	}
}

func TestASpanThatEndsBeforeItBeginsIsAnError(t *testing.T) {
	s := newStory(t)
	for _, until := range []time.Time{noon, noon.Add(-time.Hour)} {
		_, err := replay.Run(t.Context(), s.log, rules.Default(), rules.Default(), replay.Options{Since: noon, Until: until})
		if !errors.Is(err, replay.ErrEmptySpan) {
			t.Errorf("replay from noon until %s: %v", until, err)
		}
	}
}

func TestAMisspeltServerIsAnError(t *testing.T) {
	s := newStory(t)
	for _, names := range [][]events.ServerName{{"wether"}, {"weather", "wether"}} {
		_, err := replay.Run(t.Context(), s.log, rules.Default(), rules.Default(), replay.Options{Servers: names})
		if !errors.Is(err, replay.ErrUnknownServer) {
			t.Errorf("replay for %v: %v", names, err)
		}
	}
}

func TestProgressAndCancel(t *testing.T) {
	s := newStory(t)
	for range 10 {
		s.run(events.TriggerManual, works)
	}
	head, err := s.log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen []events.Sequence
	opts := replay.Options{Progress: func(done, total events.Sequence) {
		if total != head.Sequence {
			t.Errorf("total %d, want %d", total, head.Sequence)
		}
		if seen = append(seen, done); len(seen) == 3 {
			cancel()
		}
	}}
	_, err = replay.Run(ctx, s.log, rules.Default(), rules.Default(), opts.InPiecesOf(2))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled with %v", err)
	}
	if diff := cmp.Diff([]events.Sequence{2, 4, 6}, seen[:3]); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}
