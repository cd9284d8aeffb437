package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/httpapi/api"
)

// A stream is resumed by the last sequence that was seen. Whatever dropped it, the
// client or a SIGKILL of the service, what follows is what the log has: each event
// once.
func TestFollowersSeeEachEventOnceWhateverIsCut(t *testing.T) {
	const kills, between = 3, 120
	s := newMortalService(t)
	s.start()
	byFolder := s.follow("--data", s.data)
	byAddress := s.follow("--url", s.address)

	writing, stopWriting := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stopWriting()
	acknowledged := make([]map[string]bool, 3)
	for i := range acknowledged {
		acknowledged[i] = map[string]bool{}
		writers.Go(func() { s.report(writing, fmt.Sprintf("writer-%d", i), acknowledged[i]) })
	}
	writers.Go(func() { s.callAgainAndAgain(writing) })

	seen := &sighting{}
	following, stopFollowing := context.WithCancel(t.Context())
	var resuming sync.WaitGroup
	defer resuming.Wait()
	defer stopFollowing()
	resuming.Go(func() {
		s.resumeAgainAndAgain(following, "0", 40, func(sequence, data string) { seen.add(t, sequence, data) })
	})

	for range kills {
		seen.awaitMore(t, between)
		s.kill()
		s.start()
	}
	seen.awaitMore(t, between)
	stopWriting()
	writers.Wait()

	log := s.sequencesAndIDs()
	for i := range acknowledged {
		for id := range acknowledged[i] {
			if n := slices.Index(log, id); n < 0 || slices.Contains(log[n+1:], id) {
				t.Errorf("%s was accepted and is not once in the log", id)
			}
		}
	}
	seen.await(t, len(log))
	stopFollowing()
	resuming.Wait()
	if n := partAt(seen.all(), log); n < len(log) {
		t.Errorf("the resumed stream parts from the log at event %d of %d", n+1, len(log))
	}
	for name, f := range map[string]*followerProcess{"by the folder": byFolder, "by the address": byAddress} {
		waitFor(t, name+" all events are printed", func() bool { return f.lines() >= len(log) })
		said := f.stop()
		if n := partAt(f.ids(t), log); n < len(log) {
			t.Errorf("events --follow %s parts from the log at event %d of %d", name, n+1, len(log))
		}
		if !strings.Contains(said, "the stream of events ended after #") || !strings.Contains(said, "following") {
			t.Errorf("events --follow %s said of the restarts:\n%s", name, said)
		}
	}
}

// partAt returns how many events got and the log have in common from the first on. More
// may have come than the log had when it was listed.
func partAt(got, log []string) (n int) {
	for n < min(len(got), len(log)) && got[n] == log[n] {
		n++
	}
	return n
}

// mortalService is the program as a process that can be killed and started again, at
// the same address.
type mortalService struct {
	*testing.T
	program               string // by which it is started
	data, config, address string
	process               *exec.Cmd
	said                  *bytes.Buffer // by the process, to stderr
}

func newMortalService(t *testing.T) *mortalService {
	dir := t.TempDir()
	s := &mortalService{
		T: t, program: "server", data: filepath.Join(dir, "data"), config: filepath.Join(dir, "mcp.json"),
		address: "http://" + mcptest.FreeAddress(t),
	}
	body := `{"mcpServers": {"mine": {"command": "server", "args": ["sample-server", "toolbox"]}}}`
	if err := os.WriteFile(s.config, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.process != nil {
			s.kill()
		}
		if t.Failed() {
			t.Logf("the service said:\n%s", s.said)
		}
	})
	return s
}

func (s *mortalService) start() {
	s.Helper()
	s.said = &bytes.Buffer{}
	cmd := exec.Command(s.program, "--config", s.config, "--data", s.data, "--listen", strings.TrimPrefix(s.address, "http://"))
	cmd.Stderr = s.said
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.process = cmd
	waitFor(s.T, "the service is ready", func() bool {
		file, _, err := readServiceFile(s.data)
		if err != nil || file.PID != cmd.Process.Pid {
			return false
		}
		return newNetworkClient(s.address, "").get(s.Context(), "/readyz", nil, nil) == nil
	})
}

func (s *mortalService) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
}

// client returns one with the operator's token. A request of it ends with ctx.
func (s *mortalService) client() *client {
	token, err := os.ReadFile(filepath.Join(s.data, "operator.token"))
	if err != nil {
		s.Error(err)
	}
	return newNetworkClient(s.address, strings.TrimSpace(string(token)))
}

