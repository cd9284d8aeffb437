package replay_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpledger/events"
	"mcpledger/events/eventstest"
	"mcpledger/projections"
	"mcpledger/projections/replay"
	"mcpledger/projections/rules"
	"mcpledger/projections/simulate"
)

// recorded is a log with the events of a simulation, dated by themselves.
func recorded(t testing.TB, fleet simulate.Fleet, set *rules.Set) events.Log {
	t.Helper()
	var now time.Time
	log := eventstest.NewLog(func() time.Time { return now })
	fleet.Run(set, func(e events.Event) {
		now = e.Time
		if _, err := log.Append(t.Context(), []events.Event{e}); err != nil {
			t.Fatal(err)
		}
	})
	return log
}

var faults = []simulate.Failure{
	failing(events.KindExit, events.TransportStdio, "ModuleNotFoundError: No module named 'fitz'"),
	failing(events.KindExit, events.TransportStdio, ""),
	failing(events.KindExecNotFound, events.TransportStdio, ""),
	failing(events.KindRefused, events.TransportHTTP, ""),
	failing(events.KindTimeoutHeaders, events.TransportHTTP, ""),
	login(401), login(503),
}

func failing(kind events.ErrorKind, transport events.Transport, stderr string) simulate.Failure {
	return simulate.Failure{Took: time.Second, Evidence: events.Evidence{
		Phase: events.PhaseHandshake, Transport: transport, ErrorKind: kind, StderrTail: stderr, ElapsedMS: 1000,
	}}
}

func login(status int) simulate.Failure {
	f := failing(events.KindHTTPStatus, events.TransportHTTP, "")
	f.Evidence.HTTPStatus = status
	return f
}

// drawFleet draws a few servers that break in any way, at any time.
func drawFleet(t *rapid.T) simulate.Fleet {
	f := simulate.Fleet{
		Name: "drawn", Seed: rapid.Uint64().Draw(t, "seed"), Start: noon,
		Span: time.Duration(rapid.IntRange(1, 48).Draw(t, "hours")) * time.Hour,
	}
	moment := func(what string) time.Time {
		return f.Start.Add(time.Duration(rapid.Int64Range(0, int64(f.Span)).Draw(t, what)))
	}
	for at := f.Start; ; {
		at = at.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "minutes up")) * time.Minute)
		if at.After(f.Start.Add(f.Span)) {
			break
		}
		f.Restarts = append(f.Restarts, at)
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "servers") {
		s := simulate.Server{
			Name: events.ServerName(fmt.Sprint("server ", i)), Kind: "drawn",
			Transport:  rapid.SampledFrom([]events.Transport{events.TransportStdio, events.TransportHTTP}).Draw(t, "transport"),
			SlowStarts: rapid.IntRange(0, 2).Draw(t, "slow starts"),
		}
		from := f.Start
		for range rapid.IntRange(0, 4).Draw(t, "breakages") {
			to := from.Add(time.Duration(rapid.Int64Range(1, int64(20*time.Hour)).Draw(t, "broken for")))
			s.Broken = append(s.Broken, simulate.Breakage{From: from, To: to, Failure: rapid.SampledFrom(faults).Draw(t, "fault")})
			from = to.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Hour)).Draw(t, "fine for")))
		}
		if rapid.Bool().Draw(t, "rotates") {
			s.Rotated = []time.Time{moment("rotated")}
		}
		f.Servers = append(f.Servers, s)
	}
	return f
}

func snapshot(t rapid.TB, s *projections.State) string {
	b, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := cbor.Diagnose(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Under a single set that was active all along, a replay is what happened: nothing
// is avoided, nothing unknown, and the state is the live one.
func TestReplayUnderTheActiveSetIsTheLiveState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := recorded(t, drawFleet(rt), rules.Default())
		live := projections.New(rules.Default())
		for e, err := range log.Read(t.Context(), events.Query{}) {
			if err != nil {
				rt.Fatal(err)
			}
			live.Apply(e)
		}
		state, parted, err := replay.Alone(t.Context(), log, rules.Default())
		if err != nil {
			rt.Fatal(err)
		}
		if parted != 0 {
			rt.Errorf("the replay parts from what happened %d times", parted)
		}
		if diff := cmp.Diff(snapshot(rt, live), snapshot(rt, state)); diff != "" {
			rt.Fatalf("the replay's state is not the live one (-live +replay):\n%s", diff)
		}
	})
}

