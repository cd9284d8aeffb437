package eventstest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
)

// TestLog is the suite that every log passes. open returns an empty log; the suite
// closes it.
func TestLog(t *testing.T, open func(t *testing.T) events.Log) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, l events.Log)
	}{
		{"what was appended is read back whole", wholeEvents},
		{"sequences start at one and leave no gap", sequences},
		{"the same event again keeps its first place", duplicates},
		{"the same id from another source is another event", sources},
		{"the same id with other content is refused", conflicts},
		{"a bad event takes its batch with it", atomicity},
		{"an event no log takes is refused", invalid},
		{"a commit is seen before its append returns", commits},
		{"a commit can be read when it is shown", readable},
		{"every filter selects what it says", filters},
		{"a bare read lacks the payload's JSON and the hash", bare},
		{"a long log is read whole, both ways", longLog},
		{"reading stops when the reader has enough", earlyStop},
		{"a follower sees every event once, in order", follow},
		{"a follower is woken by an append", wakes},
		{"long texts are kept once, by their hash", contents},
		{"a moment is found by when it was recorded", moments},
		{"an event is found by its id", byID},
		{"the head is the last event", heads},
		{"a caller who has gone is told so", cancelled},
		{"a closed log refuses", closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := open(t)
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			c.test(t, l)
		})
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func append1(t *testing.T, l events.Log, batch ...events.Event) events.Receipt {
	t.Helper()
	r, err := l.Append(context.Background(), batch)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return r
}

func read(t *testing.T, l events.Log, q events.Query) []events.Event {
	t.Helper()
	return collect(t, l.Read(context.Background(), q))
}

func collect(t *testing.T, seq iter.Seq2[events.Event, error]) []events.Event {
	t.Helper()
	var all []events.Event
	for e, err := range seq {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		all = append(all, e)
	}
	return all
}

// given is an event as its appender gave it: without what the log assigns.
func given(e events.Event) events.Event {
	e.Sequence, e.RecordedAt, e.Hash, e.Raw = 0, time.Time{}, "", nil
	return e
}

func wholeEvents(t *testing.T, l events.Log) {
	exit, code, spoke := 1, -32001, int64(0)
	long := strings.Repeat("a long line with \"quotes\", \\, <tags> and ünïcödé\n", 200)
	full := At(noon).Event("wëather", "k1_abc.def", events.ToolCallFailed{
		Tool: "forecast", ElapsedMS: 12, Dispatched: true, Evidence: events.Evidence{
			Phase: events.PhaseCallTool, Transport: events.TransportStdio, Error: long, ExitCode: &exit,
			JSONRPCCode: &code, StderrTail: long + "end", StderrLastMS: &spoke, StdoutJunk: &events.Junk{Count: 2, Excerpt: "hi"},
		},
	})
	full.RunID, full.AttemptID, full.CallID = NewID(), "attempt 7", "0190C0DE-0000-7000-8000-00000000000A"
	full.Actor, full.TraceParent, full.DataVersion = "ada", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", 3
	sent := []events.Event{
		full,
		At(noon.In(time.FixedZone("", 3600))).Event("", "", events.DiscoveryRunStarted{Trigger: events.TriggerStartup, Servers: []events.ServerName{}}),
		At(noon).Event("a", events.DefaultConfigKey, events.DiscoveryRunStarted{}),
		At(time.Time{}).Event("a", "k", events.ServerRemoved{}),
		At(events.LatestTime).Event("a", "k", events.CatalogueChanged{Hash: "h", Tools: []byte(`[{"name":"x","n":9007199254740993}]`)}),
		At(noon).Unknown("weather.observed", `{"$text":"not a reference","deep":[{"$json":{}}],"big":12345678901234567890}`),
		At(noon).Unknown(events.TypeDiscoveryFailed, `{"evidence":{"error":"x","colour":"new field"},"mood":"bad"}`),
	}
	seen := make(chan []events.Event, 1)
	l.OnCommit(func(es []events.Event) { seen <- slices.Clone(es) })
	append1(t, l, sent...)
	got := read(t, l, events.Query{})
	if diff := cmp.Diff(<-seen, got); diff != "" {
		t.Errorf("what a commit shows differs from what is read (-commit +read):\n%s", diff)
	}
	if len(got) != len(sent) {
		t.Fatalf("read %d events, appended %d", len(got), len(sent))
	}
	for i, e := range sent {
		e.Time = e.Time.UTC()
		if raw := got[i].Raw; len(raw) == 0 {
			t.Errorf("event %d has no raw payload", i+1)
		}
		if u, ok := e.Data.(events.Unknown); ok && events.Type(u.Type) == events.TypeDiscoveryFailed {
			if diff := cmp.Diff(string(u.JSON), string(got[i].Raw)); diff != "" {
				t.Errorf("unknown fields (-appended +read):\n%s", diff)
			}
			e.Data = events.DiscoveryFailed{Evidence: events.Evidence{Error: "x"}}
		}
		if diff := cmp.Diff(e, given(got[i])); diff != "" {
			t.Errorf("event %d (-appended +read):\n%s", i+1, diff)
		}
		if got[i].Hash == "" || got[i].RecordedAt.IsZero() {
			t.Errorf("event %d: hash %q, recorded at %v", i+1, got[i].Hash, got[i].RecordedAt)
		}
	}
}

