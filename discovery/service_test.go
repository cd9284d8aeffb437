package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

const traceback = "Traceback (most recent call last):\n  File \"/srv/acme/server.py\", line 3, in <module>\n    import fitz\nModuleNotFoundError: No module named 'fitz'\n"

var dead = mcptest.Fake{Fault: mcptest.Exit, ExitCode: 1, Stderr: traceback}

func wantLaunches(t *testing.T, file string, want int, when string) {
	t.Helper()
	if got := mcptest.Launches(file); got != want {
		t.Errorf("%s: launched %d times, want %d", when, got, want)
	}
}

func TestADeadServerIsSkippedAfterThreeStarts(t *testing.T) {
	w := newWorld(t)
	launches := w.program("dead", dead)
	for n := 1; n <= 3; n++ {
		r := w.start()
		r.awaitOutcome("dead")
		r.stop()
		wantLaunches(t, launches, n, fmt.Sprintf("start %d", n))
	}

	began := w.now()
	r := w.start()
	v := r.awaitState("dead", projections.StateSkipped)
	r.await("dead", "the decision recorded", func(projections.Server) bool {
		// The start before may have come to record its own.
		return slices.ContainsFunc(r.recorded("dead", events.TypeDiscoverySkipped), func(e events.Event) bool { return !e.Time.Before(began) })
	})
	wantLaunches(t, launches, 3, "a fourth start")
	if len(v.Skip.EventIDs) != 3 || !strings.Contains(v.Reason, "fitz") || v.Cause.Rule == "" || v.Skip.Until.IsZero() {
		t.Errorf("skip does not explain itself: %s %+v", v.Reason, v.Skip)
	}
	if got := v.ClearsOn(); !slices.Contains(got, projections.ClearsOnConfigChange) || !slices.Contains(got, projections.ClearsOnManual) {
		t.Errorf("clears on %v", got)
	}

	w.entries["dead"]["description"] = "weather of the world"
	if got := r.reload()["dead"]; got != events.ChangeSettings {
		t.Errorf("a description is a change of %q", got)
	}
	if v := r.server("dead"); v.State != projections.StateSkipped {
		t.Errorf("a new description ended the skip: %s", v.State)
	}

	r.discover("dead")
	wantLaunches(t, launches, 4, "a person asked")
	if again := r.server("dead"); again.State != projections.StateSkipped || again.Skip.Until != v.Skip.Until {
		t.Errorf("a person's attempt was counted: %+v", again.Skip)
	}

	w.entries["dead"]["args"] = []string{"--fixed"}
	r.reload()
	r.await("dead", "an attempt under the new entry", func(v projections.Server) bool {
		return v.Last != nil && v.Last.Trigger == events.TriggerConfigChanged
	})
	wantLaunches(t, launches, 5, "the entry was edited")

	delete(w.entries["dead"], "args")
	r.reload()
	if v := r.server("dead"); v.State != projections.StateSkipped {
		t.Errorf("back at the old entry it is %s", v.State)
	}
	wantLaunches(t, launches, 5, "the old entry is back")
}

