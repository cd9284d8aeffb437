package discovery_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

func TestAGateSaysWhySinceWhenAndWhatClearsIt(t *testing.T) {
	w := newWorld(t)
	w.frozen = time.Now()
	remote := newBadServer(t, mcptest.HTTP{}, "tools/call", status(403, "", "WWW-Authenticate", `Bearer error="insufficient_scope", scope="repo:write"`))
	w.entries["remote"] = map[string]any{"url": remote.url}
	r := w.start()
	r.awaitState("remote", projections.StateReady)
	remote.armed.Store(true)
	set := r.call("remote", victim, `{}`)
	v := r.server("remote")
	if v.State != projections.StateBlocked || v.Reachability != projections.Reachable || v.Authorization != projections.InsufficientScope {
		t.Errorf("%s, %s, %s", v.State, v.Reachability, v.Authorization)
	}
	if v.Gate == nil || v.Gate.Kind != rules.GateInsufficientScope || v.Gate.Scope != "repo:write" || v.Gate.EventID != set.EventID {
		t.Fatalf("gate %+v", v.Gate)
	}
	if v.Cause == nil || v.Cause.Class != rules.ClassAuth || v.Cause.Rule == "" || !strings.Contains(v.Reason, "403") {
		t.Errorf("cause %+v, reason %q", v.Cause, v.Reason)
	}
	out := r.call("remote", "echo", `{}`)
	if set.Outcome != projections.OutcomeFailed || out.Outcome != projections.OutcomeRefused {
		t.Errorf("the call that set it: %s; the next: %s", told(set), told(out))
	}
	for _, f := range []*discovery.CallFailure{set.Failure, out.Failure} {
		if f.Code != discovery.CodeInsufficientScope || f.Class != rules.ClassAuth ||
			!f.Since.Equal(v.Gate.Since) || !slices.Contains(f.ClearsOn, projections.ClearsOnCheck) {
			t.Errorf("%s (%s), since %s, clears on %v", f.Code, f.Class, f.Since, f.ClearsOn)
		}
		if want := v.NextAttempt.Sub(w.now()); want <= 0 || f.RetryAfter != want {
			t.Errorf("it says to try again in %s, and it is looked at in %s", f.RetryAfter, want)
		}
	}
	r.stop()
	r = w.start()
	if v := r.server("remote"); v.State != projections.StateBlocked {
		t.Errorf("after a restart it is %s", v.State)
	}
	remote.armed.Store(false)
	r.discover("remote")
	if v := r.server("remote"); v.State != projections.StateReady || v.Authorization != projections.Authorized {
		t.Errorf("after a successful check it is %s, %s", v.State, v.Authorization)
	}
	r.wantCall("remote", "echo")
}

func TestAServerWhoseListNeedsNoCredentialIsNotHammered(t *testing.T) {
	w := newWorld(t)
	w.frozen = time.Now()
	remote := newBadServer(t, mcptest.HTTP{}, "tools/call", status(401, ""))
	remote.armed.Store(true)
	w.entries["remote"] = map[string]any{"url": remote.url}
	r := w.start()
	r.awaitState("remote", projections.StateReady)
	const step = 10 * time.Second
	for range 10 * time.Minute / step {
		r.call("remote", victim, `{}`)
		w.ahead.Add(int64(step))
		r.reload() // has the schedule look at its clock
		if due := r.server("remote"); due.Gate != nil && !due.NextAttempt.After(w.now()) {
			r.await("remote", "the check of its gate", func(v projections.Server) bool { return v.Gate == nil })
		}
	}
	if sent := remote.struck.Load(); sent < 3 || sent > 5 {
		t.Errorf("%d calls reached the server in 10 minutes, want 3 to 5", sent)
	}
}

