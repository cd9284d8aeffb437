package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/httpapi/access"
)

// host is another program that reports on servers it calls by itself.
type host struct {
	*world
	name string
	auth asking
	told int
}

func (w *world) host(name string) *host {
	w.Helper()
	return &host{world: w, name: name, auth: bearer(w.token(name, access.Report, access.Read))}
}

// tells reports one event about the server "hosted", as seen at the present time.
func (h *host) tells(kind, data string) {
	h.Helper()
	h.told++
	body := fmt.Sprintf(`{"id":"r%d","type":%q,"subject":"hosted","config_key":%q,"time":%q,"data":%s}`,
		h.told, kind, keyOf("hosted"), h.clock.Now().Format(time.RFC3339), data)
	h.ask(http.MethodPost, "/api/events", body, h.auth).is(http.StatusAccepted)
}

// wantDecision asks what a host is to do with the server "hosted".
func (h *host) wantDecision(decision string) {
	h.Helper()
	a := h.get(fmt.Sprintf("/api/servers/hosted/decision?source=%s&config_key=%s", h.name, keyOf("hosted")), h.auth).is(http.StatusOK)
	want(h, h.name+" is told to", a.at("decision"), decision)
}

// Names and config keys are chosen by whoever reports, so they may well be alike.
func TestHostsOfTheSameServerMoveTheirOwnStateAlone(t *testing.T) {
	w := newWorld(t)
	w.configure("hosted")
	w.succeed("hosted", weatherTools)
	one, other := w.host("one"), w.host("other")
	ours := w.get("/api/servers/hosted").is(http.StatusOK)

	for range 3 {
		one.tells("discovery.failed", seen)
		w.clock.advance(time.Minute)
	}
	one.wantDecision("skip")
	other.wantDecision("attempt")
	other.tells("discovery.succeeded", `{"protocol_version":"2025-11-25","tool_count":1}`)
	one.wantDecision("skip") // what another sees of its server ends nothing
	other.tells("toolcall.failed", `{"tool":"x","dispatched":true,"evidence":{"phase":"call_tool","http_status":401,"error_kind":"http_status","transport":"http"}}`)
	other.wantDecision("blocked")
	one.tells("discovery.succeeded", `{"protocol_version":"2025-11-25","tool_count":1}`)
	one.wantDecision("attempt")
	other.wantDecision("blocked")

	now := w.get("/api/servers/hosted").is(http.StatusOK)
	for _, field := range []string{"state", "state_reason", "gate", "skip", "streak", "reachability", "authorization", "stats", "verified_at", "last_attempt", "catalogue"} {
		if diff := cmp.Diff(ours.at(field), now.at(field)); diff != "" {
			t.Errorf("our own %s was moved (-before +after):\n%s", field, diff)
		}
	}
	want(t, "reporters", len(now.at("reported").([]any)), 2)
	want(t, "skips", len(w.get("/api/skips").at("items").([]any)), 0)

	// And what we see ourselves is no host's business.
	w.skip("hosted")
	want(t, "our own state", w.get("/api/servers/hosted").at("state"), "skipped")
	one.wantDecision("attempt")
	one.tells("discovery.succeeded", `{"protocol_version":"2025-11-25","tool_count":1}`)
	want(t, "our own state", w.get("/api/servers/hosted").at("state"), "skipped")
}

// A host may well use the ids of another, and the names of our own servers.
func TestWhyOfAServerThatOnlyHostsReportSaysWhoseReportsItRestsOn(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	one, other := w.host("one"), w.host("other")
	for range 3 {
		one.tells("discovery.failed", seen)
		w.clock.advance(time.Minute)
	}
	past := w.head()
	other.tells("discovery.succeeded", `{"protocol_version":"2025-11-25","tool_count":1}`)

	const path = "/api/servers/hosted/why"
	a := w.get(path + "?source=one").is(http.StatusOK)
	want(t, "reported by", a.at("reported_by"), "one")
	want(t, "state", a.at("state"), "skipped")
	want(t, "config key", a.at("config_key"), string(keyOf("hosted")))
	want(t, "class", a.at("rule", "class"), "dependency")
	if diff := cmp.Diff([]string{"1 of 3", "2 of 3", "3 of 3"}, a.names("note", "chain")); diff != "" {
		t.Errorf("chain (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"expiry", "successful_check", "config_change"}, a.names("what", "clears_on")); diff != "" {
		t.Errorf("clears on (-want +got):\n%s", diff)
	}
	// Nothing that the service itself could do.
	want(t, "next attempt", a.at("next_attempt_at"), any(nil))

	want(t, "whoever told last", w.get(path).is(http.StatusOK).at("reported_by"), "other")
	want(t, "the host itself, when it asks", w.get(path, one.auth).is(http.StatusOK).at("reported_by"), "one")
	want(t, "whoever had told then", w.get(fmt.Sprintf("%s?at=%d", path, past)).is(http.StatusOK).at("reported_by"), "one")
	want(t, "by the key", w.get(path+"?config_key="+string(keyOf("hosted")), one.auth).is(http.StatusOK).at("state"), "skipped")
	w.get(path+"?config_key=another", one.auth).refused(http.StatusNotFound, "report_not_found")
	w.get(path+"?source=nobody").refused(http.StatusNotFound, "report_not_found")
	w.get(path+"?source="+instance).refused(http.StatusNotFound, "server_not_found")
	var own map[string]any
	w.get("/api/servers/weather/why").is(http.StatusOK).into(&own)
	if by, said := own["reported_by"]; said {
		t.Errorf("our own server is said to be reported by %v", by)
	}
}

func TestOnlyWhatAHostSawCanBeReported(t *testing.T) {
	w := newWorld(t)
	before := w.head()
	for _, kind := range []events.Type{
		events.TypeServiceStarted, events.TypeServiceStopped, events.TypeConfigLoaded, events.TypeConfigRejected,
		events.TypeServerConfigured, events.TypeServerRemoved, events.TypeDiscoverySkipped, events.TypeCatalogueChanged,
		events.TypeSessionOpened, events.TypeSessionDiscarded, events.TypeSkipPinned, events.TypeSkipCleared,
		events.TypeSkipRequalified, events.TypeRulesActivated, events.TypeLogImported,
	} {
		a := w.operate(http.MethodPost, "/api/events", report("r", string(kind), `{}`)).refused(http.StatusBadRequest, "invalid_event")
		want(t, string(kind), a.at("detail"), fmt.Sprintf(
			"nothing was written, since event 0 is wrong: type %q is not for reporters: discovery.* and toolcall.* outcomes are, decisions are not", kind))
	}
	want(t, "written", w.head(), before)
}

func TestAReportMayBeSevenDaysOldAndFiveMinutesAhead(t *testing.T) {
	w := newWorld(t)
	for id, c := range map[string]struct {
		from   time.Duration
		status int
	}{
		"old":      {-7 * 24 * time.Hour, http.StatusAccepted},
		"too-old":  {-7*24*time.Hour - time.Second, http.StatusBadRequest},
		"ahead":    {5 * time.Minute, http.StatusAccepted},
		"too-soon": {5*time.Minute + time.Second, http.StatusBadRequest},
	} {
		body := fmt.Sprintf(`{"id":%q,"type":"discovery.failed","subject":"hosted","time":%q,"data":%s}`, id, noon.Add(c.from).Format(time.RFC3339), seen)
		if got := w.operate(http.MethodPost, "/api/events", body).status; got != c.status {
			t.Errorf("a report of %s from noon: status %d, want %d", c.from, got, c.status)
		}
	}
}
