package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
)

func TestHistoryShowsWhatWasSeenAndWhatTheRulesMakeOfIt(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.fail("weather")
	w.configure("other")
	a := w.get("/api/servers/weather/history").is(http.StatusOK)
	types := []string{"discovery.failed", "discovery.started", "server.configured"}
	if diff := cmp.Diff(types, a.names("type", "items")); diff != "" {
		t.Errorf("newest first (-want +got):\n%s", diff)
	}
	want(t, "class", a.at("items", 0, "classification", "class"), "dependency")
	want(t, "error as seen", a.at("items", 0, "data", "evidence", "error"), "transport closed")
	want(t, "classification of a start", a.at("items", 1, "classification"), any(nil))
	oldest := w.get("/api/servers/weather/history?order=asc&limit=1").is(http.StatusOK)
	want(t, "oldest", oldest.at("items", 0, "type"), "server.configured")
}

func TestHistoryCanBeFiltered(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.fail("weather")
	w.succeed("weather", weatherTools)
	w.clock.advance(time.Hour)
	w.append("weather", events.ToolCallFailed{Tool: "forecast", Evidence: events.Evidence{Phase: events.PhaseCallTool, HTTPStatus: 401}})
	w.append("weather", events.ToolCallRefused{Tool: "forecast", Reason: "gate"})
	for query, wanted := range map[string][]string{
		"outcome=failed":                       {"toolcall.failed", "discovery.failed"},
		"outcome=refused":                      {"toolcall.refused"},
		"outcome=failed&type=discovery.failed": {"discovery.failed"},
		"outcome=failed&type=skip.pinned":      {},
		"type=catalogue.changed":               {"catalogue.changed"},
		"class=dependency":                     {"discovery.failed"},
		"class=auth":                           {"toolcall.failed"},
		"class=timeout":                        {},
		"since=2026-03-04T13:00:00Z":           {"toolcall.refused", "toolcall.failed"},
		"until=2026-03-04T12:00:01Z":           {"server.configured"},
	} {
		t.Run(query, func(t *testing.T) {
			a := w.get("/api/servers/weather/history?" + query).is(http.StatusOK)
			if diff := cmp.Diff(wanted, a.names("type", "items")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPagesOfEventsJoinToTheWholeWhileMoreAreAppended(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.skip("weather")
	for _, path := range []string{
		"/api/events?limit=3", "/api/events?limit=3&order=desc", "/api/events?limit=1&class=dependency",
		"/api/servers/weather/history?limit=2", "/api/servers/weather/history?limit=2&order=asc",
	} {
		at := "&at=" + itoa(w.head())
		whole := w.get(strings.Replace(path, "limit="+path[strings.Index(path, "limit=")+6:][:1], "limit=1000", 1)+at).names("id", "items")
		var all []string
		for next := ""; ; {
			a := w.get(path + at + next).is(http.StatusOK)
			all = append(all, a.names("id", "items")...)
			cursor, more := a.at("next_cursor").(string)
			if !more {
				break
			}
			next = "&cursor=" + cursor
			w.append("weather", events.SkipCleared{Reason: "meanwhile"})
		}
		if diff := cmp.Diff(whole, all); diff != "" {
			t.Errorf("%s: pages against the whole (-whole +pages):\n%s", path, diff)
		}
	}
}

func TestAnEventIsShownWithItsLongTexts(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	long := missingModule
	long.Evidence.StderrTail = strings.Repeat("a line of stderr\n", 100) + long.Evidence.StderrTail
	_, ids := w.attempt("weather", events.TriggerStartup, long)
	a := w.get("/api/events/" + ids[0]).is(http.StatusOK)
	want(t, "stderr", a.at("data", "evidence", "stderr_tail"), long.Evidence.StderrTail)
	want(t, "class", a.at("classification", "class"), "dependency")
	w.get("/api/events/nothing").refused(http.StatusNotFound, "event_not_found")
	w.get("/api/events/"+ids[0]+"?at=1").refused(http.StatusNotFound, "event_not_found")
}

func TestTimesHaveMillisecondsAndKeepNanoseconds(t *testing.T) {
	w := newWorld(t)
	w.configure("whole")
	want(t, "whole second", w.get("/api/servers/whole/history").at("items", 0, "time"), "2026-03-04T12:00:00.000Z")
	w.clock.advance(123456789)
	w.configure("fine")
	want(t, "nanoseconds", w.get("/api/servers/fine/history").at("items", 0, "time"), "2026-03-04T12:00:00.123456789Z")
}

func TestEventsComeInTheFormAskedForMost(t *testing.T) {
	w := newWorld(t)
	const page, batch, lines = "application/json", "application/cloudevents-batch+json", "application/x-ndjson"
	for accept, form := range map[string]string{
		"":                               page,
		"*/*":                            page,
		"text/html, application/*;q=0.9": page,
		lines:                            lines,
		"Application/X-NDJSON; q=0.9":    lines,
		batch + ", " + page:              batch,
		page + ", " + lines + ";q=0.1":   page,
		lines + ";q=0":                   page,
		lines + ";q=much, " + batch:      batch,
		page + ";q=0.2," + batch + ";q=0.5," + lines + ";q=0.8": lines,
	} {
		a := w.get("/api/events", header("Accept", accept)).is(http.StatusOK)
		want(t, "for Accept: "+accept, a.header.Get("Content-Type"), form)
	}
}

func TestEventsAsCloudEvents(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.fail("weather")
	a := w.get("/api/events?limit=3", header("Accept", "application/cloudevents-batch+json")).is(http.StatusOK)
	want(t, "media type", a.header.Get("Content-Type"), "application/cloudevents-batch+json")
	want(t, "specversion", a.at(0, "specversion"), "1.0")
	want(t, "sequence", a.at(2, "sequence"), "3")
	want(t, "config key", a.at(2, "configkey"), string(keyOf("weather")))
	next, _, _ := strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "<"), ">")
	more := w.get(next, header("Accept", "application/cloudevents-batch+json")).is(http.StatusOK)
	want(t, "first of the next page", more.at(0, "sequence"), "4")
}

func TestEventsAsLines(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.skip("weather")
	lines := func(path string) (ids []string) {
		a := w.get(path, header("Accept", "application/x-ndjson")).is(http.StatusOK)
		want(t, "media type", a.header.Get("Content-Type"), "application/x-ndjson")
		in := bufio.NewScanner(bytes.NewReader(a.body))
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			var e struct{ ID string }
			w.must(json.Unmarshal(in.Bytes(), &e))
			ids = append(ids, e.ID)
		}
		return ids
	}
	if diff := cmp.Diff(w.get("/api/events?limit=1000").names("id", "items"), lines("/api/events")); diff != "" {
		t.Errorf("lines against the list (-list +lines):\n%s", diff)
	}
	want(t, "failures", len(lines("/api/events?class=dependency")), 3)
	want(t, "first two", len(lines("/api/events?limit=2")), 2)
	want(t, "after", lines("/api/events?after=3&limit=1")[0], w.get("/api/events?after=3&limit=1").at("items", 0, "id").(string))
	w.get("/api/events?cursor=x", header("Accept", "application/x-ndjson")).refused(http.StatusBadRequest, "invalid_cursor")
}

func TestWhyNamesTheRuleAndTheEventsBehindASkip(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	var ids []string
	for range 3 {
		ids = append(ids, w.fail("weather"))
	}
	a := w.get("/api/servers/weather/why").is(http.StatusOK)
	want(t, "state", a.at("state"), "skipped")
	want(t, "decision", a.at("decision"), "skip")
	want(t, "summary is the reason", a.at("summary"), w.get("/api/servers/weather").at("state_reason").(string))
	want(t, "class", a.at("rule", "class"), "dependency")
	want(t, "set", a.at("rule", "set"), "default")
	want(t, "policy", a.at("rule", "policy", "after"), 3.0)
	want(t, "policy for any mix", a.at("rule", "any_failures", "after"), 20.0)
	want(t, "as of", a.at("as_of"), "2026-03-04T12:15:00.000Z")
	if diff := cmp.Diff(ids, a.names("event_id", "chain")); diff != "" {
		t.Errorf("chain (-want +got):\n%s", diff)
	}
	want(t, "last note", a.at("chain", 2, "note"), "3 of 3")
	want(t, "evidence", a.at("chain", 2, "evidence", "exit_code"), 1.0)
	want(t, "first clearing", a.at("clears_on", 0, "what"), "expiry")
	want(t, "its time", a.at("clears_on", 0, "at"), "2026-03-04T13:15:00.000Z")
}

func TestWhyNamesRequestsThatCanBeMade(t *testing.T) {
	w := newWorld(t)
	w.configure("my/server")
	w.append("my/server", events.SkipPinned{Reason: "moving house"})
	method, path, _ := strings.Cut(w.get("/api/servers/my%2Fserver/why").is(http.StatusOK).at("clears_on", 0, "detail").(string), " ")
	w.ask(method, path, "", bearer(w.operator)).is(http.StatusOK)
}

func TestWhyExpiresNothingWhereNothingIsSkipped(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.fail("weather")
	a := w.get("/api/servers/weather/why").is(http.StatusOK)
	want(t, "state", a.at("state"), "failed")
	if diff := cmp.Diff([]string{"successful_check", "config_change", "manual"}, a.names("what", "clears_on")); diff != "" {
		t.Errorf("what changes it (-want +got):\n%s", diff)
	}
	want(t, "when it is checked", a.at("clears_on", 0, "at"), a.at("next_attempt_at").(string))
}

func TestWhyShowsThePolicyOfWhatWasFoundUnfinished(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	for range 4 {
		w.attempt("weather", events.TriggerStartup, events.DiscoveryAbandoned{})
	}
	a := w.get("/api/servers/weather/why").is(http.StatusOK)
	want(t, "state", a.at("state"), "skipped")
	want(t, "rule", a.at("rule", "id"), "abandoned")
	want(t, "policy", a.at("rule", "policy", "after"), 3.0)
	want(t, "reference", a.at("rule", "reference"), "docs/reference/rules.md#abandoned")
}

func TestWhyShowsThePolicyThatMadeTheSkip(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	for i := range 20 {
		w.clock.advance(90 * time.Minute)
		failed := missingModule
		failed.Evidence.StderrTail = "ModuleNotFoundError: No module named '" + string(rune('a'+i)) + "bc'\n"
		w.attempt("weather", events.TriggerRetry, failed)
	}
	a := w.get("/api/servers/weather/why").is(http.StatusOK)
	want(t, "reason", w.get("/api/servers/weather").at("skip", "reason"), "any_failures")
	want(t, "rule", a.at("rule", "id"), "python-module-missing")
	want(t, "after", a.at("rule", "policy", "after"), 20.0)
	want(t, "for", a.at("rule", "policy", "ttl_ms", 0), float64((6 * time.Hour).Milliseconds()))
}

func TestWhyShowsWhatGatedAndWhoPinned(t *testing.T) {
	w := newWorld(t)
	w.configure("remote", func(d *events.ServerConfigured) { d.Transport = events.TransportHTTP })
	w.succeed("remote", weatherTools)
	gate := w.appendAbout("remote", about{call: "call-1"}, events.ToolCallStarted{Tool: "forecast"}, events.ToolCallFailed{
		Tool: "forecast", Dispatched: true,
		Evidence: events.Evidence{Phase: events.PhaseCallTool, Transport: events.TransportHTTP, ErrorKind: events.KindHTTPStatus, HTTPStatus: 401},
	})
	a := w.get("/api/servers/remote/why").is(http.StatusOK)
	want(t, "state", a.at("state"), "blocked")
	want(t, "gating event", a.at("chain", 0, "event_id"), gate[1])
	want(t, "clears on", a.at("clears_on", 0, "what"), "successful_check")
	w.configure("weather")
	pin := w.append("weather", events.SkipPinned{Reason: "moving house"})
	a = w.get("/api/servers/weather/why").is(http.StatusOK)
	want(t, "pinning event", a.at("chain", 0, "event_id"), pin[0])
	want(t, "rule of a pin", a.at("rule"), any(nil))
	want(t, "note", w.get("/api/servers/weather").at("skip", "note"), "moving house")
}
