package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// connections are the ways to reach a healthy server.
var connections = []struct {
	name   string
	target func(t *testing.T) upstream.Target
}{
	{"stdio", func(*testing.T) upstream.Target { return target(mcptest.Fake{Tools: 30, PageSize: 7}) }},
	{"stdio, 2026-07-28", func(*testing.T) upstream.Target {
		return target(mcptest.Fake{Era: mcptest.Modern, Tools: 30, PageSize: 7})
	}},
	{"http", func(t *testing.T) upstream.Target {
		return remote(mcptest.NewHTTP(t, mcptest.HTTP{Tools: 30, PageSize: 7}))
	}},
	{"http with events", func(t *testing.T) upstream.Target {
		return remote(mcptest.NewHTTP(t, mcptest.HTTP{Events: true, Tools: 30, PageSize: 7}))
	}},
	{"http, 2026-07-28", func(t *testing.T) upstream.Target {
		return remote(mcptest.NewHTTP(t, mcptest.HTTP{Era: mcptest.Modern, Tools: 30, PageSize: 7}))
	}},
	{"sse", func(t *testing.T) upstream.Target {
		target := remote(mcptest.NewHTTP(t, mcptest.HTTP{SSE: true, Tools: 30, PageSize: 7}))
		target.Transport = events.TransportSSE
		return target
	}},
}

func TestAHealthyServerTellsWhatItIs(t *testing.T) {
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			info := open(t, c.target(t)).Info()
			want := upstream.Info{
				ProtocolVersion: "2025-11-25",
				Era:             upstream.EraLegacy,
				Server:          events.ServerInfo{Name: "fake", Version: "1.2.3", Title: "A fake"},
				Capabilities:    json.RawMessage(`{"tools":{"listChanged":true}}`),
				Instructions:    "Ask kindly.",
				ProcessGroup:    info.ProcessGroup,
			}
			if strings.HasSuffix(c.name, "2026-07-28") {
				want.ProtocolVersion, want.Era = "2026-07-28", upstream.EraModern
			}
			if diff := cmp.Diff(want, info); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
			if (info.ProcessGroup != 0) != strings.HasPrefix(c.name, "stdio") {
				t.Errorf("process group %d", info.ProcessGroup)
			}
		})
	}
}