func sequences(t *testing.T, l events.Log) {
	if r := append1(t, l); len(r.Sequences) != 0 || r.Last() != 0 {
		t.Errorf("an empty batch got %+v", r)
	}
	for want := events.Sequence(1); want < 7; want += 2 {
		r := append1(t, l, At(noon).Failed("a", "k", events.Evidence{}), At(noon).Failed("b", "k", events.Evidence{}))
		if diff := cmp.Diff(events.Receipt{Sequences: []events.Sequence{want, want + 1}}, r); diff != "" {
			t.Errorf("receipt (-want +got):\n%s", diff)
		}
	}
	for i, e := range read(t, l, events.Query{}) {
		if e.Sequence != events.Sequence(i+1) {
			t.Errorf("event %d has sequence %d", i+1, e.Sequence)
		}
	}
}

func duplicates(t *testing.T, l events.Log) {
	a, b, c := At(noon).Failed("a", "k", events.Evidence{}), At(noon).Succeeded("b", "k", 1), At(noon).Failed("c", "k", events.Evidence{})
	append1(t, l, a, b)
	before := read(t, l, events.Query{})
	r := append1(t, l, b, c, c, a)
	if diff := cmp.Diff(events.Receipt{Sequences: []events.Sequence{2, 3, 3, 1}, Duplicates: 3}, r); diff != "" {
		t.Errorf("receipt (-want +got):\n%s", diff)
	}
	after := read(t, l, events.Query{})
	if len(after) != 3 {
		t.Fatalf("%d events, want 3", len(after))
	}
	if diff := cmp.Diff(before, after[:2]); diff != "" {
		t.Errorf("a duplicate changed the first (-before +after):\n%s", diff)
	}
}

func sources(t *testing.T, l events.Log) {
	a := At(noon).Failed("a", "k", events.Evidence{})
	b := a
	b.Source = "another"
	if r := append1(t, l, a, b); r.Duplicates != 0 || r.Last() != 2 {
		t.Errorf("got %+v, want two events", r)
	}
	if got := read(t, l, events.Query{ID: a.ID}); len(got) != 2 {
		t.Errorf("the id has %d events, want one of each source", len(got))
	}
	if got := read(t, l, events.Query{ID: b.ID, Source: b.Source}); len(got) != 1 || got[0].Source != "another" {
		t.Errorf("id and source: got %+v", got)
	}
}

