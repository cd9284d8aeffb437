package projections_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"mcpledger/events"
	"mcpledger/events/eventstest"
	"mcpledger/events/sqlite"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// variant is the default set with some of its text replaced, under another name.
func variant(t testing.TB, name string, replacements ...string) *rules.Set {
	t.Helper()
	text := strings.Replace(rules.Default().Text(), "name: default", "name: "+name, 1)
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			t.Fatalf("the default set has no %q", replacements[i])
		}
		text = strings.Replace(text, replacements[i], replacements[i+1], 1)
	}
	set, err := rules.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

const (
	deterministicPolicy = "deterministic: {after: 3, for: [1h, 4h, 24h]}"
	hastyPolicy         = "deterministic: {after: 1, for: [24h]}"
	strictGate          = "gates:\n  - id: any-failure\n    match: {phase: call_tool}\n    gate: auth_required\n"
)

// memory is a log in memory whose clock stands at the time of what is appended.
type memory struct {
	*eventstest.Log
	mu  sync.Mutex
	now time.Time
}

func newMemory() *memory {
	m := &memory{now: start}
	m.Log = eventstest.NewLog(func() time.Time {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.now
	})
	return m
}

func (m *memory) add(t testing.TB, all ...events.Event) {
	t.Helper()
	for _, e := range all {
		m.mu.Lock()
		if e.Time.After(m.now) {
			m.now = e.Time
		}
		m.mu.Unlock()
		if _, err := m.Append(t.Context(), []events.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
}

// recording returns what Activate has an activation recorded by.
func (m *memory) recording(at time.Time) func(context.Context, events.RulesActivated) error {
	return func(ctx context.Context, d events.RulesActivated) error {
		_, err := m.Append(ctx, []events.Event{{ID: eventstest.NewID(), Source: self, Type: d.EventType(), Time: at, DataVersion: 1, Data: d}})
		return err
	}
}

func caughtUp(t testing.TB, log events.Log, set *rules.Set, store projections.SnapshotStore) *projections.Engine {
	t.Helper()
	e := projections.NewEngine(log, set, store)
	if err := e.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

func present(t testing.TB, e *projections.Engine) string {
	t.Helper()
	var text string
	if err := e.View(func(s *projections.State) { text = snapshot(t, s) }); err != nil {
		t.Fatal(err)
	}
	return text
}

// refold folds the log up to a place under a set, without an engine.
func refold(t testing.TB, log events.Log, set *rules.Set, upTo events.Sequence) string {
	t.Helper()
	s := projections.New(set)
	for e, err := range log.Read(t.Context(), events.Query{Before: upTo + 1}) {
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(e)
	}
	return snapshot(t, s)
}

func TestActivationPutsASetInForce(t *testing.T) {
	h := newHistory()
	h.attempt(events.TriggerStartup, diesOnImport)
	log := newMemory()
	log.add(t, h.events...)
	e := caughtUp(t, log, rules.Default(), nil)
	hasty := variant(t, "hasty", deterministicPolicy, hastyPolicy)
	if err := e.Activate(t.Context(), hasty, log.recording(h.now)); err != nil {
		t.Fatal(err)
	}
	if got := e.Rules().Name(); got != "hasty" {
		t.Errorf("the active set is %q", got)
	}
	if got, want := present(t, e), refold(t, log, hasty, 1_000); got != want {
		t.Errorf("the state is not the fold under the new set (-want +got):\n%s", cmp.Diff(want, got))
	}
	before, now, err := e.At(t.Context(), projections.Moment{Sequence: 4}, nil, h.now)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := before.Server(server, now); v.State != projections.StateFailed || before.Rules() != rules.Default() {
		t.Errorf("before the activation the server was %s under %q, want failed under the default", v.State, before.Rules().Name())
	}
	after, now, err := e.At(t.Context(), projections.Moment{Sequence: 5}, nil, h.now)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := after.Server(server, now); v.State != projections.StateSkipped {
		t.Errorf("after the activation the server was %s, want skipped", v.State)
	}
}

func TestActivationThatIsRefusedChangesNothing(t *testing.T) {
	h := newHistory()
	log := newMemory()
	log.add(t, h.events...)
	hasty := variant(t, "hasty", deterministicPolicy, hastyPolicy)
	full := errors.New("disk full")
	for _, c := range []struct {
		name   string
		set    *rules.Set
		record func(context.Context, events.RulesActivated) error
		want   error
	}{
		{"a set that gates beyond law 3", variant(t, "strict", "gates:\n", strictGate), log.recording(start), projections.ErrBreaksLaw3},
		{"a log that takes nothing", hasty, func(context.Context, events.RulesActivated) error { return full }, full},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := caughtUp(t, log, rules.Default(), nil)
			before := present(t, e)
			if err := e.Activate(t.Context(), c.set, c.record); !errors.Is(err, c.want) {
				t.Fatalf("activated with %v, want %v", err, c.want)
			}
			if e.Rules() != rules.Default() || present(t, e) != before {
				t.Error("the old set is not in force as before")
			}
		})
	}
	t.Run("an engine that has not caught up", func(t *testing.T) {
		e := projections.NewEngine(log, rules.Default(), nil)
		if err := e.Activate(t.Context(), hasty, log.recording(start)); !errors.Is(err, projections.ErrCatchingUp) {
			t.Fatalf("activated with %v, want %v", err, projections.ErrCatchingUp)
		}
	})
}

// Whenever a set is activated while others append, every event is judged by the set
// that was active at its place.
func TestActivationAmongAppends(t *testing.T) {
	log := newMemory()
	h := newHistory()
	log.add(t, h.events...)
	e := caughtUp(t, log, rules.Default(), nil)
	sets := []*rules.Set{variant(t, "hasty", deterministicPolicy, hastyPolicy), rules.Default()}
	more := newHistory()
	for range 200 {
		more.attempt(events.TriggerRetry, diesOnImport)
		more.wait(time.Hour)
	}
	var appending sync.WaitGroup
	appending.Go(func() { log.add(t, more.events[2:]...) })
	for i := range 6 {
		if err := e.Activate(t.Context(), sets[i%2], log.recording(start)); err != nil {
			t.Error(err)
		}
	}
	appending.Wait()
	head, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := present(t, e), refold(t, log, e.Rules(), head.Sequence); got != want {
		t.Fatalf("the state is not the fold of the log (-want +got):\n%s", cmp.Diff(want, got))
	}
	active := rules.Default()
	for event, err := range log.Read(t.Context(), events.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := event.Data.(events.RulesActivated); ok {
			for _, s := range sets {
				if s.Hash() == d.Hash {
					active = s
				}
			}
		}
		if event.Sequence%23 != 0 {
			continue
		}
		s, _, err := e.At(t.Context(), projections.Moment{Sequence: event.Sequence}, nil, more.now)
		if err != nil {
			t.Fatal(err)
		}
		if s.Rules().Hash() != active.Hash() {
			t.Fatalf("at %d the set is %q, want %q", event.Sequence, s.Rules().Name(), active.Name())
		}
	}
}

func TestShadowShowsWhatWouldDiffer(t *testing.T) {
	h := newHistory()
	log := newMemory()
	log.add(t, h.events...)
	e := caughtUp(t, log, rules.Default(), nil)
	hasty := variant(t, "hasty", deterministicPolicy, hastyPolicy)
	if err := e.Shadow(t.Context(), hasty); err != nil {
		t.Fatal(err)
	}
	if set, all := e.Shadowed(h.now); set != hasty || len(all) != 0 {
		t.Fatalf("before anything happened %q differs in %v", set.Name(), all)
	}
	seen := len(h.events)
	h.attempt(events.TriggerStartup, diesOnImport)
	log.add(t, h.events[seen:]...)
	_, all := e.Shadowed(h.now)
	if len(all) != 1 || all[0].Server != server || all[0].Was.State != projections.StateFailed || all[0].Now.State != projections.StateSkipped {
		t.Fatalf("after a failure the sets differ in %+v, want failed against skipped", all)
	}
	compared, err := e.Compare(t.Context(), hasty, h.now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, compared, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("a comparison says something else than the shadow (-shadow +comparison):\n%s", diff)
	}
	if err := e.Activate(t.Context(), hasty, log.recording(h.now)); err != nil {
		t.Fatal(err)
	}
	if set, _ := e.Shadowed(h.now); set != nil {
		t.Errorf("%q is active and still a shadow", set.Name())
	}
	if err := e.Shadow(t.Context(), rules.Default()); err != nil {
		t.Fatal(err)
	}
	e.DropShadow()
	if set, _ := e.Shadowed(h.now); set != nil {
		t.Errorf("%q was dropped and is still a shadow", set.Name())
	}
}

// A past moment gives the fold of the log up to it, whatever was kept or lost.
func TestAtIsTheFoldUpToThere(t *testing.T) {
	sets := []*rules.Set{rules.Default(), variant(t, "hasty", deterministicPolicy, hastyPolicy)}
	rapid.Check(t, func(rt *rapid.T) {
		log, store := newMemory(), newSnapshots()
		log.add(t, drawHistory(rt)...)
		e := caughtUp(t, log, sets[0], store)
		head, err := log.Head(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		for range 4 {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				if err := e.SaveSnapshot(t.Context(), true); err != nil {
					rt.Fatal(err)
				}
			case 1:
				e = caughtUp(t, log, sets[0], store)
			default:
				set := rapid.SampledFrom(sets).Draw(rt, "set")
				at := events.Sequence(rapid.Int64Range(1, int64(head.Sequence)).Draw(rt, "at"))
				s, _, err := e.At(t.Context(), projections.Moment{Sequence: at}, set, log.now)
				if err != nil {
					rt.Fatal(err)
				}
				if got, want := snapshot(rt, s), refold(t, log, set, at); got != want {
					rt.Fatalf("the fold to %d under %s (-want +got):\n%s", at, set.Name(), cmp.Diff(want, got))
				}
			}
		}
	})
}

func TestAtByTime(t *testing.T) {
	h := newHistory()
	h.wait(time.Hour)
	h.attempt(events.TriggerStartup, diesOnImport)
	log := newMemory()
	log.add(t, h.events...)
	e := caughtUp(t, log, rules.Default(), nil)
	for _, c := range []struct {
		name string
		at   projections.Moment
		want projections.ServerState
		err  error
	}{
		{"the present", projections.Moment{}, projections.StateFailed, nil},
		{"before the failure", projections.Moment{Time: start.Add(30 * time.Minute)}, projections.StateDiscovering, nil},
		{"at the failure", projections.Moment{Time: h.now}, projections.StateFailed, nil},
		{"in the future", projections.Moment{Time: h.now.Add(time.Second)}, "", projections.ErrInFuture},
		{"past the head", projections.Moment{Sequence: 99}, "", projections.ErrInFuture},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, now, err := e.At(t.Context(), c.at, nil, h.now)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			if v, _ := s.Server(server, now); v.State != c.want {
				t.Errorf("the server was %s, want %s", v.State, c.want)
			}
		})
	}
}

