package httpapi_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/httpapi"
	"mcpledger/projections/replay"
	"mcpledger/projections/rules"
)

// dammedLog is a log whose events are read on only while its dam is open.
type dammedLog struct {
	events.Log
	dam chan struct{} // closed: open
}

func (l dammedLog) Read(ctx context.Context, q events.Query) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		select {
		case <-l.dam:
		case <-ctx.Done():
			yield(events.Event{}, ctx.Err())
			return
		}
		l.Log.Read(ctx, q)(yield)
	}
}

// dammed returns a world whose replays do not go on before open is called.
func dammed(t testing.TB) (w *world, open func()) {
	dam := make(chan struct{})
	w = newWorld(t, func(c *httpapi.Config) { c.Log = dammedLog{c.Log, dam} })
	return w, func() { close(dam) }
}

// replay starts one and returns its path.
func (w *world) replay(body string) string {
	w.Helper()
	a := w.operate(http.MethodPost, "/api/replays", body).is(http.StatusAccepted)
	return "/api/replays/" + a.at("replay_id").(string)
}

// replayed waits for the end of a replay.
func (w *world) replayed(path string) answer {
	w.Helper()
	for {
		if a := w.get(path).is(http.StatusOK); a.at("status") != "running" {
			return a
		}
	}
}

func withRules(t testing.TB, text string, more ...any) string {
	t.Helper()
	body := map[string]any{"rules": text}
	for i := 0; i < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAReplaySaysWhatAnotherRuleSetWouldHaveDone(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	w.fail("weather")
	w.fail("weather")
	w.succeed("weather", weatherTools)
	w.configure("calm")
	w.succeed("calm", weatherTools)
	before := w.head()
	a := w.replayed(w.replay(withRules(t, hasty(t))))
	want(t, "status", a.at("status"), "done")
	want(t, "progress", a.at("progress"), 1.0)
	want(t, "verdict", a.at("report", "verdict"), "worse")
	want(t, "candidate", a.at("report", "candidate", "set"), "hasty")
	want(t, "baseline", a.at("report", "baseline", "set"), "default")
	want(t, "head", w.head(), before)

	// It is the report of the library, as it writes it.
	set, err := rules.Parse("hasty", []byte(hasty(t)))
	w.must(err)
	own, err := replay.Run(t.Context(), w.log, rules.Default(), set, replay.Options{})
	w.must(err)
	var answered struct {
		Report replay.Report `json:"report"`
	}
	a.into(&answered)
	answered.Report.DurationMS = 0
	if diff := cmp.Diff(own, answered.Report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}

	a = w.replayed(w.replay(`{"rules":{"set":"default"}}`))
	want(t, "verdict against itself", a.at("report", "verdict"), "same")
	a = w.replayed(w.replay(withRules(t, hasty(t), "servers", []string{"calm"}, "all", true)))
	if diff := cmp.Diff([]string{"calm"}, a.names("server", "report", "servers")); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	a = w.replayed(w.replay(withRules(t, hasty(t), "until", noon.Format("2006-01-02T15:04:05Z"))))
	want(t, "failures before all of them", a.at("report", "totals", "failures"), 0.0)
}

func TestOneReplayRunsThreeWaitAndNoMoreAreTaken(t *testing.T) {
	w, open := dammed(t)
	w.configure("weather")
	w.fail("weather")
	var paths []string
	for range 4 {
		paths = append(paths, w.replay(withRules(t, hasty(t))))
	}
	a := w.operate(http.MethodPost, "/api/replays", withRules(t, hasty(t))).refused(http.StatusTooManyRequests, "too_many_replays")
	want(t, "Retry-After", a.header.Get("Retry-After"), "1")
	for i, path := range paths {
		a := w.get(path).is(http.StatusOK)
		want(t, "status", a.at("status"), "running")
		want(t, "waiting", a.at("waiting"), i > 0)
		want(t, "report", a.at("report"), any(nil))
	}
	// One that waits makes room at once when it is cancelled.
	w.operate(http.MethodDelete, paths[2], "").is(http.StatusNoContent)
	want(t, "error", w.get(paths[2]).at("error"), "cancelled by request")
	paths[2] = w.replay(withRules(t, hasty(t)))
	open()
	for _, path := range paths {
		want(t, "status", w.replayed(path).at("status"), "done")
	}
}

func TestAReplayIsCancelledWhileItRuns(t *testing.T) {
	w, open := dammed(t)
	running, next := w.replay(`{"rules":{"set":"default"}}`), w.replay(`{"rules":{"set":"default"}}`)
	w.operate(http.MethodDelete, running, "").is(http.StatusNoContent)
	a := w.get(running).is(http.StatusOK)
	want(t, "status", a.at("status"), "failed")
	want(t, "error", a.at("error"), "cancelled by request")
	open()
	want(t, "the next one", w.replayed(next).at("status"), "done")
	w.operate(http.MethodDelete, next, "").is(http.StatusNoContent)
	want(t, "one that has ended", w.get(next).at("status"), "done")
	w.operate(http.MethodDelete, "/api/replays/none", "").refused(http.StatusNotFound, "replay_not_found")
}

func TestOnlyTheLastReplaysAreKept(t *testing.T) {
	w := newWorld(t)
	first := w.replay(`{"rules":{"set":"default"}}`)
	w.replayed(first)
	for range 16 {
		w.replayed(w.replay(`{"rules":{"set":"default"}}`))
	}
	w.get(first).refused(http.StatusNotFound, "replay_not_found")
}

func TestAReplayThatIsNotOneIsRefused(t *testing.T) {
	w := newWorld(t)
	for body, c := range map[string]struct {
		status int
		code   string
	}{
		``:                             {400, "bad_body"},
		`{}`:                           {400, "bad_body"},
		`{"rules":null}`:               {400, "bad_body"},
		`{"rules":{"name":"default"}}`: {400, "bad_body"},
		`{"rules":{"set":"none"}}`:     {400, "unknown_rules"},
		`{"rules":"rules: ["}`:         {422, "invalid_rules"},
		`{"rules":""}`:                 {422, "invalid_rules"},
		`{"rules":{"set":"default"},"since":"yesterday"}`:                                           {400, "bad_body"},
		`{"rules":{"set":"default"},"servers":["wether"]}`:                                          {400, "bad_body"},
		`{"rules":{"set":"default"},"until":"2026"}`:                                                {400, "bad_body"},
		`{"rules":{"set":"default"},"since":"2026-03-05T00:00:00Z","until":"2026-03-04T00:00:00Z"}`: {400, "bad_body"},
		`{"rules":{"set":"default"},"server":"x"}`:                                                  {400, "bad_body"},
	} {
		w.operate(http.MethodPost, "/api/replays", body).refused(c.status, c.code)
	}
	w.ask(http.MethodPost, "/api/replays", `{"rules":{"set":"default"}}`).refused(http.StatusUnauthorized, "unauthenticated")
}
