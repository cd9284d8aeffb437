package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

var asYAML = header("Content-Type", "application/yaml")

// variant is the default set under another name, with changes in its text.
func variant(t testing.TB, name string, changes ...string) string {
	t.Helper()
	text := rules.Default().Text()
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("the default set has no %q", changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	return strings.Replace(text, "name: default", "name: "+name, 1)
}

// hasty skips at the first deterministic failure.
func hasty(t testing.TB) string {
	return variant(t, "hasty", "deterministic: {after: 3,", "deterministic: {after: 1,")
}

// patient never skips for deterministic failures.
func patient(t testing.TB) string {
	return variant(t, "patient", "deterministic: {after: 3, for: [1h, 4h, 24h]}", "deterministic: {after: 0}")
}

func TestADryRunSaysWhatARuleSetWouldChangeAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.configure("once")
	w.fail("once")
	w.configure("thrice")
	w.skip("thrice")
	before := w.head()

	a := w.operate(http.MethodPut, "/api/rules?dry_run=true", hasty(t), asYAML).is(http.StatusOK)
	if diff := cmp.Diff([]any{"once"}, a.at("would_skip")); diff != "" {
		t.Errorf("would be skipped (-want +got):\n%s", diff)
	}
	want(t, "in force", a.at("in_force"), false)
	a = w.operate(http.MethodPut, "/api/rules?dry_run=true", patient(t), asYAML).is(http.StatusOK)
	if diff := cmp.Diff([]any{"thrice"}, a.at("would_requalify")); diff != "" {
		t.Errorf("would be attempted again (-want +got):\n%s", diff)
	}
	want(t, "head", w.head(), before)
	want(t, "active", w.get("/api/rules").at("active", "set"), "default")
}

func TestARuleSetIsPutInForceAndRecorded(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.fail("weather")
	tag := w.get("/api/rules").header.Get("ETag")
	a := w.operate(http.MethodPut, "/api/rules", hasty(t), asYAML, header("If-Match", tag)).is(http.StatusOK)
	want(t, "in force", a.at("in_force"), true)
	want(t, "skipped by it", a.at("would_skip", 0), "weather")
	want(t, "place", a.header.Get("Ledger-Sequence"), itoa(w.head()))
	want(t, "state", w.get("/api/servers/weather").at("state"), "skipped")
	e := w.get("/api/events?type=rules.activated").is(http.StatusOK)
	want(t, "recorded set", e.at("items", 0, "data", "set"), "hasty")
	want(t, "recorded text", e.at("items", 0, "data", "text"), hasty(t))
	want(t, "by", e.at("items", 0, "actor"), "operator")
	// The past stays as it was judged then.
	want(t, "before", w.get("/api/servers/weather?at="+itoa(w.head()-1)).at("state"), "failed")

	before := w.head()
	w.operate(http.MethodPut, "/api/rules", hasty(t), asYAML).is(http.StatusOK)
	want(t, "head for the set in force", w.head(), before)
}

func TestARuleSetThatWasInForceIsKnownByItsName(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.fail("weather")
	w.operate(http.MethodPut, "/api/rules", hasty(t), asYAML).is(http.StatusOK)
	w.operate(http.MethodPut, "/api/rules", rules.Default().Text(), asYAML).is(http.StatusOK)
	want(t, "listed", slices.Contains(w.get("/api/rules/sets").names("set", "items"), "hasty"), true)
	want(t, "state now", w.get("/api/servers/weather").at("state"), "failed")
	want(t, "state under it", w.get("/api/servers/weather?rules=hasty").at("state"), "skipped")
	want(t, "its text", string(w.get("/api/rules?rules=hasty&format=yaml").body), hasty(t))
	w.operate(http.MethodPost, "/api/replays", `{"rules":{"set":"hasty"}}`).is(http.StatusAccepted)
	w.get("/api/rules?rules=unheard-of").is(http.StatusBadRequest)
}

func TestARuleSetIsNotPutInForceOverAnotherThanWasSeen(t *testing.T) {
	w := newWorld(t)
	tag := w.get("/api/rules").header.Get("ETag")
	w.operate(http.MethodPut, "/api/rules", hasty(t), asYAML, header("If-Match", tag)).is(http.StatusOK)
	w.operate(http.MethodPut, "/api/rules", patient(t), asYAML, header("If-Match", tag)).refused(http.StatusPreconditionFailed, "rules_changed")
	want(t, "active", w.get("/api/rules").at("active", "set"), "hasty")
	w.operate(http.MethodPut, "/api/rules", patient(t), asYAML, header("If-Match", `"x", *`)).is(http.StatusOK)
}

func TestOfTwoThatSawTheSameSetOnePutsItsOwnInForce(t *testing.T) {
	w := newWorld(t)
	tag := header("If-Match", w.get("/api/rules").header.Get("ETag"))
	statuses := make(chan int, 2)
	var both sync.WaitGroup
	for _, text := range []string{hasty(t), patient(t)} {
		both.Go(func() { statuses <- w.operate(http.MethodPut, "/api/rules", text, asYAML, tag).status })
	}
	both.Wait()
	want(t, "statuses together", <-statuses+<-statuses, http.StatusOK+http.StatusPreconditionFailed)
}

