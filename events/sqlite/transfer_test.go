package sqlite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/events/eventstest"
	"mcpledger/events/sqlite"
)

// varied makes a closed log of n events of several kinds, some with contents.
func varied(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	now := noon
	l := openWith(t, dir, sqlite.Options{Now: func() time.Time {
		now = now.Add(1001 * time.Millisecond)
		return now
	}})
	var batch []events.Event // ten share a time of recording
	for i := range n {
		e := failure(i)
		switch i % 4 {
		case 1:
			e = eventstest.At(noon.Add(time.Duration(i))).Unknown("weather.observed", fmt.Sprintf(`{"$text":"<b>&\u2028 %d","$$json":[{}],"n":1.50}`, i))
		case 2:
			e = eventstest.At(noon).Event("weather", "k", events.CatalogueChanged{Hash: "h", Tools: json.RawMessage(fmt.Sprintf(`[{"name":"tool%d"}]`, i%3))})
			e.ID, e.Actor, e.TraceParent = fmt.Sprintf("not a uuid, %d", i), "ada", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		case 3:
			e.Time, e.Subject, e.ConfigKey, e.DataVersion = time.Time{}, "", "", 0
		}
		if batch = append(batch, e); len(batch) == 10 || i == n-1 {
			add(t, l, batch...)
			batch = nil
		}
	}
	closeLog(t, l)
	return dir
}

func importInto(t *testing.T, dir string, export []byte) (events.LogImported, error) {
	t.Helper()
	return sqlite.Import(ctx, dir, bytes.NewReader(export), sqlite.ImportOptions{
		Now: time.Now, Source: "service-2", From: "export.jsonl",
	})
}

func TestAnExportThatIsImportedIsExportedTheSame(t *testing.T) {
	from := varied(t, 700)
	exported := export(t, from, sqlite.Span{})
	if bytes.Contains(exported, []byte("secret")) {
		t.Error("the export speaks of the key")
	}

	to := t.TempDir()
	imported, err := importInto(t, to, exported)
	if err != nil {
		t.Fatal(err)
	}
	before, after := readAll(t, openReader(t, from)), readAll(t, openReader(t, to))
	want := events.LogImported{From: "export.jsonl", First: 1, Last: 700, Hash: before[699].Hash}
	if diff := cmp.Diff(want, imported); diff != "" {
		t.Errorf("imported (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, after[:700]); diff != "" {
		t.Errorf("the import changed events (-exported +imported):\n%s", diff)
	}
	last := after[700]
	if diff := cmp.Diff(events.Data(want), last.Data); len(after) != 701 || diff != "" || last.Source != "service-2" {
		t.Errorf("after the imported events stand %d, the first is %+v", len(after)-700, last)
	}
	if r := verify(t, to, nil); !r.OK() || r.Events != 701 || !r.Signed {
		t.Errorf("verify: %+v", r)
	}
	if r := verify(t, to, &events.Head{Sequence: 700, Hash: before[699].Hash}); !r.OK() {
		t.Errorf("against the head of the exported log: %s", r.Problem)
	}

	if again := export(t, to, sqlite.Span{Last: 700}); !bytes.Equal(exported, again) {
		t.Errorf("exported again, up to the import, %d bytes became %d others", len(exported), len(again))
	}
	whole := export(t, to, sqlite.Span{})
	lines := bytes.SplitAfter(exported, []byte("\n"))
	trailer := len(lines[len(lines)-2])
	if !bytes.HasPrefix(whole, exported[:len(exported)-trailer]) {
		t.Error("a second export does not begin with the first")
	}
	if _, err := importInto(t, t.TempDir(), whole); err != nil {
		t.Errorf("import of the second export: %v", err)
	}
}

func TestAnEmptyLogIsExportedAndImported(t *testing.T) {
	exported := export(t, filled(t, 0), sqlite.Span{})
	to := t.TempDir()
	if imported, err := importInto(t, to, exported); err != nil || imported.Last != 0 || imported.First != 0 {
		t.Errorf("got %+v, %v", imported, err)
	}
	if r := verify(t, to, nil); !r.OK() || r.Events != 1 {
		t.Errorf("verify: %+v", r)
	}
}

// Each event can be read on from what stands before it in the export.
func TestEveryContentStandsBeforeItsFirstUse(t *testing.T) {
	dir := varied(t, 60)
	for _, span := range []sqlite.Span{{}, {First: 20}, {First: 5, Last: 30}, {First: 60, Last: 60}, {First: 61}, {Last: 1000}} {
		have := map[string]bool{}
		n := 0
		for _, text := range strings.Split(strings.TrimSpace(string(export(t, dir, span))), "\n") {
			var line struct {
				Content *struct{ Hash string }
				Event   *struct {
					Sequence events.Sequence
					Data     json.RawMessage
				}
			}
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if line.Content != nil {
				if have[line.Content.Hash] {
					t.Errorf("%+v: content %s stands there twice", span, line.Content.Hash)
				}
				have[line.Content.Hash] = true
			}
			if line.Event != nil {
				if want := max(span.First, 1) + events.Sequence(n); line.Event.Sequence != want {
					t.Fatalf("%+v: got event %d, want %d", span, line.Event.Sequence, want)
				}
				n++
				for _, ref := range events.References(line.Event.Data) {
					if !have[ref] {
						t.Errorf("%+v: event %d refers to %s, which does not stand before it", span, line.Event.Sequence, ref)
					}
				}
			}
		}
		last := span.Last
		if last == 0 || last > 60 {
			last = 60
		}
		if want := int(last - max(span.First, 1) + 1); n != want {
			t.Errorf("%+v: %d events, want %d", span, n, want)
		}
	}
}

func TestADamagedExportIsRefusedByLine(t *testing.T) {
	exported := export(t, varied(t, 40), sqlite.Span{})
	lines := strings.SplitAfter(strings.TrimSuffix(string(exported), "\n"), "\n")
	lineOf := func(kind string, from int) int {
		for i := from; i < len(lines); i++ {
			if strings.HasPrefix(lines[i], `{"`+kind) {
				return i
			}
		}
		t.Fatalf("no line of a %s", kind)
		return 0
	}
	event, content := lineOf("event", 20), lineOf("content", 3)
	join := func(parts ...[]string) string {
		var all strings.Builder
		for _, p := range parts {
			all.WriteString(strings.Join(p, ""))
		}
		return all.String()
	}
	edited := func(line int, from, to string) string {
		if !strings.Contains(lines[line], from) {
			t.Fatalf("line %d has no %q: %s", line+1, from, lines[line])
		}
		return join(lines[:line], []string{strings.Replace(lines[line], from, to, 1)}, lines[line+1:])
	}
	for _, c := range []struct {
		name, export string
		line         int // from 1; 0: the whole is cut
	}{
		{"nothing", "", 0},
		{"no header", join(lines[1:]), 1},
		{"a second header", join(lines[:1], lines[:1], lines[1:]), 2},
		{"a changed event", edited(event, `"source":"eventstest"`, `"source":"eventstess"`), event + 1},
		{"a changed time", edited(event, `"recorded_at":"2026`, `"recorded_at":"2025`), event + 1},
		{"another sequence", edited(event, `"sequence":`, `"sequence":1`), event + 1},
		{"white space in a payload", edited(event, `"data":{`, `"data":{ `), event + 1},
		{"an unknown column", edited(event, `{"event":{`, `{"event":{"mood":"bad",`), event + 1},
		{"more after the object", edited(event, "}\n", "}{}\n"), event + 1},
		{"a changed content", edited(content, `"text":"`, `"text":"x`), content + 1},
		{"an event left out", join(lines[:event], lines[event+1:]), event + 2 - 1},
		{"a content left out", join(lines[:content], lines[content+1:]), content + 1},
		{"a content nobody refers to", join(lines[:2], []string{`{"content":{"hash":"` + events.ContentHash([]byte("x")) + `","text":"x"}}` + "\n"}, lines[2:]), 0},
		{"an event twice", join(lines[:event+1], lines[event:]), event + 2},
		{"two events swapped", join(lines[:event], lines[event+1:event+2], lines[event:event+1], lines[event+2:]), event + 1},
		{"the end left out", join(lines[:len(lines)-1]), 0},
		{"cut in a line", string(exported[:len(exported)-9]), len(lines)},
		{"something after the end", string(exported) + "{}\n", len(lines) + 1},
		{"an empty object", join(lines[:event], []string{"{}\n"}, lines[event:]), event + 1},
		{"no JSON", join(lines[:event], []string{"what?\n"}, lines[event:]), event + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := importInto(t, dir, []byte(c.export))
			if !errors.Is(err, sqlite.ErrDamagedExport) {
				t.Fatalf("got %v, want ErrDamagedExport", err)
			}
			if want := fmt.Sprintf("line %d: ", c.line); c.line > 0 && !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want it to name line %d", err, c.line)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than a sentence", err)
			}
			if got := readAll(t, openReader(t, dir)); len(got) != 0 {
				t.Errorf("%d events were imported all the same", len(got))
			}
			if _, err := importInto(t, dir, exported); err != nil {
				t.Errorf("a sound export afterwards: %v", err)
			}
		})
	}
}

