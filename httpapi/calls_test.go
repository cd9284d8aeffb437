package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/httpapi/access"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

const callPath = "/api/servers/weather/tools/forecast/call"

// answers has every call end with an outcome.
func (w *world) answers(out discovery.CallOutcome, err error) {
	w.discovery.call = func(context.Context, discovery.Call) (discovery.CallOutcome, error) { return out, err }
}

func TestACallIsPassedOnAsItWasAskedFor(t *testing.T) {
	w := newWorld(t)
	w.answers(discovery.CallOutcome{Outcome: projections.OutcomeSucceeded, Result: json.RawMessage(`{}`)}, nil)
	const arguments = `{"id": 9007199254740993, "b":1,"a":2}`
	agent := w.token("agent", access.Call)
	w.ask(http.MethodPost, callPath, `{"arguments":`+arguments+`,"timeout_ms":2500}`, bearer(agent)).is(http.StatusOK)
	w.ask(http.MethodPost, callPath, "").is(http.StatusOK)
	w.ask(http.MethodPost, callPath, `{"arguments":null}`).is(http.StatusOK)

	with, without, null := w.discovery.called[0], w.discovery.called[1], w.discovery.called[2]
	want(t, "arguments", string(with.Arguments), arguments)
	want(t, "timeout", with.Timeout, 2500*time.Millisecond)
	want(t, "caller", with.Caller, "agent")
	want(t, "caller without a token", without.Caller, "local")
	want(t, "arguments of a call without a body", len(without.Arguments)+len(null.Arguments), 0)
}

func TestNamesInTheirPathAreUnescapedOnce(t *testing.T) {
	w := newWorld(t)
	w.answers(discovery.CallOutcome{Outcome: projections.OutcomeSucceeded, Result: json.RawMessage(`{}`)}, nil)
	for _, c := range []struct{ path, server, tool string }{
		{"/api/servers/a%2Fb/tools/files%2Fread/call", "a/b", "files/read"},
		{"/api/servers/100%25/tools/a%2541/call", "100%", "a%41"},
		{"/api/servers/a%20b/tools/call/call", "a b", "call"},
		{"/api/servers/caf%C3%A9/tools/%E5%A4%A9%E6%B0%97/call", "café", "天気"},
	} {
		a := w.ask(http.MethodPost, c.path, "").is(http.StatusOK)
		called := w.discovery.called[len(w.discovery.called)-1]
		want(t, c.path+" names the server", called.Server, events.ServerName(c.server))
		want(t, c.path+" names the tool", called.Tool, c.tool)
		want(t, c.path+" answers with the tool", a.at("tool"), c.tool)
	}
}