func TestARuleSetThatMayNotBeInForceIsRefused(t *testing.T) {
	w := newWorld(t)
	before := w.head()
	gates, err := rules.Builtin("any-failure-gates")
	w.must(err)
	for _, c := range []struct {
		what, body string
		status     int
		code       string
	}{
		{"nothing", "", 400, "bad_body"},
		{"no YAML", "rules: [", 422, "invalid_rules"},
		{"an alias", strings.Replace(hasty(t), "name: hasty", "name: &n hasty", 1), 422, "invalid_rules"},
		{"a gate on everything", gates.Text(), 422, "breaks_law_3"},
		{"a built-in name", variant(t, "default", "version: 1", "version: 1 # mine"), 422, "rules_name_taken"},
		{"too long", "#" + strings.Repeat("x", 256<<10), 413, "body_too_large"},
		{"far too long", "#" + strings.Repeat("x", 2<<20), 413, "body_too_large"},
	} {
		t.Run(c.what, func(t *testing.T) {
			w.operate(http.MethodPut, "/api/rules", c.body, asYAML).refused(c.status, c.code)
			w.operate(http.MethodPut, "/api/rules?dry_run=true", c.body, asYAML).refused(c.status, c.code)
		})
	}
	w.operate(http.MethodPut, "/api/rules", hasty(t), header("Content-Type", "text/plain")).refused(http.StatusUnsupportedMediaType, "unsupported_media_type")
	w.operate(http.MethodPut, "/api/rules?dry_run=true", hasty(t), header("Content-Type", "text/yaml; charset=utf-8")).is(http.StatusOK)
	want(t, "head", w.head(), before)
}

func TestWhatKeepsARuleSetFromBeingInForceHasAPlace(t *testing.T) {
	w := newWorld(t)
	gates := "name: eager\nversion: 1\nrules: [{id: any, class: unknown, disposition: ignore}]\ngates:\n" +
		"  - {id: mine, match: {http_status: 401}, gate: auth_required}\n" +
		"  - {id: all, gate: auth_required}\n" +
		"  - {id: most, class: network, gate: auth_required}\n"
	a := w.operate(http.MethodPut, "/api/rules", gates, asYAML).refused(http.StatusUnprocessableEntity, "breaks_law_3")
	want(t, "line", a.at("line"), 6.0)
	want(t, "column", a.at("column"), 5.0)
	want(t, "rules to blame", len(a.at("errors").([]any)), 2)
	want(t, "the first", a.at("errors", 0, "rule"), "all")
	want(t, "the last", a.at("errors", 1, "rule"), "most")
	want(t, "its line", a.at("errors", 1, "line"), 7.0)

	named := "# mine\nversion: 1\nname: default\nrules: [{id: all, class: unknown, disposition: ignore}]\n"
	a = w.operate(http.MethodPut, "/api/rules", named, asYAML).refused(http.StatusUnprocessableEntity, "rules_name_taken")
	want(t, "line of the name", a.at("line"), 3.0)
	want(t, "column of the name", a.at("column"), 7.0)
}

func TestTheRulesOfAnotherVersionAreNamed(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.append("", events.RulesActivated{Set: "newer", Hash: "ab", Text: "name: newer\nversion: 9\nrules: [{id: all, class: unknown, disposition: ignore}]\n"})
	w.fail("weather")
	at := itoa(w.head())
	for _, path := range []string{"/api/servers?at=" + at, "/api/rules?at=" + at, "/api/servers?rules=newer", "/api/diff?from=1&to=" + at} {
		a := w.get(path).refused(http.StatusConflict, "rules_unreadable")
		if detail := a.at("detail").(string); !strings.Contains(detail, `newer:2:10: version "9" of the rule language is not known`) {
			t.Errorf("%s: %s", path, detail)
		}
	}
	want(t, "under a set that is read", w.get("/api/servers/weather?rules=default&at="+at).at("state"), "failed")
}

func TestARuleThatCanNeverMatchIsWarnedOf(t *testing.T) {
	w := newWorld(t)
	a := w.operate(http.MethodPut, "/api/rules?dry_run=true", hasty(t), asYAML).is(http.StatusOK)
	if diff := cmp.Diff([]any{}, a.at("warnings")); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	odd := strings.Replace(hasty(t), "rules:\n", "rules:\n  - {id: never, match: {http_status: 7}, class: config, disposition: ignore}\n", 1)
	a = w.operate(http.MethodPut, "/api/rules?dry_run=true", odd, asYAML).is(http.StatusOK)
	want(t, "rule", a.at("warnings", 0, "rule"), "never")
	want(t, "detail", a.at("warnings", 0, "detail"), "can never match: no http_status is such a number")
}

func TestARuleSetThatCannotBeRecordedIsNotPutInForce(t *testing.T) {
	w := newWorld(t)
	w.discovery.err = fmt.Errorf("append: %w", events.ErrUnavailable)
	w.operate(http.MethodPut, "/api/rules", hasty(t), asYAML).refused(http.StatusServiceUnavailable, "log_unavailable")
	want(t, "active", w.get("/api/rules").at("active", "set"), "default")
}