// report reports one event after the other until ctx ends, each until it is accepted,
// and notes those that are.
func (s *mortalService) report(ctx context.Context, name string, accepted map[string]bool) {
	c := s.client()
	began := time.Now().UTC().Format(time.RFC3339Nano)
	for n := 0; ctx.Err() == nil; {
		id := fmt.Sprintf("%s-%d", name, n)
		body := []map[string]any{{
			"id": id, "type": "toolcall.failed", "subject": "theirs", "time": began,
			"data": map[string]any{"tool": "search", "evidence": map[string]any{"error": "timed out"}},
		}}
		switch err := c.post(ctx, "/api/events", nil, body, nil); {
		case err == nil:
			accepted[id] = true
			n++
		case isLasting(err):
			s.Errorf("report %s: %v", id, err)
			return
		default:
			catchBreath(ctx)
		}
	}
}

// catchBreath keeps those who ask a dead service from taking the time it needs to
// start.
func catchBreath(ctx context.Context) {
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
	}
}

// callAgainAndAgain calls a tool until ctx ends, whatever comes of it.
func (s *mortalService) callAgainAndAgain(ctx context.Context) {
	c := s.client()
	for ctx.Err() == nil {
		if c.post(ctx, "/api/servers/mine/tools/count_words/call", nil, map[string]any{"arguments": map[string]any{"text": "a b"}}, nil) != nil {
			catchBreath(ctx)
		}
	}
}

// resumeAgainAndAgain follows the stream until ctx ends, dropping it at random after up
// to most events and resuming with the sequence seen last. It hands each event, with
// its sequence, to seen.
func (s *mortalService) resumeAgainAndAgain(ctx context.Context, last string, most int, seen func(sequence, data string)) {
	for ctx.Err() == nil {
		some, drop := context.WithCancel(ctx)
		r, err := http.NewRequestWithContext(some, http.MethodGet, s.address+streamPath, nil)
		if err != nil {
			s.Error(err)
		}
		r.Header.Set("Last-Event-ID", last)
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			left := 1 + rand.N(most)
			for line := range wholeLines(res.Body) {
				if id, ok := strings.CutPrefix(line, "id: "); ok {
					last = id
				} else if data, ok := strings.CutPrefix(line, "data: "); ok {
					seen(last, data)
					if left--; left == 0 {
						break
					}
				}
			}
			_ = res.Body.Close()
		} else {
			catchBreath(ctx)
		}
		drop()
	}
}

// sequencesAndIDs returns what GET /api/events lists, oldest first: each event's id,
// at the place its sequence gives.
func (s *mortalService) sequencesAndIDs() (ids []string) {
	s.Helper()
	_, all, err := list[api.Event](s.Context(), s.client(), "/api/events", url.Values{}, 0)
	if err != nil {
		s.Fatal(err)
	}
	for i, e := range all {
		if int(e.Sequence) != i+1 {
			s.Fatalf("the list has event %d at place %d", e.Sequence, i+1)
		}
		ids = append(ids, e.Id)
	}
	return ids
}

// sighting is what a client saw of the stream, in the order in which it came.
type sighting struct {
	mu  sync.Mutex
	ids []string
}

func (s *sighting) add(t *testing.T, sequence, data string) {
	var e api.Event
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		t.Errorf("event %s: %v", sequence, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, e.Id)
	if want := fmt.Sprint(len(s.ids)); sequence != want || fmt.Sprint(e.Sequence) != want {
		t.Errorf("got event %s with sequence %d, want %s", sequence, e.Sequence, want)
	}
}

func (s *sighting) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids
}

func (s *sighting) await(t *testing.T, n int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%d events are seen", n), func() bool { return len(s.all()) >= n })
}

func (s *sighting) awaitMore(t *testing.T, n int) {
	t.Helper()
	s.await(t, len(s.all())+n)
}

// waitFor asks again and again, with patience.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(2 * patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// followerProcess is "events --follow --json" as a process.
type followerProcess struct {
	cmd     *exec.Cmd
	printed *os.File
	said    bytes.Buffer
}

func (s *mortalService) follow(where ...string) *followerProcess {
	s.Helper()
	printed, err := os.CreateTemp(s.TempDir(), "followed")
	if err != nil {
		s.Fatal(err)
	}
	f := &followerProcess{cmd: exec.Command("server", append([]string{"events", "--follow", "--json", "--after", "0"}, where...)...), printed: printed}
	f.cmd.Stdout, f.cmd.Stderr = printed, &f.said
	if err := f.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		f.stop()
		printed.Close()
	})
	return f
}

// stop ends the process and returns what it wrote to stderr.
func (f *followerProcess) stop() string {
	_ = f.cmd.Process.Kill()
	_ = f.cmd.Wait()
	return f.said.String()
}

func (f *followerProcess) read() []byte {
	body, _ := io.ReadAll(io.NewSectionReader(f.printed, 0, 1<<30))
	return body
}

func (f *followerProcess) lines() int { return bytes.Count(f.read(), []byte("\n")) }

func (f *followerProcess) ids(t *testing.T) (ids []string) {
	t.Helper()
	for line := range bytes.Lines(f.read()) {
		var e api.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("printed %s: %v", line, err)
		}
		ids = append(ids, e.Id)
	}
	return ids
}
