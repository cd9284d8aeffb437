package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"mcpledger/events"
	"mcpledger/httpapi"
)

func TestWhatAReadDoesNotTakeIsRefused(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	for path, c := range map[string]struct {
		status int
		code   string
	}{
		"/api/tools?sumary=true":                                 {400, "unknown_parameter"},
		"/api/tools?summary=yes":                                 {400, "invalid_parameter"},
		"/api/tools?summary=true&summary=true":                   {400, "invalid_parameter"},
		"/api/tools?a;b":                                         {400, "invalid_parameter"},
		"/api/servers?limit=0":                                   {400, "invalid_limit"},
		"/api/servers?limit=1001":                                {400, "invalid_limit"},
		"/api/servers?limit=ten":                                 {400, "invalid_limit"},
		"/api/servers?limit=%2B5":                                {400, "invalid_limit"},
		"/api/servers?cursor=nonsense":                           {400, "invalid_cursor"},
		"/api/servers?cursor=e30":                                {400, "invalid_cursor"},
		"/api/servers?signature=":                                {400, "invalid_parameter"},
		"/api/servers?source=":                                   {400, "invalid_parameter"},
		"/api/events?server=":                                    {400, "invalid_parameter"},
		"/api/events?run_id=":                                    {400, "invalid_parameter"},
		"/api/servers/weather/history?type=":                     {400, "invalid_parameter"},
		"/api/servers?state=happy":                               {400, "invalid_parameter"},
		"/api/servers?sort=size":                                 {400, "invalid_parameter"},
		"/api/servers?q=" + strings.Repeat("q", 257):             {400, "invalid_parameter"},
		"/api/servers?at=":                                       {400, "invalid_at"},
		"/api/servers?at=yesterday":                              {400, "invalid_at"},
		"/api/servers?at=0":                                      {400, "invalid_at"},
		"/api/servers?at=-1":                                     {400, "invalid_at"},
		"/api/servers?at=1000000":                                {400, "at_in_future"},
		"/api/servers?at=2026-03-04T12:00:01Z":                   {400, "at_in_future"},
		"/api/events?at=1000000":                                 {400, "at_in_future"},
		"/api/events?after=-1":                                   {400, "invalid_parameter"},
		"/api/events?since=today":                                {400, "invalid_parameter"},
		"/api/events?class=sad":                                  {400, "invalid_parameter"},
		"/api/events?cursor=eyJsIjoiZXZlbnRzL2FzYyIsImsiOiIwIn0": {400, "invalid_cursor"},
		"/api/servers?rules=none":                                {400, "unknown_rules"},
		"/api/events?rules=none":                                 {400, "unknown_rules"},
		"/api/servers/weather/history?outcome=lost":              {400, "invalid_parameter"},
		"/api/diff":                                              {400, "invalid_parameter"},
		"/api/diff?from=1&to=99999":                              {400, "at_in_future"},
		"/api/events/stream?after=99999":                         {400, "at_in_future"},
		"/api/events/stream?at=1":                                {400, "unknown_parameter"},
		"/api/runs?rules=default":                                {400, "unknown_parameter"},
		"/api/servers/weather/decision?at=1":                     {400, "unknown_parameter"},
		"/api/rules?format=toml":                                 {400, "invalid_parameter"},
		"/api/runs/none":                                         {404, "run_not_found"},
		"/api/nothing":                                           {404, "not_found"},
		"/api/servers/weather/tools/forecast/call":               {405, "method_not_allowed"},
		"/api/replays":                                           {405, "method_not_allowed"},
		"/api/replays/none":                                      {404, "replay_not_found"},
		"/api/replays/none?at=1":                                 {400, "unknown_parameter"},
		"/dashboard/secrets.txt":                                 {404, "not_found"},
		"/dashboard/..%2Fdashboard.go":                           {404, "not_found"},
	} {
		t.Run(path, func(t *testing.T) { w.get(path).refused(c.status, c.code) })
	}
}