func TestAGateHoldsFromTheStatusOnHoweverSlowTheBody(t *testing.T) {
	w := newWorld(t)
	asked := make(chan struct{}, 8)
	remote := newBadServer(t, mcptest.HTTP{}, "tools/call", func(w http.ResponseWriter, r *http.Request, req rpcRequest) {
		status(401, "wait")(w, r, req)
		flush(w, r, req)
		asked <- struct{}{}
		hangs(w, r, req)
	})
	remote.armed.Store(true)
	w.entries["remote"] = map[string]any{"url": remote.url}
	r := w.start()
	r.awaitState("remote", projections.StateReady)
	first := r.background(discovery.Call{Server: "remote", Tool: victim})
	<-asked
	// The status may still be on its way to us for a moment, in which siblings answer.
	for late := time.Now().Add(patience); r.call("remote", "echo", `{}`).Outcome == projections.OutcomeSucceeded; {
		if time.Now().After(late) {
			t.Fatal("the gate never came to hold")
		}
	}
	for range 3 {
		if out := r.call("remote", victim, `{}`); out.Outcome != projections.OutcomeRefused || out.Failure.Code != discovery.CodeAuthRequired {
			t.Errorf("while the body comes in: %s", told(out))
		}
	}
	if out := <-first; out.Failure == nil || out.Failure.Code != discovery.CodeAuthRequired || remote.struck.Load() != 1 {
		t.Errorf("%s; sent %d times", told(out), remote.struck.Load())
	}
}

func TestAFailedCheckOfAGateMakesNoSkip(t *testing.T) {
	w := newWorld(t)
	relay := newBadServer(t, mcptest.HTTP{}, "initialize", status(401, ""))
	w.entries["remote"] = map[string]any{"url": relay.url}
	r := w.start()
	r.awaitState("remote", projections.StateReady)
	relay.armed.Store(true)
	r.call("remote", "echo", `{}`)
	w.ahead.Add(int64(70 * time.Second))
	r.reload()
	v := r.await("remote", "a failed check", func(v projections.Server) bool {
		return v.Last != nil && v.Last.Trigger == events.TriggerCheck && v.Last.Outcome == projections.OutcomeFailed
	})
	if v.State != projections.StateBlocked || v.Skip != nil {
		t.Errorf("%s, skip %+v", v.State, v.Skip)
	}
	if wait := v.NextAttempt.Sub(w.now()); wait < time.Minute || wait > 3*time.Minute {
		t.Errorf("next check in %s, want about 2 min", wait)
	}
}

func TestACallThatNamesASkippedServerHasItTriedOnceAMinute(t *testing.T) {
	w := newWorld(t)
	w.frozen = time.Now()
	launches := w.program("broken", dead)
	for range 3 {
		r := w.start()
		r.awaitOutcome("broken")
		r.stop()
	}
	r := w.start()
	r.awaitState("broken", projections.StateSkipped)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if out, _ := r.tryCall("broken", "echo", `{}`, 0); out.Failure == nil || out.Failure.Code != discovery.CodeSkipped || out.Failure.Since.IsZero() {
				t.Errorf("while it is broken: %s", told(out))
			}
		})
	}
	all.Wait()
	wantLaunches(t, launches, 4, "eight calls at once")
	again, until := r.call("broken", "echo", `{}`).Failure.RetryAfter, r.server("broken").NextAttempt
	wantLaunches(t, launches, 4, "another within the minute")
	if want := until.Sub(w.now()); want <= 0 || again != want {
		t.Errorf("it says to try again in %s, and the skip ends in %s", again, want)
	}
	if got := r.recorded("broken", events.TypeToolCallRefused); len(got) != 9 {
		t.Errorf("%d refusals recorded, want 9", len(got))
	}
	w.ahead.Add(int64(20 * time.Second))
	refused, err := r.Retry(t.Context(), "broken")
	if err != nil || refused == nil || refused.Code != discovery.CodeBusy || refused.RetryAfter != 40*time.Second {
		t.Errorf("an agent's wish 20 s after the attempt: %+v, %v; want it busy for 40 s", refused, err)
	}
	w.ahead.Add(int64(40 * time.Second))
	r.call("broken", "echo", `{}`)
	wantLaunches(t, launches, 5, "a minute later")
}

