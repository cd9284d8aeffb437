package httpapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// storied returns a world with a server in every state.
func storied(t testing.TB) *world {
	w := newWorld(t)
	w.configure("weather")
	w.succeed("weather", weatherTools)
	w.configure("skipped")
	w.skip("skipped")
	w.configure("remote", func(d *events.ServerConfigured) {
		d.Transport = events.TransportHTTP
		d.Config = json.RawMessage(`{"headers":{"Authorization":"«Authorization»"},"url":"https://mcp.example/mcp"}`)
	})
	w.succeed("remote", weatherTools)
	w.appendAbout("remote", about{call: "call-1"}, events.ToolCallStarted{Tool: "forecast"}, events.ToolCallFailed{
		Tool: "forecast", Dispatched: true,
		Evidence: events.Evidence{Phase: events.PhaseCallTool, Transport: events.TransportHTTP, ErrorKind: events.KindHTTPStatus, HTTPStatus: 401},
	})
	w.configure("off", func(d *events.ServerConfigured) { d.Disabled = true })
	w.configure("keyless", func(d *events.ServerConfigured) {
		d.Problem = &events.EntryProblem{Code: events.ProblemVariableUnset, Detail: "API_KEY is not set", Names: []string{"API_KEY"}}
	})
	w.configure("waiting")
	w.operate(http.MethodPost, "/api/events", report("reported-1", "discovery.failed", seen)).is(http.StatusAccepted)
	return w
}

// reads lists a request of every kind that reads.
var reads = []string{
	"/api/tools", "/api/tools?summary=true", "/api/tools?at=9", "/api/servers", "/api/servers?limit=2", "/api/servers/skipped",
	"/api/servers/skipped/history", "/api/servers/skipped/why", "/api/servers/remote/why", "/api/servers/hosted/decision?source=operator",
	"/api/skips", "/api/health", "/api/config", "/api/runs", "/api/diff?from=5", "/api/events?limit=3", "/api/events/reported-1",
	"/api/rules/sets", "/api/session", "/healthz", "/readyz", "/openapi.json", "/", "/metrics", "/api/rules", "/api/rules?format=yaml",
}

func TestReadsWriteNothingAndStartNothing(t *testing.T) {
	w := storied(t)
	before := w.head()
	for range 300/len(reads) + 1 {
		for _, path := range reads {
			w.get(path).is(http.StatusOK)
			w.clock.advance(time.Minute)
		}
		w.ask(http.MethodPost, "/api/classify", `{"evidence":{"error":"x"}}`).is(http.StatusOK)
	}
	want(t, "head", w.head(), before)
	want(t, "attempts", len(w.discovery.asked), 0)
}

// judged is what the rules say in their own words, which may change with them.
var judged = regexp.MustCompile(`"(signature|hint|hash)":"(?:[^"\\]|\\.)*"`)

// The shapes are what clients read: a change here is a change for them.
func TestShapesStayAsTheyAre(t *testing.T) {
	w := storied(t)
	for _, path := range []string{
		"/api/tools", "/api/servers", "/api/servers/skipped/why", "/api/servers/remote/why", "/api/servers/skipped/history?limit=2",
		"/api/skips", "/api/health", "/api/config", "/api/runs?limit=2", "/api/diff?from=9&to=20", "/api/events/reported-1",
		"/api/servers/hosted/decision?source=operator", "/api/servers/none",
	} {
		name := strings.Trim(strings.Map(func(r rune) rune {
			if strings.ContainsRune("/?=&", r) {
				return '-'
			}
			return r
		}, path), "-") + ".json"
		t.Run(name, func(t *testing.T) {
			var indented bytes.Buffer
			w.must(json.Indent(&indented, judged.ReplaceAll(w.get(path).body, []byte(`"$1":"…"`)), "", "  "))
			golden := filepath.Join("testdata", name)
			if *update {
				w.must(os.MkdirAll("testdata", 0o755))
				w.must(os.WriteFile(golden, indented.Bytes(), 0o644))
			}
			wanted, err := os.ReadFile(golden)
			w.must(err)
			if diff := cmp.Diff(string(wanted), indented.String()); diff != "" {
				t.Errorf("%s (-want +got), rewritten by -update:\n%s", path, diff)
			}
		})
	}
}