// Whoever swaps the two would take an empty list for an answer.
func TestASpanThatEndsBeforeItBeginsIsRefused(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	for _, path := range []string{"/api/events", "/api/servers/weather/history"} {
		w.get(path+"?since=2026-03-04T12:00:00Z&until=2026-03-04T13:59:59%2B02:00").refused(http.StatusBadRequest, "invalid_parameter")
		w.get(path + "?since=2026-03-04T12:00:00Z&until=2026-03-04T12:00:00Z").is(http.StatusOK)
	}
}

func TestOfSeveralBadParametersTheSameIsNamedEachTime(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		a := w.get("/api/servers?state=happy&limit=0&needs=love&b=1&a=1").refused(http.StatusBadRequest, "unknown_parameter")
		want(t, "detail", a.at("detail"), `"a" is no parameter of this path`)
	}
}

func TestWhatAWriteDoesNotTakeIsRefused(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	form := header("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range []struct {
		what, method, path, body string
		how                      []asking
		status                   int
		code                     string
	}{
		{"an unknown field", "POST", "/api/servers/weather/discover", `{"raeson":"x"}`, nil, 400, "bad_body"},
		{"a wrong type", "POST", "/api/servers/weather/discover", `{"reason":7}`, nil, 400, "bad_body"},
		{"no JSON", "POST", "/api/servers/weather/discover", `{"reason"`, nil, 400, "bad_body"},
		{"something after it", "POST", "/api/servers/weather/discover", `{} {}`, nil, 400, "bad_body"},
		{"a form", "POST", "/api/servers/weather/discover", `a=b`, []asking{form}, 415, "unsupported_media_type"},
		{"text", "POST", "/api/config/reload", `{}`, []asking{header("Content-Type", "text/plain")}, 415, "unsupported_media_type"},
		{"a bare body", "POST", "/api/discover", `{}`, []asking{header("Content-Type", "")}, 415, "unsupported_media_type"},
		{"a zip", "POST", "/api/discover", `{}`, []asking{header("Content-Encoding", "gzip")}, 415, "unsupported_media_type"},
		{"an empty form", "POST", "/api/discover", ``, []asking{form}, 415, "unsupported_media_type"},
		{"no report", "POST", "/api/events", ``, nil, 400, "bad_body"},
		{"no body", "PUT", "/api/servers/weather/skip", ``, nil, 400, "bad_body"},
		{"a past end", "PUT", "/api/servers/weather/skip", `{"until":"2026-03-04T11:00:00Z"}`, nil, 400, "bad_body"},
		{"null", "PUT", "/api/servers/weather/skip", ` null `, nil, 400, "bad_body"},
		{"null for all", "POST", "/api/discover", `null`, nil, 400, "bad_body"},
		{"null for a report", "POST", "/api/events", `null`, nil, 400, "bad_body"},
		{"a long reason", "POST", "/api/servers/weather/discover", `{"reason":"` + strings.Repeat("é", 1001) + `"}`, nil, 400, "bad_body"},
		{"a long reason for all", "POST", "/api/discover", `{"reason":"` + strings.Repeat("x", 1001) + `"}`, nil, 400, "bad_body"},
		{"a long reason to pin", "PUT", "/api/servers/weather/skip", `{"reason":"` + strings.Repeat("x", 1001) + `"}`, nil, 400, "bad_body"},
		{"no signature to clear", "DELETE", "/api/skips?signature=", ``, nil, 400, "invalid_parameter"},
		{"a body after a space", "DELETE", "/api/servers/weather/skip", strings.Repeat(" ", 100) + `{"reason":"x"}`, nil, 400, "bad_body"},
		{"no time", "PUT", "/api/servers/weather/skip", `{"until":"soon"}`, nil, 400, "bad_body"},
		{"too much", "POST", "/api/classify", `{"evidence":{"error":"` + strings.Repeat("x", 2<<20) + `"}}`, nil, 413, "body_too_large"},
		{"no known state", "POST", "/api/discover", `{"state":"bogus"}`, nil, 400, "bad_body"},
		{"no known class", "POST", "/api/discover", `{"class":"bogus"}`, nil, 400, "bad_body"},
		{"a field in other case", "POST", "/api/servers/weather/discover", `{"Reason":"x"}`, nil, 400, "bad_body"},
		{"a field twice", "POST", "/api/servers/weather/discover", `{"reason":"x","re\u0061son":"y"}`, nil, 400, "bad_body"},
		{"a field within in other case", "POST", "/api/classify", `{"evidence":{"Error":"x"}}`, nil, 400, "bad_body"},
		{"a field within twice", "POST", "/api/classify", `{"evidence":{"error":"x","error":"y"}}`, nil, 400, "bad_body"},
		{"an argument twice", "POST", "/api/servers/weather/tools/forecast/call", `{"arguments":{"a":[{"b":1,"b":2}]}}`, nil, 400, "bad_body"},
		{"no UTF-8", "POST", "/api/servers/weather/discover", "{\"reason\":\"\xff\"}", nil, 400, "bad_body"},
		{"a body for nothing", "POST", "/api/config/reload", `{"force":true}`, nil, 400, "bad_body"},
		{"a body to clear with", "DELETE", "/api/servers/weather/skip", `{"reason":"x"}`, nil, 400, "bad_body"},
		{"a body to read with", "GET", "/api/servers", `{"state":"ready"}`, nil, 400, "bad_body"},
		{"rules of no type", "PUT", "/api/rules", `set: mine`, []asking{header("Content-Type", "")}, 415, "unsupported_media_type"},
		{"unknown evidence", "POST", "/api/classify", `{"evidence":{"eror":"x"}}`, nil, 400, "bad_body"},
		{"an unknown server", "POST", "/api/servers/none/discover", ``, nil, 404, "server_not_found"},
		{"an unknown server among others", "POST", "/api/discover", `{"servers":["weather","none"]}`, nil, 404, "server_not_found"},
		{"the wrong method", "POST", "/api/tools", ``, nil, 405, "method_not_allowed"},
		{"another wrong method", "PATCH", "/api/servers/weather", `{}`, nil, 405, "method_not_allowed"},
		{"a wrong method among two", "DELETE", "/api/events", ``, nil, 405, "method_not_allowed"},
	} {
		t.Run(c.what, func(t *testing.T) {
			a := w.operate(c.method, c.path, c.body, c.how...).refused(c.status, c.code)
			if c.status == http.StatusUnsupportedMediaType {
				want(t, "title", a.at("title"), "The body is of a media type that is not taken")
			}
			if c.status == http.StatusMethodNotAllowed {
				allowed := "OPTIONS, GET, HEAD"
				if c.path == "/api/events" {
					allowed = "OPTIONS, GET, POST, HEAD"
				}
				want(t, "allowed", a.header.Get("Allow"), allowed)
			}
		})
	}
	if len(w.discovery.asked) > 0 {
		t.Errorf("refused, but attempted: %v", w.discovery.asked)
	}
}

