package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi/access"
)

// report is one reported event about the server "hosted".
func report(id, kind, data string) string {
	return fmt.Sprintf(`{"id":%q,"type":%q,"subject":"hosted","time":"2026-03-04T12:00:00Z","data":%s}`, id, kind, data)
}

const seen = `{"evidence":{"error":"transport closed","stderr_tail":"ModuleNotFoundError: No module named 'x'"}}`

// token makes a token with roles, valid for a day, and returns its secret.
func (w *world) token(name string, roles ...access.Role) string {
	w.Helper()
	t, secret, err := access.NewToken(name, roles, noon.Add(24*time.Hour))
	w.must(err)
	known, err := access.ReadTokens(w.dir)
	w.must(err)
	w.must(access.WriteTokens(w.dir, append(known, t)))
	return secret
}

func TestAHostReportsWhatItSaw(t *testing.T) {
	w := newWorld(t)
	host := bearer(w.token("platform", access.Report, access.Read))
	a := w.ask(http.MethodPost, "/api/events", report("one", "discovery.failed", seen), host).is(http.StatusAccepted)
	want(t, "accepted", a.at("accepted"), 1.0)
	want(t, "last sequence", a.at("last_sequence"), float64(w.head()))
	e := w.get("/api/events/one").is(http.StatusOK)
	want(t, "source", e.at("source"), "platform")
	want(t, "actor", e.at("actor"), "platform")
	want(t, "config key", e.at("config_key"), "x_default")
	want(t, "class", e.at("classification", "class"), "dependency")

	batch := "[" + report("two", "discovery.started", `{"attempt":1}`) + "," + report("one", "discovery.failed", seen) + "]"
	a = w.ask(http.MethodPost, "/api/events", batch, host, header("Content-Type", "application/cloudevents-batch+json")).is(http.StatusAccepted)
	want(t, "accepted", a.at("accepted"), 1.0)
	want(t, "duplicates", a.at("duplicates"), 1.0)
	w.ask(http.MethodPost, "/api/events", report("one", "discovery.failed", `{"evidence":{"error":"other"}}`), host).
		refused(http.StatusConflict, "id_conflict")
	// Another source may use the same id.
	w.operate(http.MethodPost, "/api/events", report("one", "discovery.failed", `{"evidence":{"error":"other"}}`)).is(http.StatusAccepted)
}

func TestAReportCannotClaimToComeFromElsewhere(t *testing.T) {
	w := newWorld(t)
	host := bearer(w.token("platform", access.Report))
	w.ask(http.MethodPost, "/api/events", fmt.Sprintf(`{"specversion":"1.0","id":"x","source":%q,"actor":"root","type":"discovery.failed","subject":"hosted","data":%s}`, instance, seen), host).
		is(http.StatusAccepted)
	want(t, "source", w.get("/api/events/x").at("source"), "platform")
	want(t, "actor", w.get("/api/events/x").at("actor"), "platform")

	// Whoever goes by the service's own name cannot report at all.
	impostor := bearer(w.token(instance, access.Report))
	w.ask(http.MethodPost, "/api/events", report("y", "discovery.failed", seen), impostor).refused(http.StatusForbidden, "forbidden")
}

func TestReportsNeverMoveAServerOfOurOwn(t *testing.T) {
	w := newWorld(t)
	w.configure("hosted")
	w.succeed("hosted", weatherTools)
	host := bearer(w.token("platform", access.Report, access.Read))
	for i := range 3 {
		body := strings.Replace(report(fmt.Sprint("r", i), "discovery.failed", seen), "12:00:00", fmt.Sprintf("12:0%d:00", i), 1)
		w.ask(http.MethodPost, "/api/events", body, host).is(http.StatusAccepted)
	}
	a := w.get("/api/servers/hosted").is(http.StatusOK)
	want(t, "our own state", a.at("state"), "ready")
	want(t, "their state", a.at("reported", 0, "state"), "skipped")
	want(t, "who", a.at("reported", 0, "source"), "platform")

	want(t, "our decision", w.get("/api/servers/hosted/decision").at("decision"), "attempt")
	want(t, "the host's, by its token", w.get("/api/servers/hosted/decision", host).at("decision"), "skip")
	theirs := w.get("/api/servers/hosted/decision?source=platform").is(http.StatusOK)
	want(t, "their decision", theirs.at("decision"), "skip")
	want(t, "until", theirs.at("until"), "2026-03-04T13:00:00.000Z")
	want(t, "another connection", w.get("/api/servers/hosted/decision?source=platform&config_key=other").at("decision"), "attempt")
}