func conflicts(t *testing.T, l events.Log) {
	a := At(noon).Failed("a", "k", events.Evidence{Error: "first"})
	append1(t, l, a)
	for name, change := range map[string]func(*events.Event){
		"type":         func(e *events.Event) { e.Type, e.Data = events.TypeServerRemoved, events.ServerRemoved{} },
		"subject":      func(e *events.Event) { e.Subject = "b" },
		"time":         func(e *events.Event) { e.Time = e.Time.Add(1) },
		"data version": func(e *events.Event) { e.DataVersion++ },
		"config key":   func(e *events.Event) { e.ConfigKey = "" },
		"run":          func(e *events.Event) { e.RunID = "r" },
		"attempt":      func(e *events.Event) { e.AttemptID = "a" },
		"call":         func(e *events.Event) { e.CallID = "c" },
		"actor":        func(e *events.Event) { e.Actor = "a" },
		"trace":        func(e *events.Event) { e.TraceParent = "t" },
		"payload":      func(e *events.Event) { e.Data = events.DiscoveryFailed{Evidence: events.Evidence{Error: "second"}} },
	} {
		b := a
		change(&b)
		_, err := l.Append(context.Background(), []events.Event{b})
		if !errors.Is(err, events.ErrConflict) {
			t.Errorf("other %s: got %v, want ErrConflict", name, err)
		}
		_, err = l.Append(context.Background(), []events.Event{a, b})
		if got, ok := errors.AsType[*events.ConflictError](err); !ok || *got != (events.ConflictError{Index: 1, ID: a.ID, Source: a.Source}) {
			t.Errorf("other %s in a batch: got %v, want the conflict of its second event", name, err)
		}
	}
	if r := append1(t, l, a); r.Duplicates != 1 {
		t.Errorf("after conflicts the same event got %+v", r)
	}
}

func atomicity(t *testing.T, l events.Log) {
	a := At(noon).Failed("a", "k", events.Evidence{Error: "first"})
	append1(t, l, a)
	other := a
	other.Subject = "b"
	for name, bad := range map[string]events.Event{"a conflict": other, "an invalid event": {ID: "x"}} {
		batch := []events.Event{At(noon).Failed("new", "k", events.Evidence{Error: strings.Repeat("long", 100)}), a, bad, At(noon).Failed("late", "k", events.Evidence{})}
		if _, err := l.Append(context.Background(), batch); err == nil {
			t.Errorf("a batch with %s was taken", name)
		}
	}
	if got := read(t, l, events.Query{}); len(got) != 1 {
		t.Errorf("%d events are there, want the first alone", len(got))
	}
	if r := append1(t, l, At(noon).Failed("next", "k", events.Evidence{})); r.Last() != 2 {
		t.Errorf("the next event has sequence %d, want 2", r.Last())
	}
}

func invalid(t *testing.T, l events.Log) {
	long := strings.Repeat("x", events.MaxIDBytes+1)
	for name, change := range map[string]func(*events.Event){
		"no id":           func(e *events.Event) { e.ID = "" },
		"a long id":       func(e *events.Event) { e.ID = long },
		"no source":       func(e *events.Event) { e.Source = "" },
		"a long source":   func(e *events.Event) { e.Source = long },
		"no type":         func(e *events.Event) { e.Type = "" },
		"another type":    func(e *events.Event) { e.Type = events.TypeServerRemoved },
		"a long subject":  func(e *events.Event) { e.Subject = events.ServerName(long) },
		"a long key":      func(e *events.Event) { e.ConfigKey = events.ConfigKey(long) },
		"no payload":      func(e *events.Event) { e.Data = nil },
		"a broken text":   func(e *events.Event) { e.Actor = "\xff" },
		"a distant time":  func(e *events.Event) { e.Time = time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC) },
		"a broken object": func(e *events.Event) { e.Data = events.Unknown{Type: e.Type, JSON: []byte(`{"evidence"`)} },
		"a wrong shape":   func(e *events.Event) { e.Data = events.Unknown{Type: e.Type, JSON: []byte(`{"evidence":7}`)} },
	} {
		e := At(noon).Failed("a", "k", events.Evidence{})
		change(&e)
		if _, err := l.Append(context.Background(), []events.Event{e}); !errors.Is(err, events.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	if head, err := l.Head(context.Background()); err != nil || head != (events.Head{}) {
		t.Errorf("head is %v, %v after refusals, want none", head, err)
	}
}
