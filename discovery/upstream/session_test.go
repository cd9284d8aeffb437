package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
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

// streams reports whether progress can come before an answer.
func streams(connection string) bool {
	return connection != "http" && connection != "http, 2026-07-28"
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
	case <-time.After(patience):
		t.Fatal("not announced")
	}
}

func TestTheServersOwnRequestsAreDeclined(t *testing.T) {
	checkLeaks(t)
	result, err := open(t, target(mcptest.Fake{})).CallTool(t.Context(), "ask", nil, upstream.CallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(result), `-32601`) || !strings.Contains(string(result), "sampling/createMessage is refused") {
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
	ended := want
	ended.Phase, ended.ProtocolVersion, ended.Dispatched = "", "", false
	wantEvidence(t, evidenceOf(t, s.Err()), ended)
	_, err = s.CallTool(t.Context(), "echo", nil, upstream.CallOptions{})
	want.Dispatched = false
	wantEvidence(t, evidenceOf(t, err), want)
}

func TestAnIdleProcessThatDiesIsNoticed(t *testing.T) {
	checkLeaks(t)
	s := open(t, target(mcptest.Fake{Fault: mcptest.Exit, At: "notifications/initialized", ExitCode: 4}))
	select {
	case <-s.Done():
	case <-time.After(patience):
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
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
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

func TestAServerThatSaysItHasToolsMustListThem(t *testing.T) {
	checkLeaks(t)
	_, err := open(t, target(mcptest.Fake{Fault: mcptest.Error, At: "tools/list", Code: -32601, Message: "Method not found", Stderr: "no such method\n"})).ListTools(t.Context())
	wantEvidence(t, evidenceOf(t, err), events.Evidence{
		Phase: events.PhaseListTools, Transport: events.TransportStdio, Command: "fake", ProtocolVersion: "2025-11-25",
		Error: "Method not found", ErrorKind: events.KindJSONRPC, JSONRPCCode: ptr(-32601), JSONRPCMessage: "Method not found",
		StderrTail: "no such method", StderrBytes: 15, StderrLastMS: ptr(int64(0)),
	})
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

func TestStderrOfAHealthyServerCanBeRead(t *testing.T) {
	checkLeaks(t)
	s := open(t, target(mcptest.Fake{Stderr: "listening, key ${API_KEY}, and ready to serve\n", Banner: "Welcome!\n"}))
	var tail string
	var stray *events.Junk
	eventually(t, "all of stderr is there, masked", func() bool {
		_, tail, stray = s.Stderr()
		return tail == "listening, key «API_KEY», and ready to serve"
	})
	if diff := cmp.Diff(&events.Junk{Count: 1, Excerpt: "Welcome!"}, stray); diff != "" {
		t.Errorf("stray lines (-want +got):\n%s", diff)
	}
}
