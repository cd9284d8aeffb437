package simulate_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
	"mcpledger/projections/simulate"
)

var update = flag.Bool("update", false, "write what the documentation shows")

// seed makes the fleets of these tests.
const seed = 1

// long marks a test that the race detector would make last for minutes and has
// nothing to look at in: a simulation is one goroutine.
func long(t *testing.T) {
	t.Helper()
	if underRace {
		t.Skip("one goroutine for minutes")
	}
	t.Parallel()
}

// A year under the default rules, with all that can happen to 200 servers.
func TestYear(t *testing.T) {
	long(t)
	fleet := simulate.Year(seed)
	days := int(fleet.Span.Hours() / 24)
	r := fleet.Run(rules.Default(), nil)
	t.Logf("seed %d: %d events and %d KiB of payloads a day", seed, int(r.Events)/days, int(r.Bytes)/days/1024)
	if perServer := int(r.Events) / days / len(r.Servers); perServer > 100 {
		t.Errorf("the log grows by %d events a day for each server", perServer)
	}
	for i, s := range r.Servers {
		if s.Late > 0 {
			t.Errorf("%s: %d recoveries were found later than the state had promised", s.Name, s.Late)
		}
		switch s.Kind {
		case simulate.Healthy:
			if s.Skips+s.Wasted > 0 {
				t.Errorf("%s was skipped %d times, and failed %d times", s.Name, s.Skips, s.Wasted)
			}
		case simulate.Networked:
			if s.Skips+s.Counted > 0 {
				t.Errorf("%s: %d failures in outages were counted, and %d skips came of them", s.Name, s.Counted, s.Skips)
			}
		case simulate.Dead, simulate.Unanswering:
			if s.State != projections.StateSkipped {
				t.Errorf("%s is %s", s.Name, s.State)
			}
			bound := launchesBound(&fleet.Servers[i], fleet.Span)
			t.Logf("%s: %d launches, at most %d were to be expected", s.Name, s.Attempts, bound)
			if s.Attempts > bound {
				t.Errorf("%s was launched %d times, want %d at most", s.Name, s.Attempts, bound)
			}
		}
	}
	for _, k := range r.Kinds() {
		sum := r.Of(k)
		t.Logf("%s: %d recoveries, noticed %v late on average, %v at most; %.2f attempts in vain per server and day",
			k, sum.Recoveries, sum.Mean.Round(time.Second), sum.Max.Round(time.Second), sum.WastedPerDay)
	}
}

// launchesBound is how often a server that always fails may be launched: a day's
// worth until it is skipped for good, then once per last rung of the ladder.
func launchesBound(s *simulate.Server, span time.Duration) int {
	ladder := rules.Default().Classify(s.Broken[0].Failure.Evidence).Policy.TTL
	return int(span/ladder[len(ladder)-1]) + 150
}

// Servers that were never reached are no outage for ever, though they fail together
// and nothing else is tried.
func TestHostsThatNeverAnsweredAreSkipped(t *testing.T) {
	t.Parallel()
	for _, s := range simulate.NeverAnswered(seed).Run(rules.Default(), nil).Servers {
		if s.State != projections.StateSkipped {
			t.Errorf("%s is %s after %d attempts", s.Name, s.State, s.Attempts)
		}
	}
}

// A call that fails takes nothing else with it: while the calls of a server failed in
// the week, it stayed as it was.
func TestCallsOfAWeekEndOnceAndCondemnNobody(t *testing.T) {
	t.Parallel()
	state := projections.New(rules.Default())
	open := map[string]bool{}
	failed := 0
	simulate.Week(seed).Run(rules.Default(), func(e events.Event) {
		state.Apply(e)
		switch e.Data.(type) {
		case events.ToolCallStarted:
			open[e.CallID] = true
		case events.ToolCallSucceeded, events.ToolCallFailed, events.ToolCallAbandoned:
			if !open[e.CallID] {
				t.Errorf("call %s ended at %v without having begun, or twice", e.CallID, e.Time)
			}
			delete(open, e.CallID)
		}
		if _, ok := e.Data.(events.ToolCallFailed); ok {
			failed++
			if v, ok := state.Server(e.Subject, e.Time); !ok || v.State != projections.StateReady {
				t.Errorf("after a failed call %s is %s at %v", e.Subject, v.State, e.Time)
			}
		}
	})
	if failed == 0 || len(open) > 3 {
		t.Errorf("%d calls failed, and %d have no end", failed, len(open))
	}
}