func TestAServerWhoseBackendWasDownForFiveStartsIsReadyAtTheSixth(t *testing.T) {
	w := newWorld(t)
	address := mcptest.FreeAddress(t)
	w.entries["remote"] = map[string]any{"url": "http://" + address + "/mcp"}
	for range 5 {
		r := w.start()
		if v := r.awaitOutcome("remote"); v.State != projections.StateFailed {
			t.Fatalf("backend down: %s, %s", v.State, v.Reason)
		}
		r.stop()
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	up := mcptest.NewHTTP(t, mcptest.HTTP{})
	server := &http.Server{Handler: up}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	w.start().awaitState("remote", projections.StateReady)
}

func TestARestartWithKnownCataloguesLaunchesNothing(t *testing.T) {
	w := newWorld(t)
	launches := w.program("healthy", mcptest.Fake{})
	r := w.start()
	first := r.awaitState("healthy", projections.StateReady)
	r.stop()
	w.logged = &lockedBuffer{}
	r = w.start()
	v := r.server("healthy")
	r.stop()
	wantLaunches(t, launches, 1, "two starts")
	if v.State != projections.StateReady || v.Live || !slices.Equal(v.Catalogue.Names, first.Catalogue.Names) {
		t.Errorf("after the restart: %s, live %v, %d tools", v.State, v.Live, len(v.Catalogue.Names))
	}
	if said := w.logged.String(); strings.Contains(said, "WARN") || strings.Contains(said, "ERROR") {
		t.Errorf("a quiet restart says:\n%s", said)
	}
}

// A run tries a server error again; what goes past a skip is one attempt.
func TestAProbeIsOneAttempt(t *testing.T) {
	w := newWorld(t)
	down := mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, At: "initialize", Status: http.StatusServiceUnavailable})
	w.entries["remote"] = map[string]any{"url": down.URL, "mcpledger": map[string]any{"skip": map[string]any{"after": 1, "ttl": "1h"}}}
	r := w.start()
	r.await("remote", "the end of the first run", func(v projections.Server) bool {
		return v.State == projections.StateSkipped && len(r.recorded("", events.TypeDiscoveryRunCompleted)) == 1
	})
	wantAsked := func(want int, when string) {
		t.Helper()
		if got := down.Count("initialize"); got != want {
			t.Errorf("%s: asked %d times, want %d", when, got, want)
		}
	}
	wantAsked(3, "the first run")
	r.discover("remote")
	wantAsked(4, "a person asked")
	r.stop()
	w.ahead.Add(int64(2 * time.Hour))
	w.start().await("remote", "the probe", func(v projections.Server) bool {
		return v.Last != nil && v.Last.Trigger == events.TriggerSkipExpired && v.Last.Outcome == projections.OutcomeFailed
	})
	wantAsked(5, "the skip was over")
}

func TestAllPagesOfToolsAreRead(t *testing.T) {
	w := newWorld(t)
	w.program("many", mcptest.Fake{Tools: 3000 - mcptest.StandingTools, PageSize: 500})
	v := w.start().awaitState("many", projections.StateReady)
	if got := len(v.Catalogue.Names); got != 3000 {
		t.Errorf("%d tools listed, want 3000", got)
	}
}

func TestEveryServerIsListedWhateverItsEntry(t *testing.T) {
	w := newWorld(t)
	w.program("healthy", mcptest.Fake{})
	w.entries["unset"] = map[string]any{"command": "true", "env": map[string]string{"TOKEN": "${ACME_TOKEN}"}}
	w.entries["malformed"] = map[string]any{"type": "carrier-pigeon"}
	w.entries["off"] = map[string]any{"command": "true", "disabled": true}
	w.entries["missing"] = map[string]any{"command": "acme-no-such-program"}
	r := w.start()
	r.awaitState("healthy", projections.StateReady)
	for name, want := range map[events.ServerName]struct {
		state projections.ServerState
		needs projections.Needs
	}{
		"healthy":   {projections.StateReady, projections.NeedsNothing},
		"unset":     {projections.StateBlocked, projections.NeedsCredential},
		"malformed": {projections.StateFailed, projections.NeedsConfig},
		"off":       {projections.StateDisabled, projections.NeedsNothing},
		"missing":   {projections.StateSkipped, projections.NeedsDependency},
	} {
		v := r.awaitState(name, want.state)
		if v.Needs != want.needs {
			t.Errorf("%s needs %s, want %s (%s)", name, v.Needs, want.needs, v.Reason)
		}
	}
	for name, want := range map[events.ServerName]error{
		"unset": discovery.ErrBlocked, "off": discovery.ErrDisabled, "nobody": discovery.ErrUnknownServer,
	} {
		if _, err := r.Discover(context.Background(), []events.ServerName{name}, "", ""); !errors.Is(err, want) {
			t.Errorf("discover %s: %v, want %v", name, err, want)
		}
	}
}

