package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

func TestCallsAreRawBothWays(t *testing.T) {
	const arguments = `{"text":"a<b & ü","n":9007199254740993,"z":{"b":1,"a":[]}}`
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			result, err := open(t, c.target(t)).CallTool(t.Context(), "echo", json.RawMessage(arguments), upstream.CallOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				StructuredContent json.RawMessage `json:"structuredContent"`
			}
			if err := json.Unmarshal(result, &got); err != nil {
				t.Fatal(err)
			}
			want := strings.NewReplacer("<", `\u003c`, "&", `\u0026`).Replace(arguments)
			if string(got.StructuredContent) != want {
				t.Errorf("came back as %s, want %s", got.StructuredContent, want)
			}
		})
	}
}

func TestAFailedCallSaysHow(t *testing.T) {
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			target := c.target(t)
			arguments, got := waiting(t)
			target.At = once(got)
			s := open(t, target)
			transport := evidenceTransport(c.name)

			result, err := s.CallTool(t.Context(), "fail", nil, upstream.CallOptions{})
			if want := `{"content":[{"type":"text","text":"no such city"}],"isError":true}`; string(result) != want {
				t.Errorf("result %s, want %s", result, want)
			}
			wantCall(t, err, events.Evidence{
				Phase: events.PhaseCallTool, Transport: transport, Error: "no such city",
				ErrorKind: events.KindToolError, Dispatched: true,
			})

			_, err = s.CallTool(t.Context(), "refuse", nil, upstream.CallOptions{})
			wantCall(t, err, events.Evidence{
				Phase: events.PhaseCallTool, Transport: transport, Error: "refused", ErrorKind: events.KindJSONRPC,
				JSONRPCCode: ptr(-32042), JSONRPCMessage: "refused", JSONRPCData: `{"n":9007199254740992}`, Dispatched: true,
			})
			var f *upstream.Failure
			if !errors.As(err, &f) || f.RPC == nil || f.RPC.Code != -32042 || f.RPC.Message != "refused" {
				t.Errorf("JSON-RPC error %+v", f)
			}

			_, err = s.CallTool(t.Context(), "wait", arguments, upstream.CallOptions{Total: 200 * time.Millisecond})
			kind := events.KindTimeoutBody
			if transport == events.TransportHTTP && c.name != "http with events" {
				kind = events.KindTimeoutHeaders
			}
			if c.name == "http with events" {
				kind = evidenceOf(t, err).ErrorKind // headers may have come or not
			}
			wantCall(t, err, events.Evidence{
				Phase: events.PhaseCallTool, Transport: transport, Error: "did not answer the call within 200ms",
				ErrorKind: kind, Dispatched: true, LimitMS: 200,
			})

			ctx, cancel := context.WithCancelCause(t.Context())
			arguments, got = waiting(t)
			defer once(got)(time.Time{}, func() { cancel(errors.New("the caller left")) }).Stop()
			_, err = s.CallTool(ctx, "wait", arguments, upstream.CallOptions{})
			wantCall(t, err, events.Evidence{
				Phase: events.PhaseCallTool, Transport: transport, Error: "the caller left",
				ErrorKind: events.KindCancelled, Dispatched: true,
			})

			if _, err := s.CallTool(t.Context(), "echo", json.RawMessage(`{}`), upstream.CallOptions{}); err != nil {
				t.Errorf("the session did not survive: %v", err)
			}
		})
	}
}

func evidenceTransport(connection string) events.Transport {
	name, _, _ := strings.Cut(strings.ReplaceAll(connection, ",", " "), " ")
	return events.Transport(name)
}

// wantCall compares what does not depend on the transport.
func wantCall(t *testing.T, err error, want events.Evidence) {
	t.Helper()
	got := evidenceOf(t, err)
	if got.Transport == events.TransportStdio {
		want.Command = "fake"
	}
	want.ProtocolVersion = got.ProtocolVersion
	got.HTTPStatus, got.ContentType, got.SessionSent = 0, "", false
	wantEvidence(t, got, want)
}

func TestManyCallsAtOnceGetTheirOwnAnswers(t *testing.T) {
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			s := open(t, c.target(t))
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					result, err := s.CallTool(t.Context(), "echo", json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)), upstream.CallOptions{})
					if want := fmt.Sprintf(`"structuredContent":{"n":%d}`, i); err != nil || !strings.Contains(string(result), want) {
						t.Errorf("call %d: %s, %v", i, result, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestProgressReachesItsCallAndRenewsItsTime(t *testing.T) {
	for _, c := range connections {
		if !streams(c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			var got []upstream.Progress
			_, err := open(t, c.target(t)).CallTool(t.Context(), "steps", nil, upstream.CallOptions{
				Silence:  patience,
				Progress: func(p upstream.Progress) { got = append(got, p) },
			})
			if err != nil {
				t.Fatal(err)
			}
			want := []upstream.Progress{{1, 3, "step 1"}, {2, 3, "step 2"}, {3, 3, "step 3"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACallWithoutProgressRunsOutOfTime(t *testing.T) {
	checkLeaks(t)
	arguments, got := waiting(t)
	target := target(mcptest.Fake{})
	target.At = once(got)
	_, err := open(t, target).CallTool(t.Context(), "wait", arguments, upstream.CallOptions{Silence: 150 * time.Millisecond})
	wantCall(t, err, events.Evidence{
		Phase: events.PhaseCallTool, Transport: events.TransportStdio, ErrorKind: events.KindTimeoutBody,
		Error: "did not answer the call or report progress within 150ms", Dispatched: true, LimitMS: 150,
	})
}

func TestACallInFlightAtTheCloseIsNoCrash(t *testing.T) {
	for _, c := range connections {
		if !streams(c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			s := open(t, c.target(t))
			failed, underWay := make(chan error, 1), make(chan bool, 1)
			go func() {
				_, err := s.CallTool(context.Background(), "wait", nil, upstream.CallOptions{
					Progress: func(upstream.Progress) { underWay <- true },
				})
				failed <- err
			}()
			<-underWay
			_ = s.Close(context.Background())
			if ev := evidenceOf(t, <-failed); ev.EndedBy != events.EndedByUs || ev.ErrorKind != events.KindCancelled || !ev.Dispatched {
				t.Errorf("evidence %+v", ev)
			}
		})
	}
}

func TestAServerThatReadsNoMoreDoesNotHoldTheCaller(t *testing.T) {
	checkLeaks(t)
	s := open(t, target(mcptest.Fake{Fault: mcptest.Deaf, At: "notifications/initialized"}))
	large := json.RawMessage(`{"text":"` + strings.Repeat("x", 2<<20) + `"}`)
	_, err := s.CallTool(t.Context(), "echo", large, upstream.CallOptions{Total: time.Second})
	if ev := evidenceOf(t, err); ev.ErrorKind != events.KindTimeoutBody || ev.LimitMS != 1000 {
		t.Errorf("evidence %+v", ev)
	}
	<-s.Done()
	if ev := evidenceOf(t, s.Err()); ev.ErrorKind != events.KindEOF || ev.Error != "stopped reading stdin" || ev.EndedBy != events.EndedByServer {
		t.Errorf("the session ended by %+v", ev)
	}
}
