package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery"
	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/httpapi"
)

func TestAPersonCanHaveAServerAttemptedNow(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.skip("weather")
	w.discovery.outcome = events.DiscoverySucceeded{ProtocolVersion: "2025-11-25"}
	a := w.operate(http.MethodPost, "/api/servers/weather/discover?wait=true", `{"reason":"fixed it"}`).is(http.StatusOK)
	want(t, "outcome", a.at("outcome"), "succeeded")
	want(t, "state", a.at("state"), "ready")
	event := w.get("/api/events/" + a.at("event_id").(string)).is(http.StatusOK)
	want(t, "run", event.at("run_id"), a.at("run_id").(string))

	w.discovery.outcome = missingModule
	a = w.operate(http.MethodPost, "/api/servers/weather/discover?wait=true", "").is(http.StatusOK)
	want(t, "outcome", a.at("outcome"), "failed")
	want(t, "class", a.at("class"), "dependency")

	w.discovery.outcome = nil
	a = w.operate(http.MethodPost, "/api/servers/weather/discover", "").is(http.StatusAccepted)
	want(t, "run", a.at("run_id"), "run-open")
}

// thenElse is a discovery after whose runs something else happens, before anybody
// that waits for them is told.
type thenElse struct {
	*discoveryStub
	happens func()
}

func (d thenElse) Discover(ctx context.Context, servers []events.ServerName, reason, actor string) (discovery.Begun, error) {
	defer d.happens()
	return d.discoveryStub.Discover(ctx, servers, reason, actor)
}

func TestWhoWaitsIsToldOfTheAttemptThatWasAskedFor(t *testing.T) {
	var w *world
	w = newWorld(t, func(c *httpapi.Config) {
		c.Discovery = thenElse{c.Discovery.(*discoveryStub), func() { w.succeed("weather", weatherTools) }}
	})
	w.configure("weather")
	w.discovery.outcome = missingModule
	a := w.operate(http.MethodPost, "/api/servers/weather/discover?wait=true", "").is(http.StatusOK)
	want(t, "outcome", a.at("outcome"), "failed")
	want(t, "class", a.at("class"), "dependency")
	failed := w.get("/api/servers/weather/history?outcome=failed").names("id", "items")
	want(t, "event", a.at("event_id"), failed[0])
}

func TestAnAttemptWithoutARecordHasNoOutcomeToTell(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.succeed("weather", weatherTools)                        // which is not what is asked for
	w.discovery.outcome = events.SessionOpened{Generation: 1} // and no outcome
	w.operate(http.MethodPost, "/api/servers/weather/discover?wait=true", "").refused(http.StatusServiceUnavailable, "log_unavailable")
}

func TestWaitingForAnAttemptEndsWithTheRequest(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	ctx, gone := context.WithCancel(t.Context())
	gone()
	withContext := func(r *http.Request) { *r = *r.WithContext(ctx) }
	w.operate(http.MethodPost, "/api/servers/weather/discover?wait=true", "", withContext).refused(http.StatusServiceUnavailable, "cancelled")
}

func TestAServerThatCannotBeAttemptedIsAConflict(t *testing.T) {
	w := newWorld(t)
	w.configure("off", func(d *events.ServerConfigured) { d.Disabled = true })
	w.configure("keyless", func(d *events.ServerConfigured) {
		d.Problem = &events.EntryProblem{Code: events.ProblemVariableUnset, Detail: "API_KEY is not set"}
	})
	w.configure("weather")
	w.operate(http.MethodPost, "/api/servers/off/discover", "").refused(http.StatusConflict, "server_disabled")
	w.operate(http.MethodPost, "/api/servers/keyless/discover", "").refused(http.StatusConflict, "server_blocked")
	for err, code := range map[error]string{discovery.ErrDisabled: "server_disabled", discovery.ErrBlocked: "server_blocked"} {
		w.discovery.err = err
		w.operate(http.MethodPost, "/api/servers/weather/discover", "").refused(http.StatusConflict, code)
	}
	w.discovery.err = discovery.ErrStopping
	w.operate(http.MethodPost, "/api/servers/weather/discover", "").refused(http.StatusServiceUnavailable, "stopping")
}