func TestUntilTheFoldsHaveCaughtUpReadsSaySo(t *testing.T) {
	w := newColdWorld(t)
	for _, path := range []string{"/api/tools", "/api/servers", "/api/events", "/api/events/stream", "/api/rules"} {
		a := w.get(path).refused(http.StatusServiceUnavailable, "catching_up")
		want(t, "Retry-After", a.header.Get("Retry-After"), "1")
	}
	w.get("/healthz").is(http.StatusOK)
	want(t, "ready", w.get("/readyz").is(http.StatusServiceUnavailable).at("ready"), false)
	if !contains(w.get("/metrics").is(http.StatusOK).body, "mcpledger_ready 0") {
		t.Error("metrics do not say that the folds are behind")
	}
	w.must(w.engine.CatchUp(t.Context()))
	w.configure("weather")
	a := w.get("/readyz").is(http.StatusOK)
	h, err := w.log.Head(t.Context())
	w.must(err)
	want(t, "head", a.at("head"), h.String())
	want(t, "sequence", a.at("sequence"), float64(h.Sequence))
	want(t, "writable", a.at("writable"), true)
	want(t, "reason", a.at("reason"), "")
}

// stuckLog is a log that tells why it cannot be written.
type stuckLog struct {
	events.Log
	err error
}

