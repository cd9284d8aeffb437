//go:build soak

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// soakTraffic is what clients and people do to the service of a soak.
type soakTraffic struct {
	t       *testing.T
	service *mortalService
	client  *client
	fleet   *soakFleet

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	busy   chan struct{} // holds one for each thing that is being done

	succeeded, failed, refused, clients, followed, late atomic.Int64
}

// busiest bounds how many things are done at the same time.
const busiest = 32

func newSoakTraffic(t *testing.T, s *mortalService, f *soakFleet) *soakTraffic {
	traffic := &soakTraffic{t: t, service: s, client: s.client(), fleet: f, busy: make(chan struct{}, busiest)}
	traffic.ctx, traffic.cancel = context.WithCancel(t.Context())
	t.Cleanup(traffic.end)
	return traffic
}

// begin has everything done at its rate in a busy hour, times the speed.
func (s *soakTraffic) begin(speed int) {
	for _, w := range []struct {
		anHour int
		what   func() error
	}{
		{600, s.call},
		{60, s.visit},
		{360, s.read},
		{180, s.report},
		{6, s.replay},
		{12, s.pinAndClear},
		{12, s.discover},
		{12, func() error { s.fleet.editConfig(); return nil }},
		{6, func() error { s.fleet.replaceProgram(); return nil }},
		{12, func() error { oneOf(s.fleet.flapping).swap(http.StatusServiceUnavailable); return nil }},
		{12, func() error { oneOf(s.fleet.gated).swap(http.StatusUnauthorized); return nil }},
	} {
		s.every(time.Hour/time.Duration(w.anHour*speed), w.what)
	}
	for range 4 {
		s.work.Go(func() {
			last := 0
			s.service.resumeAgainAndAgain(s.ctx, "0", 400, func(sequence, _ string) {
				s.followed.Add(1)
				if last++; sequence != fmt.Sprint(last) {
					s.t.Errorf("the stream had event %s after %d", sequence, last-1)
				}
			})
		})
	}
}

// every does something in regular turns. A turn for which all hands are busy is left
// out.
func (s *soakTraffic) every(interval time.Duration, what func() error) {
	s.work.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-s.ctx.Done():
				return
			}
			select {
			case s.busy <- struct{}{}:
				s.work.Go(func() {
					defer func() { <-s.busy }()
					if err := what(); err != nil && s.ctx.Err() == nil {
						s.t.Error(err)
					}
				})
			default:
				s.late.Add(1)
			}
		}
	})
}

// end stops all of it.
func (s *soakTraffic) end() {
	s.cancel()
	s.work.Wait()
}

// String says how much there was.
func (s *soakTraffic) String() string {
	return fmt.Sprintf("%d calls succeeded, %d failed, %d were refused; %d MCP clients came; followers saw %d events; %d turns left out",
		s.succeeded.Load(), s.failed.Load(), s.refused.Load(), s.clients.Load(), s.followed.Load(), s.late.Load())
}

func oneOf[T any](of []T) T { return of[rand.N(len(of))] }

// call calls a tool of any server.
func (s *soakTraffic) call() error {
	tool := oneOf(s.fleet.callable)
	var answer api.CallAnswer
	path := "/api/servers/" + tool.server + "/tools/" + tool.tool + "/call"
	if err := s.client.post(s.ctx, path, nil, map[string]any{"arguments": tool.arguments}, &answer); err != nil {
		return fmt.Errorf("call %s: %w", tool.server, err)
	}
	switch answer.Outcome {
	case projections.OutcomeSucceeded:
		s.succeeded.Add(1)
	case projections.OutcomeRefused:
		s.refused.Add(1)
	default:
		s.failed.Add(1)
	}
	return nil
}

// read asks one of the questions that dashboards and people ask.
func (s *soakTraffic) read() error {
	server := oneOf(s.fleet.callable).server
	path := oneOf([]string{
		"/api/tools", "/api/servers", "/api/servers/" + server + "/why", "/api/servers/" + server + "/history",
		"/api/skips", "/api/health", "/api/events?order=desc", "/api/runs", "/api/config", "/metrics",
		fmt.Sprintf("/api/servers?at=%d", 1+rand.N(100)),
	})
	res, err := s.client.openReady(s.ctx, http.MethodGet, path, nil, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// report reports an outcome as a host with its own client does.
func (s *soakTraffic) report() error {
	body := map[string]any{
		"id": fmt.Sprint(rand.Uint64()), "type": "toolcall.failed", "subject": fmt.Sprintf("theirs-%d", rand.N(5)),
		"data": map[string]any{"tool": "search", "evidence": map[string]any{"error": "timed out"}},
		"time": time.Now().UTC().Format(time.RFC3339Nano),
	}
	return s.client.post(s.ctx, "/api/events", nil, body, nil)
}

// replay backtests a set and waits for the report.
func (s *soakTraffic) replay() error {
	var accepted api.ReplayAccepted
	asked := map[string]any{"rules": map[string]any{"set": "default"}}
	if err := s.client.post(s.ctx, "/api/replays", nil, asked, &accepted); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	tick := time.NewTicker(replayPoll)
	defer tick.Stop()
	for {
		var now api.Replay
		if err := s.client.get(s.ctx, "/api/replays/"+url.PathEscape(accepted.ReplayId), nil, &now); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		if now.Status != api.ReplayStatusRunning {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return nil
		}
	}
}

// pinAndClear sets a server aside and clears it.
func (s *soakTraffic) pinAndClear() error {
	path := "/api/servers/" + oneOf(s.fleet.callable).server + "/skip"
	if err := s.client.ask(s.ctx, http.MethodPut, path, nil, map[string]any{"reason": "looked at"}, nil); err != nil {
		return fmt.Errorf("pin: %w", err)
	}
	return s.client.ask(s.ctx, http.MethodDelete, path, nil, nil, nil)
}

// discover has a server attempted, whatever its skip says.
func (s *soakTraffic) discover() error {
	err := s.client.post(s.ctx, "/api/servers/"+oneOf(s.fleet.callable).server+"/discover", nil, map[string]any{}, nil)
	if err != nil {
		return fmt.Errorf("discover: %w", err)
	}
	return nil
}

// visit is an MCP client: it opens a session at the gateway, lists the tools, calls
// one, listens for a while, and then either says goodbye or vanishes.
func (s *soakTraffic) visit() error {
	s.clients.Add(1)
	session := ""
	send := func(ctx context.Context, method, body string) (string, error) {
		r, err := http.NewRequestWithContext(ctx, method, s.service.address+"/mcp", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		if session == "" {
			session = res.Header.Get("Mcp-Session-Id")
		}
		answer, err := io.ReadAll(res.Body)
		if res.StatusCode >= http.StatusBadRequest {
			return "", fmt.Errorf("the gateway answered %s to %s: %s", res.Status, method, answer)
		}
		return string(answer), err
	}
	tool := oneOf(s.fleet.callable)
	arguments, err := json.Marshal(tool.arguments)
	if err != nil {
		return err
	}
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"%s__%s","arguments":%s}}`, tool.server, tool.tool, arguments),
	} {
		if _, err := send(s.ctx, http.MethodPost, message); err != nil {
			return fmt.Errorf("visit: %w", err)
		}
	}
	listening, vanish := context.WithTimeout(s.ctx, time.Second)
	defer vanish()
	_, _ = send(listening, http.MethodGet, "") // until the client has had enough
	if rand.N(2) == 0 {
		return nil
	}
	_, err = send(s.ctx, http.MethodDelete, "")
	return err
}