func TestManyServersCanBeAttemptedAtOnce(t *testing.T) {
	for body, c := range map[string]struct {
		matched, queued float64
		asked           []events.ServerName
	}{
		``:                                       {4, 2, []events.ServerName{"broken", "weather"}},
		`{}`:                                     {4, 2, []events.ServerName{"broken", "weather"}},
		`{"force":true}`:                         {4, 3, []events.ServerName{"broken", "skipped", "weather"}},
		`{"state":"skipped"}`:                    {1, 0, nil},
		`{"state":"skipped","force":true}`:       {1, 1, []events.ServerName{"skipped"}},
		`{"servers":["weather","off"]}`:          {2, 1, []events.ServerName{"weather"}},
		`{"class":"dependency"}`:                 {2, 1, []events.ServerName{"broken"}},
		`{"state":"","class":""}`:                {4, 2, []events.ServerName{"broken", "weather"}},
		`{"class":"auth"}`:                       {0, 0, nil},
		`{"signature":"s_none","reason":"none"}`: {0, 0, nil},
	} {
		t.Run(body, func(t *testing.T) {
			w := newWorld(t)
			w.configure("off", func(d *events.ServerConfigured) { d.Disabled = true })
			w.configure("broken")
			w.fail("broken")
			w.configure("weather")
			w.configure("skipped")
			w.skip("skipped")
			a := w.operate(http.MethodPost, "/api/discover", body).is(http.StatusAccepted)
			want(t, "matched", a.at("matched"), c.matched)
			want(t, "queued", a.at("queued"), c.queued)
			want(t, "run", a.at("run_id") != "", c.asked != nil)
			if diff := cmp.Diff(c.asked, w.discovery.asked); diff != "" {
				t.Errorf("attempted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoJoinsRunsOfOthersIsToldWhich(t *testing.T) {
	w := newWorld(t)
	for _, name := range []events.ServerName{"one", "two", "three"} {
		w.configure(name)
	}
	w.discovery.joined = map[events.ServerName]string{"two": "run-a", "one": "run-b"}
	a := w.operate(http.MethodPost, "/api/discover", "").is(http.StatusAccepted)
	want(t, "queued", a.at("queued"), 3.0)
	for member, wanted := range map[string][]string{"server": {"one", "two"}, "run_id": {"run-b", "run-a"}} {
		if diff := cmp.Diff(wanted, a.names(member, "joined")); diff != "" {
			t.Errorf("joined (-want +got):\n%s", diff)
		}
	}
}

func TestAServerCanBeSetAsideAndTakenBack(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	a := w.operate(http.MethodPut, "/api/servers/weather/skip", `{"reason":"noisy","until":"2026-03-04T14:00:00+01:00"}`).is(http.StatusOK)
	want(t, "state", a.at("state"), "skipped")
	want(t, "until", a.at("skip", "until"), "2026-03-04T13:00:00.000Z")
	want(t, "needs", a.at("needs"), "operator")
	a = w.operate(http.MethodDelete, "/api/servers/weather/skip", "").is(http.StatusOK)
	want(t, "state", a.at("state"), "discovering")
	a = w.operate(http.MethodPut, "/api/servers/weather/skip", `{}`).is(http.StatusOK)
	want(t, "until", a.at("skip", "until"), any(nil))
}

func TestTheReasonOfAClearIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	for path, reason := range map[string]string{
		"/api/servers/weather/skip?reason=mended": "mended", "/api/servers/weather/skip": "by request",
		"/api/skips?reason=the+proxy+is+back": "the proxy is back", "/api/skips": "by request",
	} {
		w.append("weather", events.SkipPinned{})
		w.operate(http.MethodDelete, path, "").is(http.StatusOK)
		want(t, "reason of "+path, w.get("/api/events?order=desc&limit=1").at("items", 0, "data", "reason"), reason)
	}
	w.operate(http.MethodDelete, "/api/skips?reason="+strings.Repeat("x", 1001), "").refused(http.StatusBadRequest, "invalid_parameter")
}

func TestClearingWhatIsNotThereWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.configure("failing")
	w.fail("failing")
	before := w.head()
	a := w.operate(http.MethodDelete, "/api/servers/weather/skip", "").is(http.StatusOK)
	want(t, "server", a.at("name"), "weather")
	w.operate(http.MethodDelete, "/api/skips", "").is(http.StatusOK)
	want(t, "head", w.head(), before)

	a = w.operate(http.MethodDelete, "/api/servers/failing/skip", "").is(http.StatusOK)
	want(t, "streak", a.at("streak"), any(nil))
	want(t, "head after a streak was ended", w.head(), before+1)
	w.operate(http.MethodDelete, "/api/servers/failing/skip", "").is(http.StatusOK)
	want(t, "head after ending it again", w.head(), before+1)
}

func TestSkipsCanBeClearedTogether(t *testing.T) {
	for query, wanted := range map[string][]any{
		"":                  {"one", "pinned", "two"},
		"?class=dependency": {"one", "two"},
		"?class=auth":       {},
		"?signature=s_none": {},
	} {
		t.Run(query, func(t *testing.T) {
			w := newWorld(t)
			for _, s := range []events.ServerName{"one", "two"} {
				w.configure(s)
				w.skip(s)
			}
			w.configure("pinned")
			w.append("pinned", events.SkipPinned{})
			w.configure("weather")
			a := w.operate(http.MethodDelete, "/api/skips"+query, "").is(http.StatusOK)
			if diff := cmp.Diff(wanted, a.at("cleared").([]any)); diff != "" {
				t.Errorf("cleared (-want +got):\n%s", diff)
			}
			want(t, "left", len(w.get("/api/skips").at("items").([]any)), 3-len(wanted))
		})
	}
}

func TestAReloadTellsWhatChanged(t *testing.T) {
	w := newWorld(t)
	w.configure("a")
	w.configure("b")
	w.discovery.reloaded = discovery.Reloaded{
		Changes: map[events.ServerName]events.Change{
			"z": events.ChangeAdded, "y": events.ChangeAdded, "a": events.ChangeKey, "b": "", "c": events.ChangeSettings,
		},
		Removed: []events.ServerName{"r", "q"},
		Faults:  []events.ConfigProblem{{File: "mcp.json", Line: 4, Column: 2, Server: "c", Detail: "unknown type"}},
	}
	a := w.operate(http.MethodPost, "/api/config/reload", "").is(http.StatusOK)
	for member, wanted := range map[string][]any{"added": {"y", "z"}, "changed": {"a", "c"}, "removed": {"q", "r"}} {
		if diff := cmp.Diff(wanted, a.at(member).([]any)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", member, diff)
		}
	}
	want(t, "unchanged", a.at("unchanged"), 1.0)
	want(t, "place of the fault", a.at("errors", 0, "line"), 4.0)

	w.discovery.err = &config.ProblemError{Problems: []events.ConfigProblem{{File: "mcp.json", Line: 1, Detail: "unexpected }"}}}
	a = w.operate(http.MethodPost, "/api/config/reload", "").is(http.StatusOK)
	want(t, "unchanged by an unusable file", a.at("unchanged"), 2.0)
	want(t, "what is wrong", a.at("errors", 0, "detail"), "unexpected }")
}

func TestRunsAreToldFromTheLog(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	failed, _ := w.attempt("weather", events.TriggerStartup, missingModule)
	w.clock.advance(time.Minute)
	w.runEvent("cut", events.DiscoveryRunStarted{Trigger: events.TriggerRetry, Servers: []events.ServerName{"weather"}})
	w.appendAbout("weather", about{run: "cut", attempt: "x"}, events.DiscoveryStarted{Attempt: 1})
	w.append("", events.ServiceStarted{Instance: instance})
	w.runEvent("open", events.DiscoveryRunStarted{Trigger: events.TriggerStartup, Servers: []events.ServerName{"weather", "other"}})
	w.appendAbout("weather", about{run: "open", attempt: "y"}, events.DiscoveryStarted{Attempt: 1})

	a := w.get("/api/runs").is(http.StatusOK)
	if diff := cmp.Diff([]string{"open", "cut", failed}, a.names("run_id", "items")); diff != "" {
		t.Errorf("newest first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"running", "interrupted", "completed"}, a.names("status", "items")); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	one := w.get("/api/runs/" + failed).is(http.StatusOK)
	want(t, "outcome", one.at("servers", 0, "status"), "failed")
	want(t, "class", one.at("servers", 0, "class"), "dependency")
	want(t, "attempts", one.at("servers", 0, "attempts"), 1.0)
	want(t, "finished", one.at("finished"), 1.0)
	want(t, "duration", one.at("duration_ms"), 250.0)
	open := w.get("/api/runs/open").is(http.StatusOK)
	want(t, "planned", open.at("planned"), 2.0)
	want(t, "finished", open.at("finished"), 0.0)
	if diff := cmp.Diff([]string{"running", "planned"}, open.names("status", "servers")); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	first := w.get("/api/runs?limit=1").is(http.StatusOK)
	second := w.get("/api/runs?limit=1&cursor=" + first.at("next_cursor").(string)).is(http.StatusOK)
	want(t, "second page", second.at("items", 0, "run_id"), "cut")
}

func TestAVerdictAndTheRulesBehindIt(t *testing.T) {
	w := newWorld(t)
	a := w.ask(http.MethodPost, "/api/classify", `{"evidence":{"error":"transport closed","stderr_tail":"ModuleNotFoundError: No module named 'x'"}}`).is(http.StatusOK)
	want(t, "class", a.at("class"), "dependency")
	want(t, "policy", a.at("skip_policy", "after"), 3.0)
	want(t, "gate", a.at("gates"), "")
	w.ask(http.MethodPost, "/api/classify", `{}`).is(http.StatusOK)
	rules := w.get("/api/rules").is(http.StatusOK)
	want(t, "active", rules.at("active", "set"), "default")
	if !contains(w.get("/api/rules?format=yaml").is(http.StatusOK).body, a.at("rule").(string)) {
		t.Errorf("rule %v is not in the text", a.at("rule"))
	}
	want(t, "shadow", rules.at("shadow"), any(nil))
	w.must(w.engine.Shadow(t.Context(), w.engine.Rules()))
	want(t, "shadow", w.get("/api/rules").is(http.StatusOK).at("shadow", "set"), "default")
	sets := w.get("/api/rules/sets").is(http.StatusOK)
	for i, name := range sets.names("set", "items") {
		want(t, name+" is active", sets.at("items", i, "active"), name == "default")
	}
}
