package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery"
	"mcpledger/events"
)

func TestEveryConfiguredServerIsListedWithItsState(t *testing.T) {
	w := newWorld(t)
	w.configure("waiting")
	w.configure("off", func(d *events.ServerConfigured) { d.Disabled = true })
	w.configure("keyless", func(d *events.ServerConfigured) {
		d.Problem = &events.EntryProblem{Code: events.ProblemVariableUnset, Detail: "API_KEY is not set", Names: []string{"API_KEY"}}
	})
	w.configure("weather")
	w.succeed("weather", weatherTools)
	w.configure("broken")
	w.fail("broken")
	w.configure("skipped")
	w.skip("skipped")
	w.configure("stale")
	w.succeed("stale", weatherTools)
	w.fail("stale")

	states := map[string]string{
		"broken": "failed", "keyless": "blocked", "off": "disabled", "skipped": "skipped",
		"stale": "unreachable", "waiting": "discovering", "weather": "ready",
	}
	statuses := map[string]string{
		"broken": "error", "keyless": "error", "off": "error", "skipped": "error",
		"stale": "ok", "waiting": "loading", "weather": "ok",
	}
	var tools []struct {
		Name, Server, Status, Error, State string
		Reason                             string   `json:"state_reason"`
		Tools                              int      `json:"toolsEnabled"`
		Names                              []string `json:"function_names"`
	}
	w.get("/api/tools").is(http.StatusOK).into(&tools)
	gotStates, gotStatuses := map[string]string{}, map[string]string{}
	for _, s := range tools {
		gotStates[s.Name], gotStatuses[s.Name] = s.State, s.Status
		if s.Server != s.Name || s.Reason == "" || len(s.Names) != s.Tools {
			t.Errorf("%s: server %q, reason %q, %d tools but the names %v", s.Name, s.Server, s.Reason, s.Tools, s.Names)
		}
		if (s.Status == "ok") != (s.Tools == 2) {
			t.Errorf("%s is %s with %d tools", s.Name, s.Status, s.Tools)
		}
		if (s.Status == "error") != (s.Error == s.Reason) {
			t.Errorf("%s is %s: error %q, reason %q", s.Name, s.Status, s.Error, s.Reason)
		}
	}
	if diff := cmp.Diff(states, gotStates); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(statuses, gotStatuses); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	byName := []string{"broken", "keyless", "off", "skipped", "stale", "waiting", "weather"}
	for _, list := range []string{"/api/servers", "/api/health"} {
		a := w.get(list).is(http.StatusOK)
		member := map[string]string{"/api/servers": "name", "/api/health": "server"}[list]
		if diff := cmp.Diff(byName, a.names(member, "items")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", list, diff)
		}
	}
}

func TestToolsKeepTheSchemaAsItWasSent(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.succeed("weather", weatherTools)
	a := w.get("/api/tools").is(http.StatusOK)
	schema := `"input_schema":{"type":"object","$schema":"http://json-schema.org/draft-07/schema#",` +
		`"properties":{"city":{"type":"string"},"id":{"const":9007199254740993}},"required":["city"],"x-order":["city"]}`
	if !contains(a.body, schema) {
		t.Errorf("want the bytes %s in\n%s", schema, a.body)
	}
	if !contains(a.body, `"parameters":{"city":{"type":"string"},"id":{"const":9007199254740993}},"required":["city"]`) {
		t.Errorf("want the schema's properties as parameters in\n%s", a.body)
	}
	want(t, "description", a.at(0, "tools", 0, "description"), "Tells <tomorrow>")
	want(t, "catalogue source", a.at(0, "catalogue", "source"), "live")
	if got := a.at(0, "tools", 1, "required").([]any); len(got) != 0 {
		t.Errorf("required of a tool without any: %v", got)
	}
}

func TestASummaryHasNamesAndNoTools(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.succeed("weather", weatherTools)
	a := w.get("/api/tools?summary=true").is(http.StatusOK)
	want(t, "tools", len(a.at(0, "tools").([]any)), 0)
	want(t, "first name", a.at(0, "function_names", 0), "forecast")
	want(t, "toolsEnabled", a.at(0, "toolsEnabled"), 2.0)
	if full := w.get("/api/tools"); full.header.Get("ETag") == a.header.Get("ETag") {
		t.Error("the summary and the full answer share an ETag")
	}
}

func TestToolsThatTheEntryDeniesAreNotListed(t *testing.T) {
	for name, c := range map[string]struct {
		filter events.ToolFilter
		want   []string
	}{
		"all by default":    {events.ToolFilter{}, []string{"forecast", "alerts"}},
		"an allow list":     {events.ToolFilter{Allow: []string{"fore*"}}, []string{"forecast"}},
		"a deny list":       {events.ToolFilter{Deny: []string{"fore*"}}, []string{"alerts"}},
		"deny before allow": {events.ToolFilter{Allow: []string{"*"}, Deny: []string{"*"}}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configure("weather", func(d *events.ServerConfigured) { d.Settings.Tools = c.filter })
			w.succeed("weather", weatherTools)
			a := w.get("/api/tools").is(http.StatusOK)
			if diff := cmp.Diff(c.want, a.names("name", 0, "tools")); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			want(t, "toolsEnabled", a.at(0, "toolsEnabled"), float64(len(c.want)))
		})
	}
}