func TestAHostAsksAboutItsOwnServersByItsToken(t *testing.T) {
	w := newWorld(t)
	host := bearer(w.token("platform", access.Report, access.Read))
	for i := range 3 {
		body := strings.Replace(report(fmt.Sprint("r", i), "discovery.failed", seen), "12:00:00", fmt.Sprintf("12:0%d:00", i), 1)
		w.ask(http.MethodPost, "/api/events", body, host).is(http.StatusAccepted)
	}
	want(t, "the host's own", w.get("/api/servers/hosted/decision", host).at("decision"), "skip")
	want(t, "a stranger's", w.get("/api/servers/hosted/decision").at("decision"), "attempt")
}

func TestAReportWithoutATimeIsIdempotentToo(t *testing.T) {
	w := newWorld(t)
	body := fmt.Sprintf(`{"id":"untimed","type":"discovery.failed","subject":"hosted","data":%s}`, seen)
	w.operate(http.MethodPost, "/api/events", body).is(http.StatusAccepted)
	w.clock.advance(time.Minute)
	a := w.operate(http.MethodPost, "/api/events", body).is(http.StatusAccepted)
	want(t, "duplicates", a.at("duplicates"), 1.0)
	want(t, "time", w.get("/api/events/untimed").at("time"), "2026-03-04T12:00:00.000Z")

	// The id means nothing to another host, which may have it for an event of its own.
	host := bearer(w.token("platform", access.Report))
	w.ask(http.MethodPost, "/api/events", body, host).is(http.StatusAccepted)
	w.clock.advance(time.Minute)
	a = w.ask(http.MethodPost, "/api/events", body, host).is(http.StatusAccepted)
	want(t, "duplicates of another source", a.at("duplicates"), 1.0)
	want(t, "time", w.get("/api/events?source=platform").at("items", 0, "time"), "2026-03-04T12:01:00.000Z")
}

func TestAnIDThatTwoHostsUseIsToldApartByItsSource(t *testing.T) {
	w := newWorld(t)
	w.operate(http.MethodPost, "/api/events", report("1", "discovery.failed", seen)).is(http.StatusAccepted)
	first := w.head()
	host := bearer(w.token("platform", access.Report))
	w.ask(http.MethodPost, "/api/events", report("1", "discovery.failed", seen), host).is(http.StatusAccepted)

	want(t, "the first", w.get("/api/events/1").is(http.StatusOK).at("source"), "operator")
	want(t, "the operator's", w.get("/api/events/1?source=operator").is(http.StatusOK).at("sequence"), float64(first))
	want(t, "the platform's", w.get("/api/events/1?source=platform").is(http.StatusOK).at("sequence"), float64(first+1))
	w.get("/api/events/1?source=nobody").refused(http.StatusNotFound, "event_not_found")
	w.get("/api/events/1?source=platform&at="+itoa(first)).refused(http.StatusNotFound, "event_not_found")
	w.get("/api/events/1?source=").refused(http.StatusBadRequest, "invalid_parameter")
}

func TestWhatIsReadAsCloudEventsCanBeReported(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.succeed("weather", weatherTools)
	w.fail("weather")
	w.appendAbout("weather", about{call: "c1"}, events.ToolCallStarted{Tool: "forecast"}, events.ToolCallSucceeded{Tool: "forecast", ElapsedMS: 3})
	batch := header("Content-Type", "application/cloudevents-batch+json")
	read := w.get("/api/events?server=weather", header("Accept", "application/cloudevents-batch+json")).is(http.StatusOK)
	runs := w.get("/api/events?type=discovery.run_started", header("Accept", "application/cloudevents-batch+json")).is(http.StatusOK)
	var all, more, outcomes []map[string]any
	read.into(&all)
	runs.into(&more)
	for _, e := range append(all, more...) {
		if e["type"] != "server.configured" && e["type"] != "catalogue.changed" {
			e["dataschema"] = "https://example.org/schema"
			outcomes = append(outcomes, e)
		}
	}
	body, err := json.Marshal(outcomes)
	w.must(err)
	host := bearer(w.token("platform", access.Report))
	a := w.ask(http.MethodPost, "/api/events", string(body), host, batch).is(http.StatusAccepted)
	want(t, "accepted", a.at("accepted"), float64(len(outcomes)))
	want(t, "the reporter's view", w.get("/api/servers/weather").at("reported", 0, "source"), "platform")

	one := `{"id":"one","type":"discovery.failed","subject":"hosted","ledgerhash":"x","data":{}}`
	w.ask(http.MethodPost, "/api/events", one, host, header("Content-Type", "application/cloudevents+json")).is(http.StatusAccepted)
	w.ask(http.MethodPost, "/api/events", one, host).refused(http.StatusBadRequest, "invalid_event")
	w.ask(http.MethodPost, "/api/events", `[{"id":"two","type":"discovery.failed","Subject":"hosted","data":{}}]`, host, batch).
		refused(http.StatusBadRequest, "invalid_event")
}