func TestAResultIsAnsweredByteForByte(t *testing.T) {
	w := newWorld(t)
	const result = `{ "content":[{"type":"hologram","n":9007199254740993,"html":"<b>&</b>"}],
  "structuredContent":{"b":1.0,"a":1e400},"isError":false,"x-own":null }`
	w.answers(discovery.CallOutcome{
		CallID: "c1", EventID: "e1", Outcome: projections.OutcomeSucceeded, Duration: 1500 * time.Millisecond,
		Dispatched: true, Result: json.RawMessage(result),
	}, nil)
	r := httptest.NewRequest(http.MethodPost, callPath, nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	const whole = `{"call_id":"c1","dispatched":true,"duration_ms":1500,"event_id":"e1","failure":null,` +
		`"outcome":"succeeded","server":"weather","tool":"forecast","result":` + result + "}\n"
	want(t, "answer", rec.Body.String(), whole)
}

func TestFailedAndRefusedCallsAreAnswersToo(t *testing.T) {
	w := newWorld(t)
	w.answers(discovery.CallOutcome{
		CallID: "c1", EventID: "e1", Outcome: projections.OutcomeFailed, Dispatched: true,
		RPC: &upstream.RPCError{Code: -32042, Message: "refused", Data: json.RawMessage(`{"n":9007199254740993}`)},
		Failure: &discovery.CallFailure{
			Class: rules.ClassToolError, Code: discovery.CodeRemoteMCPError, Detail: "refused",
			Evidence: events.Evidence{ErrorKind: events.KindJSONRPC, JSONRPCCode: new(-32042)},
		},
	}, nil)
	a := w.ask(http.MethodPost, callPath, "").is(http.StatusOK)
	want(t, "outcome", a.at("outcome"), "failed")
	want(t, "result", a.at("result"), any(nil))
	want(t, "code", a.at("failure", "code"), "remote_mcp_error")
	want(t, "JSON-RPC code", a.at("failure", "jsonrpc_code"), -32042.0)
	want(t, "since", a.at("failure", "since"), any(nil))
	if !contains(a.body, `"jsonrpc_data":{"n":9007199254740993}`) {
		t.Errorf("the error's data was changed:\n%s", a.body)
	}

	w.answers(discovery.CallOutcome{
		CallID: "c2", EventID: "e2", Outcome: projections.OutcomeRefused,
		Failure: &discovery.CallFailure{
			Code: discovery.CodeSkipped, Detail: "No module named x", Since: noon, RetryAfter: time.Minute,
			ClearsOn: []string{projections.ClearsOnExpiry, projections.ClearsOnManual},
		},
	}, nil)
	a = w.ask(http.MethodPost, callPath, "").is(http.StatusOK)
	want(t, "dispatched", a.at("dispatched"), false)
	want(t, "since", a.at("failure", "since"), "2026-03-04T12:00:00.000Z")
	want(t, "retry", a.at("failure", "retry_after_ms"), 60_000.0)
	want(t, "what clears it", a.at("failure", "clears_on", 1), "manual")

	const toolError = `{"content":[{"type":"text","text":"no such city"}],"isError":true}`
	w.answers(discovery.CallOutcome{
		Outcome: projections.OutcomeFailed, Dispatched: true, Result: json.RawMessage(toolError),
		Failure: &discovery.CallFailure{Class: rules.ClassToolError, Code: discovery.CodeToolError},
	}, nil)
	a = w.ask(http.MethodPost, callPath, "").is(http.StatusOK)
	want(t, "a tool error comes with its result", a.at("result", "isError"), true)
}

func TestCallsWithoutARecordedOutcomeAreProblems(t *testing.T) {
	w := newWorld(t)
	w.answers(discovery.CallOutcome{}, discovery.ErrUnknownServer)
	w.ask(http.MethodPost, callPath, "").refused(http.StatusNotFound, "server_not_found")
	w.answers(discovery.CallOutcome{}, fmt.Errorf("start: %w", events.ErrUnavailable))
	w.ask(http.MethodPost, callPath, "").refused(http.StatusServiceUnavailable, "log_unavailable")
	w.answers(discovery.CallOutcome{}, discovery.ErrStopping)
	w.ask(http.MethodPost, callPath, "").refused(http.StatusServiceUnavailable, "stopping")
	w.answers(discovery.CallOutcome{CallID: "c9", Dispatched: true}, fmt.Errorf("%w: disk full", discovery.ErrOutcomeUnrecorded))
	a := w.ask(http.MethodPost, callPath, "").refused(http.StatusInternalServerError, "outcome_unrecorded")
	want(t, "call", a.at("call_id"), "c9")
	want(t, "dispatched", a.at("dispatched"), true)
	if !strings.Contains(w.logged.String(), "disk full") {
		t.Error("the service's own log does not say why")
	}
}

func TestACallThatIsNotOneIsNotPassedOn(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{
		`{"arguments":[]}`, `{"arguments":"x"}`, `{"arguments":7}`, `{"timeout_ms":-1}`, `{"timeout_ms":900001}`,
		`{"timeout_ms":1.5}`, `{"argument":{}}`, `{"arguments":{}} {}`, `{"arguments":{`, `[]`,
	} {
		w.ask(http.MethodPost, callPath, body).refused(http.StatusBadRequest, "bad_body")
	}
	big := `{"arguments":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`
	w.ask(http.MethodPost, callPath, big).refused(http.StatusRequestEntityTooLarge, "body_too_large")
	w.ask(http.MethodPost, callPath+"?at=1", "").refused(http.StatusBadRequest, "unknown_parameter")
	want(t, "calls passed on", len(w.discovery.called), 0)
	w.answers(discovery.CallOutcome{Outcome: projections.OutcomeSucceeded, Result: json.RawMessage(`{}`)}, nil)
	long := `{"arguments":{"x":"` + strings.Repeat("x", 3<<20) + `"}}`
	w.ask(http.MethodPost, callPath, long).is(http.StatusOK)
}

func TestAClientThatGoesAwayCancelsItsCall(t *testing.T) {
	w := newWorld(t)
	begun, ended := make(chan struct{}), make(chan error, 1)
	w.discovery.call = func(ctx context.Context, _ discovery.Call) (discovery.CallOutcome, error) {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return discovery.CallOutcome{}, ctx.Err()
	}
	service := httptest.NewServer(w.api)
	defer service.Close()
	ctx, goAway := context.WithCancel(t.Context())
	var client sync.WaitGroup
	client.Go(func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, service.URL+callPath, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := http.DefaultClient.Do(r); !errors.Is(err, context.Canceled) {
			t.Errorf("the client got %v", err)
		}
	})
	<-begun
	goAway()
	client.Wait()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v, want %v", err, context.Canceled)
	}
}

func TestTooManyCallsAtOnceAreRefusedAndReadsGoOn(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	w.discovery.call = func(context.Context, discovery.Call) (discovery.CallOutcome, error) {
		<-release
		return discovery.CallOutcome{Outcome: projections.OutcomeSucceeded}, nil
	}
	const sent, taken = 300, 256
	statuses := make(chan int, sent)
	var calls sync.WaitGroup
	for range sent {
		calls.Go(func() {
			r := httptest.NewRequest(http.MethodPost, callPath, nil)
			r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
			rec := httptest.NewRecorder()
			w.api.ServeHTTP(rec, r)
			statuses <- rec.Code
		})
	}
	for range sent - taken {
		want(t, "a call beyond the bound", <-statuses, http.StatusTooManyRequests)
	}
	w.get("/api/tools").is(http.StatusOK)
	close(release)
	calls.Wait()
	for range taken {
		want(t, "a call within the bound", <-statuses, http.StatusOK)
	}
}