func TestAnUnchangedAnswerIsNotSentTwice(t *testing.T) {
	for _, path := range []string{"/api/tools", "/api/servers"} {
		t.Run(path, func(t *testing.T) {
			w := newWorld(t)
			w.configure("weather")
			w.succeed("weather", weatherTools)
			first := w.get(path).is(http.StatusOK)
			tag := first.header.Get("ETag")
			again := w.get(path, header("If-None-Match", `"other", W/`+tag)).is(http.StatusNotModified)
			want(t, "body", len(again.body), 0)
			want(t, "ETag", again.header.Get("ETag"), tag)
			w.configure("other")
			changed := w.get(path, header("If-None-Match", tag)).is(http.StatusOK)
			if changed.header.Get("ETag") == tag {
				t.Error("another server, but the same ETag")
			}
		})
	}
}

// An answer that is kept must not outlive a skip: nothing is appended when one ends.
func TestASkipEndsOnTimeThoughNothingWasAppended(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.skip("weather")
	want(t, "state", w.get("/api/tools").at(0, "state"), "skipped")
	w.clock.advance(time.Hour - time.Millisecond)
	want(t, "state just before", w.get("/api/tools").at(0, "state"), "skipped")
	w.clock.advance(time.Millisecond)
	want(t, "state at until", w.get("/api/tools").at(0, "state"), "failed")
}