func TestToolsAreListedOverAllPagesAsSent(t *testing.T) {
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			catalogue, err := open(t, c.target(t)).ListTools(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := mcptest.StandingTools + 30; catalogue.Len() != want || len(catalogue.Names()) != want {
				t.Errorf("%d tools, %d names, want %d", catalogue.Len(), len(catalogue.Names()), want)
			}
			echo, ok := catalogue.Tool("echo")
			if !ok || !strings.Contains(string(echo), `"$schema":"https://json-schema.org/draft/2020-12/schema"`) ||
				!strings.Contains(string(echo), `"maximum":9007199254740993`) || !strings.Contains(string(echo), `"x-order":["text","n"]`) {
				t.Errorf("echo is not as sent: %s", echo)
			}
		})
	}
}

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
			s := open(t, c.target(t))
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

			_, err = s.CallTool(t.Context(), "wait", nil, upstream.CallOptions{Total: 200 * time.Millisecond})
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
			time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("the caller left")) })
			_, err = s.CallTool(ctx, "wait", nil, upstream.CallOptions{})
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
		if c.name == "http" || c.name == "http, 2026-07-28" {
			continue // answers without a stream have no room for progress
		}
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			var got []upstream.Progress
			_, err := open(t, c.target(t)).CallTool(t.Context(), "steps", nil, upstream.CallOptions{
				Silence:  10 * time.Second,
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
	_, err := open(t, target(mcptest.Fake{})).CallTool(t.Context(), "wait", nil, upstream.CallOptions{Silence: 150 * time.Millisecond})
	wantCall(t, err, events.Evidence{
		Phase: events.PhaseCallTool, Transport: events.TransportStdio, ErrorKind: events.KindTimeoutBody,
		Error: "did not answer the call or report progress within 150ms", Dispatched: true, LimitMS: 150,
	})
}

func TestAChangeOfToolsIsAnnouncedWithoutBlockingTheSession(t *testing.T) {
	checkLeaks(t)
	changed := make(chan int, 1)
	var s *upstream.Session
	server := target(mcptest.Fake{})
	ready := make(chan struct{})
	server.OnToolsChanged = func() {
		<-ready
		catalogue, err := s.ListTools(context.Background())
		if err != nil {
			t.Errorf("list: %v", err)
		}
		changed <- catalogue.Len()
	}
	s = open(t, server)
	close(ready)
	if _, err := s.CallTool(t.Context(), "change", nil, upstream.CallOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-changed:
		if n != mcptest.StandingTools {
			t.Errorf("%d tools", n)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("not announced")
	}
}

func TestTheServersOwnRequestsAreDeclined(t *testing.T) {
	checkLeaks(t)
	result, err := open(t, target(mcptest.Fake{})).CallTool(t.Context(), "ask", nil, upstream.CallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(result), `-32601`) || !strings.Contains(string(result), "sampling/createMessage is not offered") {
		t.Errorf("answered with %s", result)
	}
}

func TestASessionEndsWithItsProcess(t *testing.T) {
	checkLeaks(t)
	s := open(t, target(mcptest.Fake{Stderr: "ready\n"}))
	_, err := s.CallTool(t.Context(), "exit", nil, upstream.CallOptions{})
	want := events.Evidence{
		Phase: events.PhaseCallTool, Transport: events.TransportStdio, Command: "fake", ProtocolVersion: "2025-11-25",
		Error: "process exited with code 7", ErrorKind: events.KindExit, ExitCode: ptr(7), EndedBy: events.EndedByServer,
		StderrTail: "ready", StderrBytes: 6, StderrLastMS: ptr(int64(0)), Dispatched: true,
	}
	wantEvidence(t, evidenceOf(t, err), want)

	<-s.Done()
	if ev := evidenceOf(t, s.Err()); ev.ErrorKind != events.KindExit || *ev.ExitCode != 7 {
		t.Errorf("session ended by %+v", ev)
	}
	_, err = s.CallTool(t.Context(), "echo", nil, upstream.CallOptions{})
	want.Dispatched = false
	wantEvidence(t, evidenceOf(t, err), want)
}

func TestAnIdleProcessThatDiesIsNoticed(t *testing.T) {
	checkLeaks(t)
	s := open(t, target(mcptest.Fake{Fault: mcptest.Exit, At: "notifications/initialized", ExitCode: 4}))
	select {
	case <-s.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("not noticed")
	}
	if ev := evidenceOf(t, s.Err()); ev.ErrorKind != events.KindExit || *ev.ExitCode != 4 {
		t.Errorf("session ended by %+v", ev)
	}
}

func TestAnAnswerBeforeTheExitCounts(t *testing.T) {
	checkLeaks(t)
	for range 20 {
		s := open(t, target(mcptest.Fake{Fault: mcptest.NoNewline, At: "tools/call"}))
		if _, err := s.CallTool(t.Context(), "echo", json.RawMessage(`{}`), upstream.CallOptions{}); err != nil {
			t.Fatalf("answer lost: %v", err)
		}
	}
}

func TestClosingEndsEvenAStubbornServerAndItsChildren(t *testing.T) {
	checkLeaks(t)
	pid := filepath.Join(t.TempDir(), "pid")
	s, err := upstream.Open(t.Context(), target(mcptest.Fake{Stubborn: true, Grandchild: pid}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s with a budget of 100 ms", took)
	}
	awaitDeath(t, pid)
	if !errors.Is(s.Err(), upstream.ErrClosed) {
		t.Errorf("session ended by %v", s.Err())
	}
	_, err = s.CallTool(t.Context(), "echo", nil, upstream.CallOptions{})
	if ev := evidenceOf(t, err); ev.EndedBy != events.EndedByUs || ev.Dispatched {
		t.Errorf("a call after our own close: %+v", ev)
	}
}

func TestACallInFlightAtTheCloseIsNoCrash(t *testing.T) {
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			s := open(t, c.target(t))
			failed := make(chan error, 1)
			go func() {
				_, err := s.CallTool(context.Background(), "wait", nil, upstream.CallOptions{})
				failed <- err
			}()
			time.Sleep(100 * time.Millisecond)
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
	_, err := s.CallTool(t.Context(), "echo", large, upstream.CallOptions{Total: 200 * time.Millisecond})
	if ev := evidenceOf(t, err); ev.ErrorKind != events.KindTimeoutBody || ev.LimitMS != 200 {
		t.Errorf("evidence %+v", ev)
	}
}

func TestAServerMayRefuseToListToolsItDoesNotHave(t *testing.T) {
	checkLeaks(t)
	_, err := open(t, target(mcptest.Fake{Fault: mcptest.Error, At: "tools/list", Code: -32601, Message: "Method not found", Stderr: "no such method\n"})).ListTools(t.Context())
	wantEvidence(t, evidenceOf(t, err), events.Evidence{
		Phase: events.PhaseListTools, Transport: events.TransportStdio, Command: "fake", ProtocolVersion: "2025-11-25",
		Error: "Method not found", ErrorKind: events.KindJSONRPC, JSONRPCCode: ptr(-32601), JSONRPCMessage: "Method not found",
		StderrTail: "no such method", StderrBytes: 15, StderrLastMS: ptr(int64(0)),
	})
}

func TestTheEraIsFoundAndRemembered(t *testing.T) {
	tests := []struct {
		name     string
		server   mcptest.Era
		hint     upstream.Era
		want     upstream.Era
		launches int
	}{
		{"a legacy server", mcptest.Legacy, upstream.EraAuto, upstream.EraLegacy, 1},
		{"a modern server refuses initialize and is asked to discover", mcptest.Modern, upstream.EraAuto, upstream.EraModern, 1},
		{"a server of both eras is taken at its first word", mcptest.Both, upstream.EraAuto, upstream.EraLegacy, 1},
		{"a server known as modern", mcptest.Both, upstream.EraModern, upstream.EraModern, 1},
		{"a server no longer modern is started anew", mcptest.Spoilt, upstream.EraModern, upstream.EraLegacy, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkLeaks(t)
			launches := filepath.Join(t.TempDir(), "launches")
			server := target(mcptest.Fake{Era: tt.server, Launches: launches})
			server.Era = tt.hint
			s := open(t, server)
			if got := s.Info().Era; got != tt.want {
				t.Errorf("era %q, want %q", got, tt.want)
			}
			if got := mcptest.Launches(launches); got != tt.launches {
				t.Errorf("%d launches, want %d", got, tt.launches)
			}
			if _, err := s.CallTool(t.Context(), "echo", nil, upstream.CallOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestASilentServerIsAskedOnce(t *testing.T) {
	checkLeaks(t)
	launches := filepath.Join(t.TempDir(), "launches")
	server := target(mcptest.Fake{Fault: mcptest.Silent, Launches: launches})
	server.Budget.Total = 200 * time.Millisecond
	openFails(t, server)
	if got := mcptest.Launches(launches); got != 1 {
		t.Errorf("%d launches, want 1", got)
	}
}

func TestAServerSeesItsOwnEnvironmentOnly(t *testing.T) {
	checkLeaks(t)
	t.Setenv("OTHER_SERVERS_KEY", "other")
	t.Setenv("MCPLEDGER_TOKEN", "ours")
	server := target(mcptest.Fake{})
	server.Args = []string{"--flag", "value with space"}
	result, err := open(t, server).CallTool(t.Context(), "environ", nil, upstream.CallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := string(result)
	for _, want := range []string{"API_KEY=" + secret, "PATH=", `--flag\nvalue with space`} {
		if !strings.Contains(seen, want) {
			t.Errorf("lacks %s", want)
		}
	}
	for _, foreign := range []string{"OTHER_SERVERS_KEY", "MCPLEDGER_"} {
		if strings.Contains(seen, foreign) {
			t.Errorf("holds %s", foreign)
		}
	}
}

func TestAServerInheritsNoDescriptors(t *testing.T) {
	checkLeaks(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	s := open(t, target(mcptest.Fake{}))
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Info().ProcessGroup))
	if err != nil {
		t.Skip("no /proc")
	}
	for _, entry := range entries {
		link, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.Info().ProcessGroup, entry.Name()))
		if link == file.Name() {
			t.Errorf("the server holds %s", link)
		}
	}
}

func TestStderrOfAHealthyServerCanBeRead(t *testing.T) {
	checkLeaks(t)
	s := open(t, target(mcptest.Fake{Stderr: "listening, key ${API_KEY}, and ready to serve\n", Banner: "Welcome!\n"}))
	_, tail, stray := s.Stderr()
	if want := "listening, key «API_KEY», and ready to serve"; tail != want {
		t.Errorf("stderr %q, want %q", tail, want)
	}
	if diff := cmp.Diff(&events.Junk{Count: 1, Excerpt: "Welcome!"}, stray); diff != "" {
		t.Errorf("stray lines (-want +got):\n%s", diff)
	}
}