func TestFaultsOfARuleSetHaveTheirPlace(t *testing.T) {
	w := newWorld(t)
	text := "name: wrong\nversion: 1\nrules:\n  - id: everything\n    class: sadness\n    disposition: ignore\n    colour: red\n"
	a := w.operate(http.MethodPut, "/api/rules", text, asYAML).refused(http.StatusUnprocessableEntity, "invalid_rules")
	want(t, "line", a.at("line"), 5.0)
	want(t, "column", a.at("column"), 12.0)
	want(t, "second fault's line", a.at("errors", 1, "line"), 7.0)
	want(t, "second fault's rule", a.at("errors", 1, "rule"), "everything")
	if detail := a.at("detail").(string); !strings.HasPrefix(detail, `line 5, column 12: rule everything: unknown class "sadness"`) {
		t.Errorf("detail: %s", detail)
	}
}

func TestAShadowShowsWhatItSeesDifferentlyAndDecidesNothing(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.fail("weather")
	before := w.head()
	body, err := json.Marshal(map[string]any{"rules": hasty(t)})
	w.must(err)
	a := w.operate(http.MethodPut, "/api/rules/shadow", string(body)).is(http.StatusOK)
	want(t, "active", a.at("active", "set"), "default")
	want(t, "shadow", a.at("shadow", "set"), "hasty")
	want(t, "seen differently", a.at("shadow_differences", 0, "server"), "weather")
	want(t, "was", a.at("shadow_differences", 0, "was", "state"), "failed")
	want(t, "now", a.at("shadow_differences", 0, "now", "state"), "skipped")
	want(t, "state", w.get("/api/servers/weather").at("state"), "failed")
	want(t, "under the shadow's rules", w.get("/api/servers/weather?rules=hasty").at("state"), "skipped")
	if !contains(w.get("/metrics").body, `mcpledger_shadow_differing_servers{set="hasty"} 1`) {
		t.Error("the metrics do not count the difference")
	}
	want(t, "head", w.head(), before)

	w.operate(http.MethodPut, "/api/rules/shadow", `{"rules":{"set":"any-failure-gates"}}`).is(http.StatusOK)
	want(t, "another shadow", w.get("/api/rules").at("shadow", "set"), "any-failure-gates")
	w.operate(http.MethodDelete, "/api/rules/shadow", "").is(http.StatusNoContent)
	want(t, "shadow", w.get("/api/rules").at("shadow"), any(nil))
	w.operate(http.MethodPut, "/api/rules/shadow", `{"rules":{"set":"none"}}`).refused(http.StatusBadRequest, "unknown_rules")
	w.operate(http.MethodPut, "/api/rules/shadow", `{"rules":{"set":""}}`).refused(http.StatusBadRequest, "bad_body")
	w.operate(http.MethodPut, "/api/rules/shadow", `{"rules":7}`).refused(http.StatusBadRequest, "bad_body")
	w.operate(http.MethodPut, "/api/rules/shadow", `{}`).refused(http.StatusBadRequest, "bad_body")
}

func TestSetsOfOneNameAreToldApartByTheirHash(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.fail("weather")
	first := strings.Replace(patient(t), "name: patient", "name: ours", 1)
	w.operate(http.MethodPut, "/api/rules", first, asYAML).is(http.StatusOK)
	second := strings.Replace(hasty(t), "name: hasty", "name: ours", 1)
	body, err := json.Marshal(map[string]any{"rules": second})
	w.must(err)
	shadow := w.operate(http.MethodPut, "/api/rules/shadow", string(body)).is(http.StatusOK).at("shadow", "hash").(string)
	want(t, "by name", w.get("/api/servers/weather?rules=ours").at("state"), "failed")
	want(t, "by hash", w.get("/api/servers/weather?rules="+shadow).at("state"), "skipped")
	want(t, "by its beginning", w.get("/api/servers/weather?rules="+shadow[:12]).at("state"), "skipped")
	w.get("/api/servers?rules="+shadow[:11]).refused(http.StatusBadRequest, "unknown_rules")

	w.operate(http.MethodPut, "/api/rules", second, asYAML).is(http.StatusOK)
	before := w.get("/api/events?type=rules.activated&order=desc").at("items", 1, "data", "hash").(string)
	want(t, "text of before", w.get("/api/rules?rules="+before).at("active", "hash"), before)
	want(t, "one that was in force before", w.get("/api/servers/weather?rules="+before).at("state"), "failed")
}

func TestWhyShowsThePolicyAfterTheServersOwnSettings(t *testing.T) {
	w := newWorld(t)
	w.configure("weather", func(d *events.ServerConfigured) {
		d.Settings.Skip = events.SkipSettings{After: 7, TTLMS: []int64{time.Minute.Milliseconds()}}
	})
	w.fail("weather")
	a := w.get("/api/servers/weather/why").is(http.StatusOK)
	want(t, "after", a.at("rule", "policy", "after"), 7.0)
	want(t, "for", a.at("rule", "policy", "ttl_ms", 0), 60_000.0)
}