func TestASeedGivesTheSameEvents(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (all []events.Event) {
		fleet := simulate.NeverAnswered(seed)
		fleet.Run(rules.Default(), func(e events.Event) { all = append(all, e) })
		return all
	}
	first := run(seed)
	if diff := cmp.Diff(first, run(seed)); diff != "" {
		t.Errorf("the same seed gave other events:\n%s", diff)
	}
	if cmp.Equal(first, run(seed+1)) {
		t.Error("another seed gave the same events")
	}
	folded := projections.New(rules.Default())
	for i, e := range first {
		if e.Sequence != events.Sequence(i+1) || e.Time.Before(simulate.NeverAnswered(seed).Start) {
			t.Fatalf("event %d has sequence %d and time %v", i, e.Sequence, e.Time)
		}
		folded.Apply(e)
	}
	if open := folded.Unfinished(); len(open) > 3 {
		t.Errorf("%d attempts have no outcome", len(open))
	}
}

func TestAPolicyChangesNumbersOnly(t *testing.T) {
	t.Parallel()
	patient := simulate.Policy{Name: "patient", Numbers: map[string]string{"deterministic": "{after: 7, for: [2h]}"}}
	set, err := patient.Apply(rules.Default())
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for i, r := range set.Rules() {
		was := rules.Default().Rules()[i]
		if r.Policy.After == 7 {
			changed++
			r.Policy = was.Policy
		}
		if diff := cmp.Diff(was, r); diff != "" {
			t.Errorf("rule %s (-default +patient):\n%s", r.ID, diff)
		}
	}
	if set.Name() != "patient" || changed == 0 {
		t.Errorf("%q has %d rules with the policy's numbers", set.Name(), changed)
	}
	misspelt := simulate.Policy{Name: "misspelt", Numbers: map[string]string{"determinstic": "{after: 1}"}}
	if _, err := misspelt.Apply(rules.Default()); err == nil || !strings.Contains(err.Error(), "determinstic") {
		t.Errorf("a key that the set has not: %v", err)
	}
}

func TestPoliciesAreComparedInTheirOrder(t *testing.T) {
	t.Parallel()
	policies := simulate.Candidates()[:4]
	results, err := simulate.Compare(simulate.NeverAnswered(seed), rules.Default(), policies)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range policies {
		set, err := p.Apply(rules.Default())
		if err != nil {
			t.Fatal(err)
		}
		want := simulate.NeverAnswered(seed).Run(set, nil)
		want.Policy = p.What
		if diff := cmp.Diff(want, results[i]); diff != "" {
			t.Errorf("%s (-alone +compared):\n%s", p.Name, diff)
		}
	}
}

const (
	page  = "../../docs/explanation/policy.md"
	begin = "<!-- begin of what go test ./projections/simulate -update writes -->\n"
	end   = "<!-- end -->\n"
)

// The page on the default policy shows what the simulation gives.
func TestPolicyPage(t *testing.T) {
	long(t)
	results, err := simulate.Compare(simulate.Mixed(seed), rules.Default(), simulate.Candidates())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), begin)
	shown, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the tables", page)
	}
	want := "\n" + simulate.Table(results) + "\n"
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("%s is not what the simulation gives; run with -update (-simulation +page):\n%s", page, diff)
	}
}