func TestAServerKnownFromReportsSaysWhereToAsk(t *testing.T) {
	w := newWorld(t)
	host := bearer(w.token("platform", access.Report))
	w.ask(http.MethodPost, "/api/events", report("r", "discovery.failed", seen), host).is(http.StatusAccepted)
	detail := w.get("/api/servers/hosted").refused(http.StatusNotFound, "server_not_found").at("detail").(string)
	decision, history := "/api/servers/hosted/decision?config_key=x_default&source=platform", "/api/servers/hosted/history"
	for _, part := range []string{`reports of "platform"`, decision, history} {
		if !strings.Contains(detail, part) {
			t.Errorf("the detail has no %s: %s", part, detail)
		}
	}
	w.get(decision).is(http.StatusOK)
	w.get(history).is(http.StatusOK)

	w.configure("gone")
	w.append("gone", events.ServerRemoved{})
	for _, name := range []string{"gone", "never"} {
		detail := w.get("/api/servers/"+name).refused(http.StatusNotFound, "server_not_found").at("detail").(string)
		if strings.Contains(detail, "reports") {
			t.Errorf("nobody reported %s: %s", name, detail)
		}
	}
}

func TestABadReportIsRefusedByIndexAndNoneOfItIsWritten(t *testing.T) {
	w := newWorld(t)
	before := w.head()
	good := report("good", "discovery.failed", seen)
	long := strings.Repeat("x", 129)
	for what, bad := range map[string]string{
		"a decision":              report("b", "discovery.skipped", `{"reason":"auth"}`),
		"an operator's event":     report("b", "skip.cleared", `{"reason":"auth"}`),
		"rules":                   report("b", "rules.activated", `{"set":"mine","hash":"","text":""}`),
		"a config":                report("b", "server.configured", `{"change":"added"}`),
		"a catalogue":             report("b", "catalogue.changed", `{"hash":"","tools":[]}`),
		"an unknown type":         report("b", "weather.changed", `{}`),
		"no id":                   report("", "discovery.failed", seen),
		"a long id":               report(long, "discovery.failed", seen),
		"no subject":              `{"id":"b","type":"discovery.failed","data":{}}`,
		"no data":                 `{"id":"b","type":"discovery.failed","subject":"s"}`,
		"data that is a list":     report("b", "discovery.failed", `[]`),
		"an unknown member":       report("b", "discovery.failed", `{"evidense":{}}`),
		"unknown evidence":        report("b", "discovery.failed", `{"evidence":{"stdout":"x"}}`),
		"a wrong type":            report("b", "discovery.failed", `{"evidence":{"exit_code":"1"}}`),
		"an attribute in caps":    `{"Id":"b","type":"discovery.failed","subject":"s","data":{}}`,
		"a member in caps":        report("b", "discovery.failed", `{"evidence":{"Error":"x"}}`),
		"an unknown attribute":    `{"id":"b","type":"discovery.failed","subject":"s","data":{},"extra":1}`,
		"another specversion":     `{"specversion":"0.3","id":"b","type":"discovery.failed","subject":"s","data":{}}`,
		"another content type":    `{"datacontenttype":"text/xml","id":"b","type":"discovery.failed","subject":"s","data":{}}`,
		"another data version":    `{"dataversion":2,"id":"b","type":"discovery.failed","subject":"s","data":{}}`,
		"a time far ahead":        `{"id":"b","type":"discovery.failed","subject":"s","time":"2026-03-04T12:05:01Z","data":{}}`,
		"a time long ago":         `{"id":"b","type":"discovery.failed","subject":"s","time":"2026-02-25T11:59:59Z","data":{}}`,
		"no time at all":          `{"id":"b","type":"discovery.failed","subject":"s","time":"noon","data":{}}`,
		"a secret in the key":     `{"id":"b","type":"discovery.failed","subject":"s","config_key":"ghp_0123456789abcdefghijklmnopqrstuvwxyzAB","data":{}}`,
		"control codes in a name": `{"id":"b","type":"discovery.failed","subject":"s\u001b[31m","data":{}}`,
		"a name of two lines":     `{"id":"b","type":"discovery.failed","subject":"s\nt","data":{}}`,
		"a negative duration":     report("b", "toolcall.succeeded", `{"tool":"t","elapsed_ms":-1}`),
		"a negative count":        report("b", "discovery.failed", `{"evidence":{"stdout_junk":{"count":-1}}}`),
		"a time before the end":   report("b", "discovery.failed", `{"evidence":{"stderr_last_ms":-1}}`),
		"a negative size":         report("b", "discovery.started", `{"facts":[{"path":"/a","found":true,"size":-1}]}`),
		"an age of the world":     report("b", "discovery.failed", `{"evidence":{"retry_after_ms":9223372036855}}`),
		"a number":                `7`,
		"null":                    `null`,
	} {
		t.Run(what, func(t *testing.T) {
			a := w.operate(http.MethodPost, "/api/events", "["+good+","+bad+"]").refused(http.StatusBadRequest, "invalid_event")
			want(t, "bad ones", len(a.at("errors").([]any)), 1)
			want(t, "index", a.at("errors", 0, "index"), 1.0)
			if detail := a.at("detail").(string); !strings.HasPrefix(detail, "nothing was written, since event 1 is wrong: ") {
				t.Errorf("detail: got %s", detail)
			}
			want(t, "written", w.head(), before)
		})
	}
	w.operate(http.MethodPost, "/api/events", "[]").refused(http.StatusBadRequest, "invalid_event")
	many := "[" + strings.Repeat(good+",", 1000) + good + "]"
	w.operate(http.MethodPost, "/api/events", many).refused(http.StatusBadRequest, "invalid_event")
	w.operate(http.MethodPost, "/api/events", "["+good+","+report("b", "discovery.failed", seen)+"]").is(http.StatusAccepted)
	other := "[" + good + "," + report("b", "discovery.failed", `{}`) + "," + report("c", "discovery.failed", seen) + "]"
	a := w.operate(http.MethodPost, "/api/events", other).refused(http.StatusConflict, "id_conflict")
	want(t, "index of the conflict", a.at("errors", 0, "index"), 1.0)
	w.get("/api/events/c").refused(http.StatusNotFound, "event_not_found")
	codes := report("codes", "discovery.failed", `{"evidence":{"exit_code":-1073741819,"jsonrpc_code":-32603,"retry_after_ms":9223372036854}}`)
	w.operate(http.MethodPost, "/api/events", codes).is(http.StatusAccepted)
	w.operate(http.MethodPost, "/api/events", `[{"id":`).refused(http.StatusBadRequest, "bad_body")
}