func TestImportTakesOnlyAWholeExportIntoAnEmptyLog(t *testing.T) {
	from := varied(t, 8)
	exported := export(t, from, sqlite.Span{})
	if _, err := importInto(t, from, exported); !errors.Is(err, sqlite.ErrNotEmpty) {
		t.Errorf("into a log with events: got %v, want ErrNotEmpty", err)
	}
	if _, err := importInto(t, t.TempDir(), export(t, from, sqlite.Span{First: 3})); !errors.Is(err, sqlite.ErrDamagedExport) {
		t.Errorf("a part: got %v, want ErrDamagedExport", err)
	}
	newer := bytes.Replace(exported, []byte(`"format":1`), []byte(`"format":2`), 1)
	if _, err := importInto(t, t.TempDir(), newer); !errors.Is(err, events.ErrNewer) {
		t.Errorf("of a newer format: got %v, want ErrNewer", err)
	}
	if _, err := sqlite.Import(ctx, t.TempDir(), bytes.NewReader(exported), sqlite.ImportOptions{}); err == nil {
		t.Error("without a clock: want an error")
	}
	held := t.TempDir()
	open(t, held)
	if _, err := importInto(t, held, exported); !errors.Is(err, events.ErrInUse) {
		t.Errorf("into a log in use: got %v, want ErrInUse", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := sqlite.Import(cancelled, t.TempDir(), bytes.NewReader(exported), sqlite.ImportOptions{Now: time.Now, Source: "s"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// endless is a line that never ends.
type endless struct{ read int }

func (r *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	r.read += len(p)
	return len(p), nil
}

func TestImportRefusesAnEndlessLine(t *testing.T) {
	r := &endless{}
	_, err := sqlite.Import(ctx, t.TempDir(), r, sqlite.ImportOptions{Now: time.Now, Source: "s"})
	if !errors.Is(err, sqlite.ErrDamagedExport) || r.read > sqlite.MaxLineBytes+1<<20 {
		t.Errorf("got %v after %d bytes, want ErrDamagedExport by %d", err, r.read, sqlite.MaxLineBytes)
	}
}