func TestChangedValuesGiveOneProbeAndKeepTheCatalogue(t *testing.T) {
	w := newWorld(t)
	w.env["SALT"] = "first-value"
	launches := w.program("salted", dead)
	w.entries["salted"]["args"] = []string{"${SALT}"}
	for range 3 {
		r := w.start()
		r.awaitOutcome("salted")
		r.stop()
	}
	r := w.start()
	r.awaitState("salted", projections.StateSkipped)
	for n := 1; n <= 5; n++ {
		w.env["SALT"] = fmt.Sprintf("value-%d", n)
		r.reload()
		probes := min(n, 3)
		r.await("salted", "the skip", func(v projections.Server) bool {
			return v.State == projections.StateSkipped && len(r.recorded("salted", events.TypeDiscoveryFailed)) == 3+probes
		})
		wantLaunches(t, launches, 3+probes, fmt.Sprintf("value %d", n))
	}
	r.discover("salted") // orders after whatever the schedule still had in mind
	wantLaunches(t, launches, 7, "a person asked after five values")
}

func TestABadConfigKeepsTheLastGoodOne(t *testing.T) {
	w := newWorld(t)
	w.program("healthy", mcptest.Fake{})
	r := w.start()
	r.awaitState("healthy", projections.StateReady)
	if err := os.WriteFile(w.file, []byte("{\n  \"mcpServers\": {\n    oops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the watcher and a person may both read it
		if _, err := r.Reload(context.Background(), ""); err == nil || !strings.Contains(err.Error(), ":3:") {
			t.Errorf("reload says %v, want the line", err)
		}
	}
	if got := r.recorded("", events.TypeConfigRejected); len(got) != 1 {
		t.Errorf("%d rejections recorded, want 1", len(got))
	}
	if v := r.server("healthy"); v.State != projections.StateReady {
		t.Errorf("the good config is gone: %s", v.State)
	}
}

func TestAStopCancelsWhatIsUnderWay(t *testing.T) {
	w := newWorld(t)
	w.program("silent", mcptest.Fake{Fault: mcptest.Silent, At: "initialize"})
	r := w.start()
	r.await("silent", "the start", func(projections.Server) bool {
		return len(r.recorded("silent", events.TypeDiscoveryStarted)) == 1
	})
	r.stop()
	r = w.start()
	got := r.recorded("silent", events.TypeDiscoveryCancelled, events.TypeDiscoveryAbandoned, events.TypeDiscoveryFailed)
	if len(got) != 1 || got[0].Type != events.TypeDiscoveryCancelled {
		t.Errorf("recorded %v, want one cancellation", got)
	}
}

func TestAnAttemptWithoutOutcomeIsClosedAtTheNextStart(t *testing.T) {
	w := newWorld(t)
	w.program("healthy", mcptest.Fake{})
	r := w.start()
	r.awaitState("healthy", projections.StateReady)
	key := r.server("healthy").ConfigKey
	_, err := r.log.Append(context.Background(), []events.Event{{
		ID: "unfinished", Source: "mcpledger/test", Type: events.TypeDiscoveryStarted, Subject: "healthy", Time: w.now(),
		DataVersion: 1, ConfigKey: key, RunID: "r", AttemptID: "a", Data: events.DiscoveryStarted{Trigger: events.TriggerCheck},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	r = w.start()
	got := r.recorded("healthy", events.TypeDiscoveryAbandoned)
	if len(got) != 1 || got[0].AttemptID != "a" || got[0].ConfigKey != key {
		t.Errorf("recorded %+v, want the attempt abandoned", got)
	}
	if v := r.server("healthy"); v.State != projections.StateReady {
		t.Errorf("one abandoned attempt made it %s", v.State)
	}
}

func TestAProgramThatIsInstalledNowIsTriedAtOnce(t *testing.T) {
	w := newWorld(t)
	bin := t.TempDir()
	fake := mcptest.Fake{}.Command()
	program := filepath.Join(bin, "acme-mcp")
	env := map[string]string{"PATH": bin}
	for name, value := range fake.Env {
		env[name] = value
	}
	w.entries["acme"] = map[string]any{"command": "acme-mcp", "env": env}
	r := w.start()
	r.awaitState("acme", projections.StateSkipped)
	r.stop()
	if err := os.Symlink(fake.Path, program); err != nil {
		t.Fatal(err)
	}
	r = w.start()
	r.awaitState("acme", projections.StateReady)
	if got := r.recorded("acme", events.TypeSkipRequalified); len(got) != 1 {
		t.Errorf("%d requalifications recorded, want 1", len(got))
	}
}

func TestSecretsReachTheServerAndNothingElse(t *testing.T) {
	w := newWorld(t)
	const secret = "hush-4c1d9e7b2a"
	w.env["ACME_TOKEN"] = secret
	f := dead
	f.Stderr = "token is ${ACME_TOKEN}, again hush-4c1|d9e7b2a\n" + traceback
	w.program("leaky", f)
	w.entries["leaky"]["env"].(map[string]string)["ACME_TOKEN"] = "${ACME_TOKEN}"
	r := w.start()
	r.awaitOutcome("leaky")
	failed := r.recorded("leaky", events.TypeDiscoveryFailed)
	tail := failed[0].Data.(events.DiscoveryFailed).Evidence.StderrTail
	if strings.Count(tail, "«") != 2 {
		t.Errorf("the server did not get its secret, or it was not masked twice: %q", tail)
	}
	r.stop()
	_ = filepath.WalkDir(w.data, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), secret) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if strings.Contains(w.logged.String(), secret) {
		t.Error("the log lines hold the secret")
	}
}

func TestAPersonsWordsAreRecordedWithoutSecrets(t *testing.T) {
	w := newWorld(t)
	const secret = "hush-4c1d9e7b2a"
	w.env["ACME_TOKEN"] = secret
	w.program("healthy", mcptest.Fake{})
	w.entries["healthy"]["env"].(map[string]string)["ACME_TOKEN"] = "${ACME_TOKEN}"
	r := w.start()
	r.awaitState("healthy", projections.StateReady)
	words := "token " + secret + "\u001b[31m is\nred \u202e" + strings.Repeat("x", 5000)
	if err := r.Pin(context.Background(), "healthy", time.Time{}, words, "tester"); err != nil {
		t.Fatal(err)
	}
	pinned := r.recorded("healthy", events.TypeSkipPinned)[0].Data.(events.SkipPinned)
	if got := pinned.Reason; !strings.HasPrefix(got, "token «ACME_TOKEN» is red x") || len(got) > 500 {
		t.Errorf("recorded %d bytes: %.80q", len(got), got)
	}
	_ = r.call("healthy", secret, `{}`)
	for _, e := range r.recorded("healthy") {
		if strings.Contains(string(e.Raw), secret) {
			t.Errorf("%s holds the secret: %s", e.Type, e.Raw)
		}
	}
}

func TestAnEntryMaySayWhichEraToBeginWith(t *testing.T) {
	w := newWorld(t)
	w.program("both", mcptest.Fake{Era: mcptest.Both})
	w.program("pinned", mcptest.Fake{Era: mcptest.Both})
	w.entries["pinned"]["mcpledger"] = map[string]any{"era": "modern"}
	w.entries["wrong"] = map[string]any{"command": "true", "mcpledger": map[string]any{"era": "stone"}}
	r := w.start()
	if got := r.awaitState("both", projections.StateReady).ProtocolVersion; got == "2026-07-28" {
		t.Errorf("without a word it began with %s", got)
	}
	if got := r.awaitState("pinned", projections.StateReady).ProtocolVersion; got != "2026-07-28" {
		t.Errorf("a modern entry spoke %s", got)
	}
	if got := r.server("wrong").Needs; got != projections.NeedsConfig {
		t.Errorf("an unknown era needs %s", got)
	}
}

// An entry that begins with the wrong word costs a second process, once.
func TestWhatTheLogKnowsOfAnEraComesBeforeTheEntry(t *testing.T) {
	w := newWorld(t)
	launches := w.program("old", mcptest.Fake{Era: mcptest.Spoilt})
	w.entries["old"]["mcpledger"] = map[string]any{"era": "modern"}
	r := w.start()
	r.awaitOutcome("old") // and not its state alone: a run under way would be joined
	wantLaunches(t, launches, 2, "the entry is wrong about it")
	r.discover("old")
	wantLaunches(t, launches, 3, "it is known by then")
}

func TestACatalogueStaysOfferedWhileChangedValuesAreTried(t *testing.T) {
	w := newWorld(t)
	w.env["SALT"] = "first-value"
	launches := w.program("salted", mcptest.Fake{})
	w.entries["salted"]["args"] = []string{"${SALT}"}
	r := w.start()
	known := r.awaitState("salted", projections.StateReady).Catalogue
	w.env["SALT"] = "second-value"
	if got := r.reload()["salted"]; got != events.ChangeValues {
		t.Errorf("a value is a change of %q", got)
	}
	if v := r.server("salted"); !v.Offered() || v.Catalogue.Hash != known.Hash {
		t.Errorf("its tools are not offered meanwhile: %s, %s", v.State, v.Reason)
	}
	r.await("salted", "the probe", func(v projections.Server) bool {
		return v.Last != nil && v.Last.Trigger == events.TriggerConfigChanged && v.State == projections.StateReady
	})
	wantLaunches(t, launches, 2, "one value changed")
}

func TestASilentServerIsATimeoutThatCounts(t *testing.T) {
	w := newWorld(t)
	w.program("silent", mcptest.Fake{Fault: mcptest.Silent, At: "initialize"})
	w.entries["silent"]["mcpledger"] = map[string]any{"timeouts": map[string]any{"start": "300ms"}}
	w.program("listless", mcptest.Fake{Fault: mcptest.Silent, At: "tools/list"})
	w.entries["listless"]["mcpledger"] = map[string]any{"timeouts": map[string]any{"start": "2s"}}
	r := w.start()
	for name, limit := range map[events.ServerName]int64{"silent": 300, "listless": 2000} {
		v := r.awaitState(name, projections.StateFailed)
		if v.Cause.Class != "timeout" || v.Streak == nil || v.Streak.Count != 1 || v.Needs != projections.NeedsWait {
			t.Errorf("%s: class %s by %s, streak %+v, needs %s", name, v.Cause.Class, v.Cause.Rule, v.Streak, v.Needs)
		}
		ev := r.recorded(name, events.TypeDiscoveryFailed)[0].Data.(events.DiscoveryFailed).Evidence
		if ev.EndedBy == events.EndedByUs || ev.LimitMS != limit {
			t.Errorf("%s: ended by %q, limit %d ms", name, ev.EndedBy, ev.LimitMS)
		}
	}
}

// A timer that was set before the clock went ahead would come too late.
func TestAClockThatGoesAheadIsLookedAt(t *testing.T) {
	w := newWorld(t)
	w.look = 10 * time.Millisecond
	launches := w.program("broken", mcptest.Fake{Fault: mcptest.Exit, ExitCode: 1, FailFirst: 1})
	r := w.start()
	r.awaitState("broken", projections.StateFailed)
	w.ahead.Add(int64(2 * time.Minute))
	r.awaitState("broken", projections.StateReady)
	if n := mcptest.Launches(launches); n != 2 {
		t.Errorf("%d launches, want 2", n)
	}
}