func TestABadReportIsRefusedInTheSameWordsEachTime(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 129)
	bad := fmt.Sprintf(`{"id":"b","type":"discovery.failed","subject":"s","config_key":%q,"run_id":%[1]q,"attempt_id":%[1]q,"call_id":%[1]q,"data":{}}`, long)
	for range 20 {
		a := w.operate(http.MethodPost, "/api/events", bad).refused(http.StatusBadRequest, "invalid_event")
		want(t, "the first fault", a.at("errors", 0, "detail"), "config_key has 129 bytes, at most 128 are taken")
	}
}

func TestReportedTextsAreMaskedAndBounded(t *testing.T) {
	w := newWorld(t)
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	data := fmt.Sprintf(`{"evidence":{"error":"401 for %s","stderr_tail":%q,"command":"npx\u001b[31m x"}}`,
		secret, strings.Repeat("é", 9000)+" token="+secret+" the last words")
	w.operate(http.MethodPost, "/api/events", report("r", "discovery.failed", data)).is(http.StatusAccepted)
	a := w.get("/api/events/r").is(http.StatusOK)
	if contains(a.body, secret) {
		t.Errorf("the secret is in the log:\n%s", a.body)
	}
	want(t, "command", a.at("data", "evidence", "command"), "npx x")
	tail := a.at("data", "evidence", "stderr_tail").(string)
	if len(tail) > events.MaxStderrTailBytes || !strings.HasPrefix(tail, "…") || !strings.HasSuffix(tail, "the last words") {
		t.Errorf("stderr_tail of %d bytes begins %.20q and ends %.20q", len(tail), tail, tail[len(tail)-20:])
	}
}