func (l stuckLog) Unavailable() error { return l.err }

func TestALogThatCannotBeWrittenIsToldAndReadsAreReady(t *testing.T) {
	for err, reason := range map[error]string{
		events.ErrUnavailable: "the log cannot be written: the disk is full or refuses writes; the service's own log says more",
		events.ErrCorrupt:     "the log is damaged and cannot be written; the service's own log says more",
	} {
		w := newWorld(t, func(c *httpapi.Config) { c.Log = stuckLog{c.Log, fmt.Errorf("open /home/me/events.db: %w", err)} })
		a := w.get("/readyz").is(http.StatusOK)
		want(t, "ready", a.at("ready"), true)
		want(t, "writable", a.at("writable"), false)
		want(t, "reason", a.at("reason"), reason)
		if !contains(w.get("/metrics").is(http.StatusOK).body, "mcpledger_log_writable 0\n") {
			t.Error("metrics do not say that the log cannot be written")
		}
	}
}

// fullLog is a log whose disk is full.
type fullLog struct{ events.Log }

func (fullLog) Append(context.Context, []events.Event) (events.Receipt, error) {
	return events.Receipt{}, errors.Join(errors.New("no space left on device"), events.ErrUnavailable)
}

func TestWritesThatCannotBeRecordedSaySoAndReadsGoOn(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Log = fullLog{c.Log} })
	w.configure("weather")
	w.operate(http.MethodPost, "/api/events", report("r1", "discovery.failed", `{"evidence":{"error":"x"}}`)).
		refused(http.StatusServiceUnavailable, "log_unavailable")
	w.discovery.err = events.ErrUnavailable
	w.operate(http.MethodPost, "/api/servers/weather/discover", "").refused(http.StatusServiceUnavailable, "log_unavailable")
	w.get("/api/tools").is(http.StatusOK)
}

func TestAnAnswerSaysWhereInTheLogItIsFrom(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.skip("weather")
	for _, path := range []string{
		"/api/tools", "/api/servers", "/api/servers/weather", "/api/servers/weather/why", "/api/servers/weather/history",
		"/api/skips", "/api/health", "/api/config", "/api/events", "/api/runs", "/api/rules", "/api/diff?from=1",
	} {
		want(t, path, w.get(path).is(http.StatusOK).header.Get("Ledger-Sequence"), itoa(w.head()))
	}
}

func TestAnAnswerThatIsNotReadyInTimeIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	late, done := context.WithTimeout(t.Context(), 0)
	defer done()
	w.get("/api/events", func(r *http.Request) { *r = *r.WithContext(late) }).refused(http.StatusServiceUnavailable, "timeout")
}

// panicking is a log that a handler trips over when it asks for one event.
type panicking struct{ events.Log }

func (l panicking) Read(ctx context.Context, q events.Query) iter.Seq2[events.Event, error] {
	if q.ID != "" {
		panic("tripped")
	}
	return l.Log.Read(ctx, q)
}

func TestAPanicIsAProblemAndTheServiceGoesOn(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.Log = panicking{c.Log} })
	w.get("/api/events/x").refused(http.StatusInternalServerError, "internal")
	if logged := w.logged.String(); !strings.Contains(logged, "tripped") || !strings.Contains(logged, "stack=") {
		t.Errorf("the log does not tell of the panic:\n%s", logged)
	}
	w.get("/api/events").is(http.StatusOK)
}
