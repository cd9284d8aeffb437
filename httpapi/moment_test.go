package httpapi_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

func TestAPastMomentIsAnsweredAsItWasThen(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.succeed("weather", weatherTools)
	ready := w.head()
	w.skip("weather")
	skipped := w.head()
	w.clock.advance(3 * time.Hour)
	w.configure("later")

	want(t, "at a sequence", w.get("/api/servers/weather?at="+itoa(ready)).at("state"), "ready")
	want(t, "at a sequence within the skip", w.get("/api/servers/weather?at="+itoa(skipped)).at("state"), "skipped")
	want(t, "at a time before the skip", w.get("/api/servers/weather?at=2026-03-04T12:01:00Z").at("state"), "ready")
	want(t, "at a time when the skip had ended", w.get("/api/servers/weather?at=2026-03-04T13:30:00Z").at("state"), "unreachable")
	want(t, "in another zone", w.get("/api/servers/weather?at="+url.QueryEscape("2026-03-04T13:20:00+01:00")).at("state"), "skipped")
	want(t, "tools then", len(w.get("/api/tools?at="+itoa(ready)).at().([]any)), 1)
	want(t, "tools now", len(w.get("/api/tools").at().([]any)), 2)
	a := w.get("/api/servers?at=" + itoa(ready))
	want(t, "answered from", a.header.Get("Ledger-Sequence"), itoa(ready))
	want(t, "events then", len(w.get("/api/events?limit=1000&at="+itoa(ready)).at("items").([]any)), int(ready))
	want(t, "before the first event", len(w.get("/api/tools?at=2020-01-01T00:00:00Z").at().([]any)), 0)
	w.get("/api/servers/later?at="+itoa(ready)).refused(http.StatusNotFound, "server_not_found")
	w.get("/api/servers/later/history?at="+itoa(ready)).refused(http.StatusNotFound, "server_not_found")
}

// A set that gates on any failure of a call sees another past in the same log.
func TestOtherRulesJudgeTheSameEventsAnew(t *testing.T) {
	const other = "any-failure-gates"
	w := newWorld(t)
	w.configure("weather")
	w.fail("weather")
	set, err := rules.Builtin(other)
	w.must(err)
	verdict := set.Classify(missingModule.Evidence)
	a := w.get("/api/servers/weather/why?rules=" + other).is(http.StatusOK)
	want(t, "set", a.at("rule", "set"), set.Name())
	want(t, "rule", a.at("rule", "id"), verdict.Rule)
	want(t, "history", w.get("/api/servers/weather/history?rules="+other).at("items", 0, "classification", "rule"), verdict.Rule)
	want(t, "classify", w.ask(http.MethodPost, "/api/classify?rules="+other, `{"evidence":{}}`).is(http.StatusOK).at("class"),
		string(set.Classify(events.Evidence{}).Class))
	want(t, "rules", w.get("/api/rules?rules="+other).at("active", "set"), set.Name())
	want(t, "active name", w.get("/api/servers/weather/why?rules=default").at("rule", "set"), "default")
}

func TestADiffNamesWhatChangedBetweenTwoMoments(t *testing.T) {
	w := newWorld(t)
	for _, s := range []events.ServerName{"gone", "same", "tooled", "skipped"} {
		w.configure(s)
		w.succeed(s, weatherTools)
	}
	from := w.head()
	w.append("gone", events.ServerRemoved{})
	w.configure("new")
	w.succeed("tooled", `[{"name":"other","inputSchema":{}}]`)
	w.skip("skipped")
	a := w.get("/api/diff?from=" + itoa(from)).is(http.StatusOK)
	got := map[string][]any{}
	for i, name := range a.names("server", "items") {
		got[name] = a.at("items", i, "changed").([]any)
	}
	if diff := cmp.Diff(map[string][]any{
		"gone": {"removed"}, "new": {"added"}, "tooled": {"catalogue"}, "skipped": {"state", "skip"},
	}, got); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	want(t, "to", a.at("to"), float64(w.head()))
	first := w.get("/api/diff?limit=3&from=" + itoa(from)).is(http.StatusOK)
	rest := w.get("/api/diff?limit=3&from=" + itoa(from) + "&cursor=" + first.at("next_cursor").(string)).is(http.StatusOK)
	if diff := cmp.Diff(a.names("server", "items"), append(first.names("server", "items"), rest.names("server", "items")...)); diff != "" {
		t.Errorf("pages against the whole (-whole +pages):\n%s", diff)
	}
	back := w.get("/api/diff?from=" + itoa(from) + "&to=" + itoa(from)).is(http.StatusOK)
	want(t, "differences of a moment from itself", len(back.at("items").([]any)), 0)
}
