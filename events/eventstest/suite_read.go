package eventstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
)

// history appends a log in which every field that a query asks for has several
// values, independent of one another.
func history(t *testing.T, l events.Log) []events.Event {
	t.Helper()
	var all []events.Event
	for i := range 240 {
		m := At(noon.Add(time.Duration(i%7) * time.Minute))
		e := m.Failed(events.ServerName(fmt.Sprint("server", i%3)), events.ConfigKey(fmt.Sprint("k", i%5)), events.Evidence{ElapsedMS: int64(i)})
		if i%2 == 0 {
			e = m.Succeeded(e.Subject, e.ConfigKey, i)
		}
		if i%11 == 0 {
			e = m.Event("", "", events.ServiceStopped{})
		}
		if i%4 == 0 {
			e.Source = "reporter"
		}
		e.RunID = fmt.Sprintf("00000000-0000-7000-8000-%012d", i/10)
		e.AttemptID, e.CallID = fmt.Sprint("attempt", i/4), fmt.Sprintf("00000000-0000-7000-9000-%012d", i/2)
		all = append(all, e)
	}
	append1(t, l, all...)
	return read(t, l, events.Query{})
}

func filters(t *testing.T, l events.Log) {
	all := history(t, l)
	for name, q := range map[string]events.Query{
		"subject":                  {Subject: "server1"},
		"a subject not there":      {Subject: "nobody"},
		"one type":                 {Types: []events.Type{events.TypeServiceStopped}},
		"two types":                {Types: []events.Type{events.TypeServiceStopped, events.TypeDiscoveryFailed}},
		"a type not there":         {Types: []events.Type{"weather.observed"}},
		"without two types":        {Without: []events.Type{events.TypeServiceStopped, events.TypeDiscoveryFailed}},
		"without one not there":    {Without: []events.Type{"weather.observed"}},
		"with and without a type":  {Types: []events.Type{events.TypeServiceStopped}, Without: []events.Type{events.TypeServiceStopped}},
		"source":                   {Source: "reporter"},
		"config key":               {ConfigKey: "k3"},
		"id":                       {ID: all[30].ID},
		"run":                      {RunID: "00000000-0000-7000-8000-000000000004"},
		"attempt":                  {AttemptID: "attempt7"},
		"call":                     {CallID: "00000000-0000-7000-9000-000000000033"},
		"since, which is included": {Since: noon.Add(3 * time.Minute)},
		"until, which is not":      {Until: noon.Add(3 * time.Minute)},
		"after and before":         {After: 17, Before: 60},
		"past the head":            {After: 1000},
		"before the first":         {Before: 1},
		"a limit":                  {Limit: 7},
		"the last few":             {Limit: 7, Desc: true},
		"all together": {
			Subject: "server1", Types: []events.Type{events.TypeDiscoveryFailed, events.TypeDiscoverySucceeded}, Source: Source,
			ConfigKey: "k1", Since: noon, Until: noon.Add(time.Hour), After: 3, Before: 230, Limit: 5, Desc: true,
		},
		"id and source":           {ID: all[32].ID, Source: "reporter"},
		"an id of another source": {ID: all[33].ID, Source: "reporter"},
		"subject and type":        {Subject: "server2", Types: []events.Type{events.TypeDiscoveryFailed}, Desc: true},
	} {
		var want []events.Event
		for _, e := range all {
			if matches(q, e) {
				want = append(want, e)
			}
		}
		if q.Desc {
			slices.Reverse(want)
		}
		if q.Limit > 0 && len(want) > q.Limit {
			want = want[:q.Limit]
		}
		if diff := cmp.Diff(want, read(t, l, q)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// bare reads a log with everything that takes a decoder out of its way.
func bare(t *testing.T, l events.Log) {
	wholeEvents(t, l)
	history(t, l)
	want := read(t, l, events.Query{})
	for i := range want {
		want[i].Raw, want[i].Hash = nil, ""
	}
	if diff := cmp.Diff(want, read(t, l, events.Query{Bare: true})); diff != "" {
		t.Errorf("read bare (-want +got):\n%s", diff)
	}
	slices.Reverse(want)
	if diff := cmp.Diff(want[:100], read(t, l, events.Query{Bare: true, Desc: true, Limit: 100})); diff != "" {
		t.Errorf("the last hundred, read bare (-want +got):\n%s", diff)
	}
}

func longLog(t *testing.T, l events.Log) {
	const n = 3000
	batch := make([]events.Event, n)
	for i := range batch {
		batch[i] = At(noon).Failed("a", "k", events.Evidence{ElapsedMS: int64(i)})
	}
	batch[n-5].Subject = "rare"
	append1(t, l, batch...)
	up := read(t, l, events.Query{})
	down := read(t, l, events.Query{Desc: true})
	if len(up) != n || len(down) != n {
		t.Fatalf("read %d events up and %d down, want %d", len(up), len(down), n)
	}
	for i, e := range up {
		if e.Sequence != events.Sequence(i+1) || down[n-1-i].Sequence != e.Sequence || e.ID != batch[i].ID {
			t.Fatalf("place %d: up %d, down %d, id %s want %s", i+1, e.Sequence, down[n-1-i].Sequence, e.ID, batch[i].ID)
		}
	}
	if got := read(t, l, events.Query{Subject: "rare"}); len(got) != 1 || got[0].ID != batch[n-5].ID {
		t.Errorf("the one event of a subject: got %v", got)
	}
	if got := read(t, l, events.Query{Limit: 1500, After: 10}); len(got) != 1500 || got[1499].Sequence != 1510 {
		t.Errorf("a limit past a page: got %d events", len(got))
	}
}

func earlyStop(t *testing.T, l events.Log) {
	history(t, l)
	n := 0
	for _, err := range l.Read(context.Background(), events.Query{}) {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("read %d events, want 3", n)
	}
	append1(t, l, At(noon).Failed("a", "k", events.Evidence{}))
}

func contents(t *testing.T, l events.Log) {
	text := strings.Repeat("Traceback: no module named \"weather\" \n", 40)
	tools := `[{"name":"forecast","inputSchema":{"type":"object"}}]`
	append1(t, l,
		At(noon).Failed("a", "k", events.Evidence{StderrTail: text}),
		At(noon).Failed("a", "k", events.Evidence{StderrTail: text, Error: text}),
		At(noon).Event("a", "k", events.CatalogueChanged{Hash: "h", Tools: []byte(tools)}))
	for _, want := range []string{text, tools} {
		got, err := l.Content(context.Background(), events.ContentHash([]byte(want)))
		if err != nil || string(got) != want {
			t.Errorf("content is %q, %v, want %q", got, err, want)
		}
	}
	for _, hash := range []string{events.ContentHash([]byte("never seen")), "", "no hash"} {
		if _, err := l.Content(context.Background(), hash); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("content %q: got %v, want ErrNotFound", hash, err)
		}
	}
}

func moments(t *testing.T, l events.Log) {
	if got, err := l.SequenceAt(context.Background(), noon); err != nil || got != 0 {
		t.Errorf("an empty log at noon is at %d, %v", got, err)
	}
	for range 40 {
		append1(t, l, At(noon).Failed("a", "k", events.Evidence{}), At(noon).Failed("b", "k", events.Evidence{}))
	}
	all := read(t, l, events.Query{})
	for _, e := range all {
		for _, at := range []time.Time{e.RecordedAt.Add(-1), e.RecordedAt, e.RecordedAt.Add(1)} {
			var want events.Sequence
			for _, o := range all {
				if !o.RecordedAt.After(at) {
					want = o.Sequence
				}
			}
			if got, err := l.SequenceAt(context.Background(), at); err != nil || got != want {
				t.Fatalf("at %v: got %d, %v, want %d", at, got, err, want)
			}
		}
	}
	for at, want := range map[time.Time]events.Sequence{{}: 0, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC): 80} {
		if got, err := l.SequenceAt(context.Background(), at); err != nil || got != want {
			t.Errorf("at %v: got %d, %v, want %d", at, got, err, want)
		}
	}
}

func byID(t *testing.T, l events.Log) {
	all := history(t, l)
	for _, want := range all[:20] {
		if diff := cmp.Diff([]events.Event{want}, read(t, l, events.Query{ID: want.ID})); diff != "" {
			t.Errorf("event %s (-want +got):\n%s", want.ID, diff)
		}
	}
	for _, id := range []string{"nobody", "00000000-0000-7000-8000-ffffffffffff"} {
		if got := read(t, l, events.Query{ID: id}); len(got) != 0 {
			t.Errorf("event %q: got %v", id, got)
		}
	}
}

func heads(t *testing.T, l events.Log) {
	if head, err := l.Head(context.Background()); err != nil || head != (events.Head{}) {
		t.Errorf("an empty log has the head %v, %v", head, err)
	}
	hashes := map[string]bool{}
	for range 3 {
		append1(t, l, At(noon).Failed("a", "k", events.Evidence{}))
		last := read(t, l, events.Query{Desc: true, Limit: 1})[0]
		head, err := l.Head(context.Background())
		if want := (events.Head{Sequence: last.Sequence, Hash: last.Hash}); err != nil || head != want {
			t.Errorf("head is %v, %v, want %v", head, err, want)
		}
		hashes[head.Hash] = true
	}
	if len(hashes) != 3 {
		t.Errorf("three events have %d hashes", len(hashes))
	}
}
