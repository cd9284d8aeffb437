package projections_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/projections"
)

// call records a started call with its outcome.
func (h *history) call(outcome events.Data) {
	h.startCall(fmt.Sprintf("call%d", len(h.events)), outcome)
}

func (h *history) startCall(id string, outcome events.Data) {
	h.add(events.Event{Subject: server, ConfigKey: h.key, CallID: id, Data: events.ToolCallStarted{Tool: "now", Caller: "anna", ArgumentsHash: "a"}})
	h.wait(time.Second)
	h.endCall(id, outcome)
}

func (h *history) endCall(id string, outcome events.Data) {
	h.add(events.Event{Subject: server, ConfigKey: h.key, CallID: id, Data: outcome})
	h.wait(time.Second)
}

var (
	unauthorized = events.ToolCallFailed{Tool: "now", Dispatched: true, Evidence: events.Evidence{
		Phase: events.PhaseCallTool, Transport: events.TransportHTTP, ErrorKind: events.KindHTTPStatus, HTTPStatus: 401, Error: "HTTP status 401 Unauthorized",
	}}
	noSuchCity = events.ToolCallFailed{Tool: "now", Dispatched: true, IsError: true, Evidence: events.Evidence{
		Phase: events.PhaseCallTool, Transport: events.TransportHTTP, ErrorKind: events.KindToolError, Error: "no such city",
	}}
)

// remote is a ready server over HTTP.
func remote() *history {
	h := newHistory()
	h.entry.Transport = events.TransportHTTP
	h.add(events.Event{Subject: server, ConfigKey: h.key, Data: events.ServerConfigured{Change: events.ChangeSettings, Transport: events.TransportHTTP}})
	h.attempt(events.TriggerStartup, succeeds, catalogue)
	return h
}

func TestOnlyACheckThatBeganAfterTheGateOpensIt(t *testing.T) {
	h := remote()
	h.add(events.Event{Subject: server, ConfigKey: h.key, RunID: "r", AttemptID: "a", Data: events.DiscoveryStarted{Trigger: events.TriggerCheck}})
	h.call(unauthorized)
	h.add(events.Event{Subject: server, ConfigKey: h.key, RunID: "r", AttemptID: "a", Data: succeeds})
	if v := h.server(t); v.Gate == nil || v.Authorization != projections.AuthRequired || v.Reachability != projections.Reachable {
		t.Fatalf("a check from before opened the gate: %s, %s", v.Authorization, v.Reachability)
	}
	h.attempt(events.TriggerCheck, succeeds)
	if v := h.server(t); v.Gate != nil || v.Authorization != projections.Authorized {
		t.Errorf("a check from after did not: %+v", v.Gate)
	}
}

// What keeps a server away in two ways is told of both, while both hold.
func TestAServerThatIsPinnedAndGatedSaysBoth(t *testing.T) {
	whats := func(v projections.Server) (all []string) {
		for _, c := range v.Clearings() {
			all = append(all, c.What)
		}
		return all
	}
	for _, c := range []struct {
		story string
		until time.Duration // 0: until it is lifted
		want  []string
	}{
		{"until it is lifted", 0, []string{"manual", "successful_check", "config_change", "manual"}},
		{"for an hour", time.Hour, []string{"expiry", "manual", "successful_check", "config_change", "manual"}},
	} {
		t.Run(c.story, func(t *testing.T) {
			h := remote()
			h.call(unauthorized)
			pin := events.SkipPinned{Reason: "moving"}
			if c.until > 0 {
				pin.Until = h.now.Add(c.until)
			}
			h.about(pin)
			v := h.server(t)
			if diff := cmp.Diff(c.want, whats(v)); diff != "" {
				t.Errorf("what brings it back (-want +got):\n%s", diff)
			}
			if v.State != projections.StateBlocked || !strings.HasSuffix(v.Reason, "auth required; besides it is set aside by an operator: moving") {
				t.Errorf("%s: %s", v.State, v.Reason)
			}
			h.about(events.SkipCleared{Reason: "moved"})
			if v := h.server(t); strings.Contains(v.Reason, "set aside") || len(v.Clearings()) != 3 {
				t.Errorf("when it is lifted: %s, %+v", v.Reason, v.Clearings())
			}
		})
	}
}

