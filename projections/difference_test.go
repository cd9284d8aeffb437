package projections_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

func TestDifferencesSayInWhatServersStandOtherwise(t *testing.T) {
	skip := func(class rules.Class, until time.Time) *projections.Skip {
		return &projections.Skip{
			Reason: projections.SkipIdenticalFailures, Cause: projections.Cause{Class: class}, Since: start, Until: until,
		}
	}
	gate := func(event string) *projections.Gate {
		return &projections.Gate{Kind: rules.GateAuthRequired, EventID: event}
	}
	later := start.Add(time.Hour)
	for _, c := range []struct {
		what     string
		was, now projections.Server
		want     []projections.Aspect
	}{
		{"nothing", projections.Server{State: projections.StateReady}, projections.Server{State: projections.StateReady, Reason: "in other words"}, nil},
		{"the state", projections.Server{State: projections.StateReady}, projections.Server{State: projections.StateFailed}, []projections.Aspect{projections.AspectState}},
		{
			"a skip that is new, and the state with it",
			projections.Server{State: projections.StateFailed}, projections.Server{State: projections.StateSkipped, Skip: skip(rules.ClassConfig, later)},
			[]projections.Aspect{projections.AspectState, projections.AspectSkip},
		},
		{"a skip that is the same", projections.Server{Skip: skip(rules.ClassConfig, later)}, projections.Server{Skip: skip(rules.ClassConfig, later)}, nil},
		{"a skip for something else", projections.Server{Skip: skip(rules.ClassConfig, later)}, projections.Server{Skip: skip(rules.ClassAuth, later)}, []projections.Aspect{projections.AspectSkip}},
		{"a skip for longer", projections.Server{Skip: skip(rules.ClassConfig, later)}, projections.Server{Skip: skip(rules.ClassConfig, time.Time{})}, []projections.Aspect{projections.AspectSkip}},
		{"another gate", projections.Server{Gate: gate("a")}, projections.Server{Gate: gate("b")}, []projections.Aspect{projections.AspectGate}},
		{"no gate any more", projections.Server{Gate: gate("a")}, projections.Server{}, []projections.Aspect{projections.AspectGate}},
		{"its tools", projections.Server{}, projections.Server{Catalogue: &projections.Catalogue{Hash: "h"}}, []projections.Aspect{projections.AspectCatalogue}},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.was.Name, c.now.Name = "weather", "weather"
			var got []projections.Aspect
			for _, d := range projections.Differences([]projections.Server{c.was}, []projections.Server{c.now}) {
				got = append(got, d.In...)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("differs in (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDifferencesNameServersThatOneSideDoesNotKnow(t *testing.T) {
	named := func(names ...events.ServerName) (all []projections.Server) {
		for _, n := range names {
			all = append(all, projections.Server{Name: n, State: projections.StateReady})
		}
		return all
	}
	got := map[events.ServerName]projections.Aspect{}
	for _, d := range projections.Differences(named("gone", "stays"), named("new", "stays")) {
		got[d.Server] = d.In[0]
		if known := d.Was.Name != ""; known != (d.Server == "gone") || known == (d.Now.Name != "") {
			t.Errorf("%s: was %q, is %q", d.Server, d.Was.Name, d.Now.Name)
		}
	}
	want := map[events.ServerName]projections.Aspect{"gone": projections.AspectRemoved, "new": projections.AspectAdded}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}