func TestTheContractIsServedWithoutTheGeneratorsNotes(t *testing.T) {
	w := newWorld(t)
	a := w.get("/openapi.json").is(http.StatusOK)
	want(t, "version", a.at("openapi"), "3.0.3")
	if contains(a.body, "x-go-") {
		t.Error("the generator's notes are served")
	}
	w.must(contract().doc.Validate(t.Context()))
}

// The reference has every metric, and no other.
func TestTheReferenceListsTheMetrics(t *testing.T) {
	w := storied(t)
	w.operate(http.MethodPut, "/api/rules/shadow", `{"rules":{"set":"any-failure-gates"}}`).is(http.StatusOK)
	page, err := os.ReadFile("../docs/reference/metrics.md")
	w.must(err)
	named := func(pattern, text string) []string {
		var names []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return names
	}
	served := named(`(?m)^# HELP (mcpledger_\w+) `, string(w.get("/metrics").is(http.StatusOK).body))
	if diff := cmp.Diff(served, named("(?m)^\\| `(mcpledger_\\w+)` ", string(page))); diff != "" {
		t.Errorf("the page differs (-served +page):\n%s", diff)
	}
}

func TestMetricsHaveTheirNames(t *testing.T) {
	w := storied(t)
	w.get("/api/tools")
	a := w.get("/metrics").is(http.StatusOK)
	for _, line := range []string{
		`mcpledger_ready 1`, `mcpledger_log_writable 1`, `mcpledger_log_sequence ` + itoa(w.head()), `mcpledger_server_state{server="skipped",state="skipped"} 1`,
		`mcpledger_server_tools{server="weather"} 2`, `mcpledger_server_tools{server="remote"} 0`,
		`mcpledger_discovery_attempts_total{server="skipped"} 3`, `mcpledger_discovery_failures_total{server="skipped"} 3`,
		`mcpledger_tool_call_failures_total{server="remote"} 1`, `mcpledger_build_info{version="test"} 1`,
		`mcpledger_http_requests_total{method="GET",route="/api/tools",status="200"} 1`,
	} {
		if !contains(a.body, line+"\n") {
			t.Errorf("want the line %s", line)
		}
	}
}

// FuzzRequests looks for a request that is answered with a fault of our own.
func FuzzRequests(f *testing.F) {
	for _, path := range reads {
		f.Add("GET", path, "")
	}
	for _, r := range [][3]string{
		{"POST", "/api/events", report("a", "discovery.failed", seen)},
		{"POST", "/api/classify", `{"evidence":{"error":"x","exit_code":1}}`},
		{"POST", "/api/discover", `{"servers":["weather"],"force":true}`},
		{"PUT", "/api/servers/weather/skip", `{"reason":"x","until":"2027-01-01T00:00:00Z"}`},
		{"DELETE", "/api/skips?class=auth", ""},
		{"GET", "/api/events?cursor=eyJsIjoiZXZlbnRzL2FzYyIsImsiOiI3In0&limit=3&class=auth", ""},
	} {
		f.Add(r[0], r[1], r[2])
	}
	w := storied(f)
	w.discovery.outcome = missingModule
	f.Add("\xf0", "/api/tools", "") // a method no metric may be named after
	f.Fuzz(func(t *testing.T, method, target, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.HasPrefix(u.Path, "/api/events/stream") || strings.ContainsAny(method, " \r\n") || method == "" {
			t.Skip()
		}
		r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
		r.Method, r.URL, r.Host, r.RemoteAddr = method, u, "localhost", "127.0.0.1:1"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+w.operator)
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, r)
		if rec.Code >= http.StatusInternalServerError {
			t.Errorf("%s %s answered %d: %s\n%s", method, target, rec.Code, rec.Body, body)
		}
	})
}