// fleet is a log of many servers over http, checked again and again.
func fleet(t testing.TB, servers, checks int) *memory {
	t.Helper()
	log := newMemory()
	at := start
	add := func(e events.Event) {
		e.ID, e.Source, e.Type, e.Time, e.DataVersion = eventstest.NewID(), self, e.Data.EventType(), at, 1
		log.add(t, e)
	}
	add(events.Event{Data: events.ServiceStarted{Instance: self}})
	for i := range servers {
		add(events.Event{Subject: nth(i), ConfigKey: keyA, Data: events.ServerConfigured{
			Change: events.ChangeAdded, Transport: events.TransportHTTP, SourceFile: "/etc/mcp.json",
			Config: []byte(`{"url":"https://mcp.example.com/` + string(nth(i)) + `","headers":{"Authorization":"«TOKEN»"}}`),
		}})
	}
	for n := range checks {
		for i := range servers {
			at = at.Add(time.Second)
			id := fmt.Sprint(n, "-", i)
			add(events.Event{Subject: nth(i), ConfigKey: keyA, RunID: id, AttemptID: id, Data: events.DiscoveryStarted{Attempt: 1, Trigger: events.TriggerCheck}})
			switch {
			case i%10 == 9:
				add(events.Event{Subject: nth(i), ConfigKey: keyA, RunID: id, AttemptID: id, Data: refused})
			default:
				add(events.Event{Subject: nth(i), ConfigKey: keyA, RunID: id, AttemptID: id, Data: succeeds})
			}
			if n == 0 {
				add(events.Event{Subject: nth(i), ConfigKey: keyA, RunID: id, AttemptID: id, Data: catalogue})
			}
		}
	}
	return log
}