func TestServersCanBeFiltered(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.succeed("weather", weatherTools)
	w.configure("broken", func(d *events.ServerConfigured) { d.Description = "Maps of Norway" })
	w.fail("broken")
	w.configure("remote", func(d *events.ServerConfigured) { d.Transport = events.TransportHTTP })
	signature := w.get("/api/servers/broken").at("cause", "signature").(string)
	for query, wanted := range map[string][]string{
		"state=ready":                 {"weather"},
		"state=failed&needs=wait":     {},
		"needs=dependency":            {"broken"},
		"class=dependency":            {"broken"},
		"class=auth":                  {},
		"signature=" + signature:      {"broken"},
		"transport=http":              {"remote"},
		"q=NORWAY":                    {"broken"},
		"q=weather":                   {"weather"},
		"source=" + instance:          {"broken", "remote", "weather"},
		"source=nobody":               {},
		"sort=-name":                  {"weather", "remote", "broken"},
		"sort=state":                  {"remote", "broken", "weather"},
		"sort=-failures&state=failed": {"broken"},
	} {
		t.Run(query, func(t *testing.T) {
			a := w.get("/api/servers?" + query).is(http.StatusOK)
			if diff := cmp.Diff(wanted, a.names("name", "items")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPagesOfServersJoinToTheWhole(t *testing.T) {
	w := newWorld(t)
	for _, name := range []events.ServerName{"a", "b", "c", "d", "e"} {
		w.configure(name)
	}
	for _, sort := range []string{"name", "-name", "state", "-failures"} {
		var all []string
		path := "/api/servers?limit=2&sort=" + sort
		for next := ""; ; {
			a := w.get(path + next).is(http.StatusOK)
			all = append(all, a.names("name", "items")...)
			cursor, more := a.at("next_cursor").(string)
			if !more {
				break
			}
			next = "&cursor=" + cursor
		}
		if whole := w.get("/api/servers?sort="+sort).names("name", "items"); !cmp.Equal(whole, all) {
			t.Errorf("sort=%s: pages give %v, the whole is %v", sort, all, whole)
		}
	}
	first := w.get("/api/servers?limit=2").at("next_cursor").(string)
	want(t, "by name, as without sort", w.get("/api/servers?sort=name&limit=1&cursor="+first).names("name", "items")[0], "c")
}

func TestTheNextAttemptComesFirstAndNoneLast(t *testing.T) {
	w := newWorld(t)
	w.configure("off", func(d *events.ServerConfigured) { d.Disabled = true })
	w.configure("late")
	w.skip("late")
	w.configure("soon")
	w.fail("soon")
	for sort, order := range map[string][]string{
		"next_attempt": {"soon", "late", "off"}, "-next_attempt": {"off", "late", "soon"},
	} {
		if got := w.get("/api/servers?sort="+sort).names("name", "items"); !cmp.Equal(got, order) {
			t.Errorf("sort=%s: got %v, want %v", sort, got, order)
		}
	}
}

func TestAServerTellsWhatFailedAndWhatIsNext(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.skip("weather")
	a := w.get("/api/servers/weather").is(http.StatusOK)
	want(t, "state", a.at("state"), "skipped")
	want(t, "needs", a.at("needs"), "dependency")
	want(t, "class", a.at("cause", "class"), "dependency")
	want(t, "skip reason", a.at("skip", "reason"), "identical_failures")
	want(t, "failures", a.at("skip", "failures"), 3.0)
	want(t, "since", a.at("skip", "since"), "2026-03-04T12:15:00.000Z")
	want(t, "until", a.at("skip", "until"), "2026-03-04T13:15:00.000Z")
	want(t, "next attempt", a.at("next_attempt_at"), "2026-03-04T13:15:00.000Z")
	want(t, "last outcome", a.at("last_attempt", "outcome"), "failed")
	want(t, "streak", a.at("streak", "count"), 3.0)
	want(t, "command", a.at("config", "command"), "uvx")
	want(t, "attempts", a.at("stats", "attempts"), 3.0)

	skips := w.get("/api/skips").is(http.StatusOK)
	want(t, "skips", skips.names("server", "items")[0], "weather")
	want(t, "skip's key", skips.at("items", 0, "config_key"), string(keyOf("weather")))
}

func TestAServerNobodyConfiguredIsNotFound(t *testing.T) {
	w := newWorld(t)
	w.configure("gone")
	w.fail("gone")
	before := w.head()
	w.append("gone", events.ServerRemoved{})
	for _, path := range []string{"/api/servers/never", "/api/servers/never/why", "/api/servers/never/history", "/api/servers/gone", "/api/servers/gone/why"} {
		w.get(path).refused(http.StatusNotFound, "server_not_found")
	}
	want(t, "its past", w.get("/api/servers/gone?at="+itoa(before)).is(http.StatusOK).at("state"), "failed")
	want(t, "its history", len(w.get("/api/servers/gone/history").is(http.StatusOK).at("items").([]any)), 4)
}

func TestAServerThatWasRemovedSaysSinceWhen(t *testing.T) {
	w := newWorld(t)
	w.configure("kept")
	w.configure("gone/away")
	w.append("gone/away", events.ServerRemoved{})
	w.answers(discovery.CallOutcome{}, discovery.ErrUnknownServer)
	const gone = "/api/servers/gone%2Faway"
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, gone, ""},
		{http.MethodGet, gone + "/why", ""},
		{http.MethodPost, gone + "/discover", ""},
		{http.MethodPost, "/api/discover", `{"servers":["kept","gone/away"]}`},
		{http.MethodPut, gone + "/skip", `{}`},
		{http.MethodDelete, gone + "/skip", ""},
		{http.MethodPost, gone + "/tools/forecast/call", ""},
	} {
		detail := w.ask(c.method, c.path, c.body, bearer(w.operator)).refused(http.StatusNotFound, "server_not_found").at("detail").(string)
		for _, part := range []string{"any more", "removed from the config at 2026-03-04T12:00:00Z", gone + "/history"} {
			if !strings.Contains(detail, part) {
				t.Errorf("%s %s has no %q: %s", c.method, c.path, part, detail)
			}
		}
	}
	w.get(gone + "/history").is(http.StatusOK)
	nobody := w.ask(http.MethodPost, "/api/discover", `{"servers":[""]}`, bearer(w.operator)).refused(http.StatusNotFound, "server_not_found")
	want(t, "no name", nobody.at("detail"), `no server named "" is configured; /api/servers lists those that are`)
	w.configure("gone/away")
	w.get(gone).is(http.StatusOK)
}

// Who asks about a past moment is not told how things are now.
func TestAServerThatWasNotConfiguredAtAPastMomentIsToldSo(t *testing.T) {
	w := newWorld(t)
	w.configure("first")
	before := w.head()
	w.configure("gone")
	w.append("gone", events.ServerRemoved{})
	removed := w.head()
	w.configure("gone")
	w.configure("late")
	for _, c := range []struct {
		story, name string
		at          events.Sequence
		want        string
	}{
		{"it came later", "late", before, `no server named "late" was configured then; /api/servers with the same at lists those that were`},
		{"it never came", "never", removed, `no server named "never" was configured then; /api/servers with the same at lists those that were`},
		{"it was removed before, and came back", "gone", removed,
			`no server named "gone" was configured any more, it was removed from the config at 2026-03-04T12:00:00Z; /api/servers/gone/history has what was`},
	} {
		for _, path := range []string{"/api/servers/" + c.name, "/api/servers/" + c.name + "/why"} {
			a := w.get(path+"?at="+itoa(c.at)).refused(http.StatusNotFound, "server_not_found")
			want(t, c.story+", "+path, a.at("detail"), c.want)
		}
	}
	a := w.get("/api/servers/late/history?at="+itoa(before)).refused(http.StatusNotFound, "server_not_found")
	want(t, "its history", a.at("detail"), `no server named "late" was configured then; /api/servers with the same at lists those that were`)
}

func TestNamesMayHoldAnyCharacter(t *testing.T) {
	w := newWorld(t)
	for name, path := range map[events.ServerName]string{
		"a/b": "a%2Fb", "100%": "100%25", "a b": "a%20b", "käse": "k%C3%A4se", "a+b": "a+b", "%41": "%2541",
	} {
		w.configure(name)
		want(t, path, w.get("/api/servers/"+path).is(http.StatusOK).at("name"), string(name))
	}
}