func TestAServerThatIsPinnedAndMalformedSaysBoth(t *testing.T) {
	h := newHistory()
	h.entry.Problem = &events.EntryProblem{Code: events.ProblemVariableUnset, Detail: "KEY is not set"}
	h.configure(events.ChangeSettings, keyA)
	h.about(events.SkipPinned{})
	v := h.server(t)
	if on := v.Clearings(); len(on) != 2 || on[0].What != projections.ClearsOnManual || on[1].What != projections.ClearsOnConfigChange {
		t.Errorf("%+v", on)
	}
	if !strings.HasSuffix(v.Reason, "; besides it is set aside by an operator") {
		t.Errorf("%s: %s", v.State, v.Reason)
	}
}

func TestACallFromBeforeTheCheckDoesNotCloseTheGateAgain(t *testing.T) {
	h := remote()
	start := events.ToolCallStarted{Tool: "now"}
	for _, id := range []string{"old", "older"} {
		h.add(events.Event{Subject: server, ConfigKey: h.key, CallID: id, Data: start})
	}
	h.endCall("old", unauthorized)
	h.attempt(events.TriggerCheck, succeeds)
	h.endCall("older", unauthorized)
	if v := h.server(t); v.Gate != nil {
		t.Error("a call from before the check closed the gate again")
	}
	h.call(unauthorized)
	if v := h.server(t); v.Gate == nil {
		t.Error("a call from after the check did not")
	}
}

func TestACheckThatClearedNoGateHoldsNoneOff(t *testing.T) {
	h := remote()
	h.add(events.Event{Subject: server, ConfigKey: h.key, CallID: "early", Data: events.ToolCallStarted{Tool: "now"}})
	h.attempt(events.TriggerCheck, succeeds)
	h.endCall("early", unauthorized)
	if v := h.server(t); v.Gate == nil {
		t.Error("a list that needs no credential vouched for a call")
	}
}

func TestAGateIsCheckedLessAndLessOften(t *testing.T) {
	h := remote()
	h.call(unauthorized)
	set := h.server(t).Gate.Since
	if wait := h.server(t).NextAttempt.Sub(set); !near(time.Minute, wait) {
		t.Errorf("first check after %s", wait)
	}
	failing := events.DiscoveryFailed{Evidence: unauthorized.Evidence}
	for _, want := range []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute} {
		h.attempt(events.TriggerCheck, failing)
		v := h.server(t)
		if wait := v.NextAttempt.Sub(h.now); !near(want, wait) || v.Skip != nil || v.State != projections.StateBlocked {
			t.Errorf("next check in %s, want %s; %s, skip %v", wait, want, v.State, v.Skip)
		}
	}
	h.attempt(events.TriggerCheck, succeeds)
	h.call(unauthorized)
	v := h.server(t)
	if wait := v.NextAttempt.Sub(v.Gate.Since); !near(16*time.Minute, wait) {
		t.Errorf("the same gate at once again is checked after %s, want twice the last wait", wait)
	}
	h.attempt(events.TriggerCheck, succeeds)
	h.wait(11 * time.Minute)
	h.call(unauthorized)
	v = h.server(t)
	if wait := v.NextAttempt.Sub(v.Gate.Since); !near(time.Minute, wait) {
		t.Errorf("a gate much later is checked after %s, want a minute", wait)
	}
}

func TestNoCallMovesReachability(t *testing.T) {
	for kind, failure := range map[string]events.ToolCallFailed{
		"401": unauthorized, "tool error": noSuchCity,
		"reset": {Tool: "now", Dispatched: true, Evidence: events.Evidence{Phase: events.PhaseCallTool, ErrorKind: events.KindReset}},
	} {
		h := remote()
		h.call(failure)
		if v := h.server(t); v.Reachability != projections.Reachable || v.Skip != nil || v.Streak != nil {
			t.Errorf("%s: %s, skip %v, streak %v", kind, v.Reachability, v.Skip, v.Streak)
		}
	}
}

func TestCallTimesAreSketched(t *testing.T) {
	h := remote()
	for ms := range int64(1000) {
		h.call(events.ToolCallSucceeded{Tool: "now", ElapsedMS: ms + 1})
	}
	h.call(events.ToolCallFailed{Tool: "now", Evidence: events.Evidence{ErrorKind: events.KindRefused}, ElapsedMS: 1 << 40})
	stats := h.server(t).Stats
	if stats.Calls != 1001 || stats.CallFailures != 1 {
		t.Errorf("stats %+v", stats)
	}
	for want, got := range map[int64]int64{500: stats.CallP50MS, 990: stats.CallP99MS} {
		if got < want*98/100 || got > want*102/100 {
			t.Errorf("%d ms, want %d give or take 2 %%", got, want)
		}
	}
}