func TestTheBrakeHoldsOneCallerOneToolAndTheSameArguments(t *testing.T) {
	w := newWorld(t)
	w.frozen = time.Now()
	w.program("city", mcptest.Fake{})
	r := w.start()
	r.awaitState("city", projections.StateReady)
	for range 10 {
		if out := r.call("city", "fail", `{"city":"Atlantis","n":1}`); out.Failure.Code != discovery.CodeToolError {
			t.Fatal(told(out))
		}
	}
	out := r.call("city", "fail", `{"n":1, "city":"Atlantis"}`)
	if out.Outcome != projections.OutcomeRefused || out.Failure.Code != discovery.CodeBraked ||
		!strings.Contains(out.Failure.Detail, "no such city") || out.Failure.RetryAfter <= 0 {
		t.Fatalf("the eleventh: %s", told(out))
	}
	if out := r.call("city", "fail", `{"city":"Ys"}`); out.Failure.Code != discovery.CodeToolError {
		t.Errorf("other arguments: %s", told(out))
	}
	r.wantCall("city", "echo")
	other, err := r.Call(t.Context(), discovery.Call{Server: "city", Tool: "fail", Arguments: []byte(`{"city":"Atlantis","n":1}`), Caller: "another"})
	if err != nil || other.Failure.Code != discovery.CodeToolError {
		t.Errorf("another caller: %v %s", err, told(other))
	}
	w.ahead.Add(int64(time.Minute))
	if out := r.call("city", "fail", `{"city":"Atlantis","n":1}`); out.Failure.Code != discovery.CodeToolError {
		t.Errorf("a minute later: %s", told(out))
	}
	if out := r.call("city", "fail", `{"city":"Atlantis","n":1}`); out.Failure.Code != discovery.CodeBraked {
		t.Errorf("and at once again: %s", told(out))
	}
}

// What a server says reaches its own evidence, masked and bounded, and no log line, no
// reason and no other server's record.
func TestServerTextIsMaskedBoundedAndStaysWhereItBelongs(t *testing.T) {
	const secret, marker = "hush-4c1d9e7b2a", "EVIL-MARKER"
	w := newWorld(t)
	text := marker + " " + secret + "\r\n\x1b[31mfake log line " + strings.Repeat("x", 100_000)
	remote := newBadServer(t, mcptest.HTTP{}, "tools/call", status(401, text, "WWW-Authenticate", `Bearer realm="`+secret+`", scope="`+secret+`"`))
	broken := newBadServer(t, mcptest.HTTP{}, "tools/call", status(500, text))
	for name, server := range map[string]*badServer{"remote": remote, "broken": broken} {
		w.entries[name] = map[string]any{"url": server.url, "headers": map[string]string{"X-Api-Key": secret}}
	}
	w.program("neighbour", mcptest.Fake{})
	r := w.start()
	for name := range w.entries {
		r.awaitState(events.ServerName(name), projections.StateReady)
	}
	remote.armed.Store(true)
	broken.armed.Store(true)
	r.call("remote", victim, `{}`)
	r.call("broken", victim, `{}`)
	r.call("remote", "echo", `{}`)
	r.wantCall("neighbour", "echo")

	for _, e := range r.recorded("") {
		raw := string(e.Raw)
		if strings.Contains(raw, secret) || strings.Contains(raw, "\x1b") || len(raw) > 16<<10 {
			t.Errorf("%s of %s holds %d bytes: %.300q", e.Type, e.Subject, len(raw), raw)
		}
		if strings.Contains(raw, marker) && e.Subject != "remote" && e.Subject != "broken" {
			t.Errorf("%s of %q repeats what another server said", e.Type, e.Subject)
		}
	}
	for name := range w.entries {
		if v := r.server(events.ServerName(name)); strings.Contains(v.Reason, secret) || len(v.Reason) > 1000 {
			t.Errorf("reason of %s: %q", name, v.Reason)
		}
	}
	if said := w.logged.String(); strings.Contains(said, secret) || strings.Contains(said, "\x1b") || strings.Contains(said, strings.Repeat("x", 300)) {
		t.Errorf("log lines: %s", said)
	}
}