func nth(i int) events.ServerName { return events.ServerName(fmt.Sprintf("server-%04d", i)) }

// busy is a log where something happens whenever it was read to its end.
type busy struct {
	*memory
	then func()
}

func (l *busy) Read(ctx context.Context, q events.Query) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		for e, err := range l.memory.Read(ctx, q) {
			if !yield(e, err) {
				return
			}
		}
		if then := l.then; then != nil {
			l.then = nil
			then()
		}
	}
}

func TestAComparisonIsOfOneMoment(t *testing.T) {
	h := newHistory()
	log := &busy{memory: newMemory()}
	log.add(t, h.events...)
	e := caughtUp(t, log, rules.Default(), nil)
	seen := len(h.events)
	h.attempt(events.TriggerStartup, diesOnImport)
	log.then = func() { log.add(t, h.events[seen:]...) }
	all, err := e.Compare(t.Context(), variant(t, "same"), h.now)
	if err != nil || len(all) != 0 {
		t.Errorf("a set differs from its like in %+v, %v", all, err)
	}
}

// While an event is shown to those who registered with the log, a fold that begins
// does not miss it.
func TestAFoldThatBeginsDuringACommitMissesNothing(t *testing.T) {
	log, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	add := func(e events.Event) {
		e.DataVersion = 1
		if _, err := log.Append(t.Context(), []events.Event{e}); err != nil {
			t.Error(err)
		}
	}
	h := newHistory()
	for _, e := range h.events {
		add(e)
	}
	first := caughtUp(t, log, rules.Default(), nil)
	shown, release := make(chan struct{}), make(chan struct{})
	wait := sync.OnceFunc(func() {
		close(shown)
		<-release
	})
	log.OnCommit(func([]events.Event) { wait() })
	var appending sync.WaitGroup
	seen := len(h.events)
	h.attempt(events.TriggerStartup, diesOnImport)
	appending.Go(func() { add(h.events[seen]) })
	<-shown
	second := caughtUp(t, log, rules.Default(), nil)
	hasty := variant(t, "hasty", deterministicPolicy, hastyPolicy)
	err = first.Activate(t.Context(), hasty, func(ctx context.Context, d events.RulesActivated) error {
		close(release)
		appending.Wait()
		add(events.Event{ID: "activation", Source: self, Type: d.EventType(), Time: start, Data: d})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	add(h.events[seen+1])
	for name, e := range map[string]*projections.Engine{"activated": first, "caught up": second} {
		if got, want := present(t, e), refold(t, log, e.Rules(), 1_000); got != want {
			t.Errorf("the state %s meanwhile is not the fold of the log (-want +got):\n%s", name, cmp.Diff(want, got))
		}
	}
}
