package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"mcpledger/events"
)

// contract is the OpenAPI document every answer is checked against.
var contract = sync.OnceValue(func() (c struct {
	doc    *openapi3.T
	router routers.Router
}) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		panic(err)
	}
	if c.doc, err = openapi3.NewLoader().LoadFromData(text); err != nil {
		panic(err)
	}
	if c.router, err = legacy.NewRouter(c.doc); err != nil {
		panic(err)
	}
	openapi3filter.RegisterBodyDecoder("application/cloudevents-batch+json", openapi3filter.JSONBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder) // the text, not what it says
	return c
})

// answer is a checked answer.
type answer struct {
	testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

// asking changes a request before it is sent.
type asking func(*http.Request)

func header(name, value string) asking { return func(r *http.Request) { r.Header.Set(name, value) } }

func bearer(token string) asking { return header("Authorization", "Bearer "+token) }

func from(remote string) asking { return func(r *http.Request) { r.RemoteAddr = remote } }

func calling(host string) asking { return func(r *http.Request) { r.Host = host } }

// get asks as somebody on this machine without a token.
func (w *world) get(path string, how ...asking) answer {
	w.Helper()
	return w.ask(http.MethodGet, path, "", how...)
}

// operate asks as the operator.
func (w *world) operate(method, path, body string, how ...asking) answer {
	w.Helper()
	return w.ask(method, path, body, append([]asking{bearer(w.operator)}, how...)...)
}

// ask sends a request and checks the answer against the contract.
func (w *world) ask(method, path, body string, how ...asking) answer {
	w.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1:8132", "127.0.0.1:50000"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range how {
		h(r)
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	a := answer{TB: w, what: method + " " + path, status: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
	a.conforms(r, body)
	return a
}

// conforms checks an answer against the contract, and a request that was taken, too.
func (a answer) conforms(r *http.Request, body string) {
	a.Helper()
	ctx := context.Background()
	r = r.Clone(ctx)
	r.Host = ""
	r.URL.Scheme, r.URL.Host = "", ""
	r.Body = io.NopCloser(strings.NewReader(body))
	route, params, err := contract().router.FindRoute(r)
	if r.Method == http.MethodOptions && a.status < 400 {
		return // browsers ask beforehand; that is no operation
	}
	if err != nil {
		if a.status < 400 {
			a.Fatalf("%s: answered %d, but the contract has no such route: %v", a.what, a.status, err)
		}
		a.isProblem()
		return
	}
	input := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if a.status < 400 && r.Method != http.MethodHead {
		if err := openapi3filter.ValidateRequest(ctx, input); err != nil {
			a.Errorf("%s: answered %d, but the contract does not allow the request: %v", a.what, a.status, err)
		}
	}
	if a.status >= 400 && a.header.Get("Content-Type") != "application/json" {
		a.isProblem()
	}
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	input.Options.ExcludeResponseBody = !strings.HasSuffix(media, "json") || media == "application/x-ndjson"
	err = openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: a.status, Header: a.header,
		Body: io.NopCloser(bytes.NewReader(a.body)), Options: input.Options,
	})
	if err != nil {
		a.Errorf("%s: the answer is not what the contract says: %v\n%s", a.what, err, a.body)
	}
}

func (a answer) isProblem() {
	a.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.Fatalf("%s: answered %d as %q, want problem+json\n%s", a.what, a.status, got, a.body)
	}
	var p map[string]any
	a.into(&p)
	if err := contract().doc.Components.Schemas["Problem"].Value.VisitJSON(p); err != nil {
		a.Fatalf("%s: the problem is none: %v\n%s", a.what, err, a.body)
	}
	codes := contract().doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Description
	if !regexp.MustCompile(fmt.Sprintf("(?m)^- %d: .*`%s`", a.status, p["code"])).MatchString(codes) {
		a.Errorf("%s: answered %d with code %s, which the contract does not list so", a.what, a.status, p["code"])
	}
}

// is fails the test unless the answer has the status.
func (a answer) is(status int) answer {
	a.Helper()
	if a.status != status {
		a.Fatalf("%s: answered %d, want %d\n%s", a.what, a.status, status, a.body)
	}
	return a
}

// refused fails the test unless the answer is a problem of that status and code.
func (a answer) refused(status int, code string) answer {
	a.Helper()
	a.is(status).isProblem()
	if got := a.at("code"); got != code {
		a.Fatalf("%s: refused with code %v, want %s\n%s", a.what, got, code, a.body)
	}
	return a
}

func (a answer) into(v any) {
	a.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.Fatalf("%s: %v\n%s", a.what, err, a.body)
	}
}

// at returns the value at a path of member names and indexes.
func (a answer) at(path ...any) any {
	a.Helper()
	var v any
	a.into(&v)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				a.Fatalf("%s: no object at %v in\n%s", a.what, path, a.body)
			}
			v = m[step]
		case int:
			l, ok := v.([]any)
			if !ok || step >= len(l) {
				a.Fatalf("%s: no element %d at %v in\n%s", a.what, step, path, a.body)
			}
			v = l[step]
		}
	}
	return v
}

// names returns the named member of each element of the list at path.
func (a answer) names(member string, path ...any) []string {
	a.Helper()
	items, ok := a.at(path...).([]any)
	if !ok {
		a.Fatalf("%s: no list at %v in\n%s", a.what, path, a.body)
	}
	out := []string{}
	for _, item := range items {
		out = append(out, fmt.Sprint(item.(map[string]any)[member]))
	}
	return out
}

// want fails the test unless got equals want.
func want[T comparable](t testing.TB, what string, got any, want T) {
	t.Helper()
	if got != any(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func contains(body []byte, text string) bool { return bytes.Contains(body, []byte(text)) }

func itoa(s events.Sequence) string { return strconv.FormatInt(int64(s), 10) }