// A replay says the same however the log is cut and on however many cores.
func TestReplayDoesNotDependOnPiecesOrCores(t *testing.T) {
	candidate := set(t, "after: 3, for: [1h, 4h, 24h]", "after: 1, for: [6h]")
	rapid.Check(t, func(rt *rapid.T) {
		log := recorded(t, drawFleet(rt), rules.Default())
		run := func(pieces, cores int) replay.Report {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			report, err := replay.Run(t.Context(), log, rules.Default(), candidate, replay.Options{All: true}.InPiecesOf(pieces))
			if err != nil {
				rt.Fatal(err)
			}
			return report
		}
		whole := run(4096, 1)
		n := rapid.IntRange(1, 50).Draw(rt, "events at a time")
		if diff := cmp.Diff(whole, run(n, 4)); diff != "" {
			rt.Fatalf("in one piece and in pieces of %d (-whole +pieces):\n%s", n, diff)
		}
	})
}

// Whatever happened, a log replayed with the rules it was made under is the same, and
// a set compared with itself never differs.
func TestASetIsTheSameAsItself(t *testing.T) {
	other := set(t, "after: 3, for: [1h, 4h, 24h]", "after: 1, for: [6h]")
	rapid.Check(t, func(rt *rapid.T) {
		log := recorded(t, drawFleet(rt), rules.Default())
		for _, s := range []*rules.Set{rules.Default(), other} {
			report, err := replay.Run(t.Context(), log, s, s, replay.Options{})
			if err != nil {
				rt.Fatal(err)
			}
			want := replay.Totals{Failures: report.Totals.Failures}
			if report.Verdict != replay.Same || report.Totals != want || len(report.Servers)+len(report.Failures) != 0 {
				rt.Fatalf("%s against itself: %+v", s.Name(), report)
			}
		}
	})
}

// What is recorded at the edges of a skip is what happened, too.
func TestReplayFollowsTheEdgesOfASkip(t *testing.T) {
	skipped := func(s *story) (until time.Time) {
		for range 3 {
			s.run(events.TriggerStartup, dies)
		}
		return s.now.Add(time.Hour)
	}
	for _, c := range []struct {
		name  string
		story func(s *story)
	}{
		{"a pin is noted", func(s *story) {
			s.run(events.TriggerStartup, works)
			s.about(events.SkipPinned{Reason: "broken"})
			s.about(events.DiscoverySkipped{Reason: "pinned", Since: s.now})
		}},
		{"a skip is noted as it ends", func(s *story) {
			until := skipped(s)
			s.now = until
			s.about(events.DiscoverySkipped{Reason: "identical_failures", Since: until.Add(-time.Hour), Until: until})
		}},
		{"the clock is set back while a run waits for its turn", func(s *story) {
			s.now = skipped(s).Add(time.Minute)
			s.clock = -30 * time.Minute
			s.run(events.TriggerSkipExpired, works)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			c.story(s)
			live := projections.New(rules.Default())
			for e, err := range s.log.Read(t.Context(), events.Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				live.Apply(e)
			}
			state, parted, err := replay.Alone(t.Context(), s.log, rules.Default())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(snapshot(t, live), snapshot(t, state)); diff != "" || parted != 0 {
				t.Errorf("the replay parts %d times from what happened (-live +replay):\n%s", parted, diff)
			}
		})
	}
}

func TestWhatAnAvoidedAttemptLearnedIsNotKnown(t *testing.T) {
	s := newStory(t)
	s.run(events.TriggerStartup, dies)
	s.run(events.TriggerRetry, works)
	s.add(events.Event{Subject: "weather", ConfigKey: s.key, RunID: "run-2", AttemptID: "run-2-0", Data: events.CatalogueChanged{Hash: "h", Tools: []byte("[]")}})
	hasty := set(t, "deterministic: {after: 3, for: [1h, 4h, 24h]}", "deterministic: {after: 1, for: [24h]}")
	for _, c := range []struct {
		set   *rules.Set
		known bool
	}{{rules.Default(), true}, {hasty, false}} {
		state, _, err := replay.Alone(t.Context(), s.log, c.set)
		if err != nil {
			t.Fatal(err)
		}
		if known, _ := state.Catalogue("weather"); (known != nil) != c.known {
			t.Errorf("under %s the catalogue is %+v, want one: %v", c.set.Name(), known, c.known)
		}
	}
}
