package events_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
)

var update = flag.Bool("update", false, "write a file for each shape that has none")

// example returns an event of a known type with every field set.
func example(t testing.TB, typ events.Type) events.Event {
	t.Helper()
	return events.Event{
		ID: "0190c0de-0000-7000-8000-000000000001", Source: "service-1", Type: typ, Subject: "weather",
		Time: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), DataVersion: 1, Data: full(t, typ),
		ConfigKey: "k1_abcdefghijklmnop.abcdefghijklmnop", RunID: "run", AttemptID: "attempt", CallID: "call", Actor: "ada",
		TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		Sequence:    7, RecordedAt: time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC), Hash: "00ff",
	}
}

func indented(t testing.TB, e events.Event) []byte {
	t.Helper()
	b, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// Logs hold every shape that was ever written, so each keeps a file: a field that is
// added makes another shape, and -update writes a further file beside the old one.
func TestEveryShapeOfEventHasAFile(t *testing.T) {
	for _, typ := range knownTypes(t) {
		want := indented(t, example(t, typ))
		for n := 1; ; n++ {
			path := filepath.Join("testdata", fmt.Sprintf("%s.%d.json", typ, n))
			have, err := os.ReadFile(path)
			if err == nil && bytes.Equal(have, want) {
				break
			}
			if err == nil {
				continue
			}
			if !*update {
				t.Errorf("no file of testdata has the present shape of %s; run with -update if it only gained fields", typ)
				break
			}
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
}

// A type that gains evidence is not to be missed where failures are judged.
func TestAnEventHasTheEvidenceThatItsDataHolds(t *testing.T) {
	held := 0
	for _, typ := range knownTypes(t) {
		e := example(t, typ)
		var data struct{ Evidence *events.Evidence }
		raw, err := events.EncodeData(e.Data)
		if err == nil {
			err = json.Unmarshal(raw, &data)
		}
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		if diff := cmp.Diff(data.Evidence, e.Evidence()); diff != "" {
			t.Errorf("%s (-data +event):\n%s", typ, diff)
		}
		if data.Evidence != nil {
			held++
		}
	}
	if held == 0 {
		t.Error("no type holds evidence")
	}
}

func TestEveryShapeEverWrittenIsReadWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata: %v", err)
	}
	for _, path := range files {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var e events.Event
		if err := json.Unmarshal(want, &e); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if _, unknown := e.Data.(events.Unknown); unknown {
			t.Errorf("%s: %s is not known any more", path, e.Type)
		}
		if diff := cmp.Diff(string(want), string(indented(t, e))); diff != "" {
			t.Errorf("%s read and written again (-file +written):\n%s", path, diff)
		}
		// From the payload alone, without the bytes that were read.
		e.Raw = nil
		if diff := cmp.Diff(string(want), string(indented(t, e))); diff != "" {
			t.Errorf("%s decoded and encoded (-file +encoded):\n%s", path, diff)
		}
	}
}

func TestAnEventOfAnUnknownTypeKeepsItsPayload(t *testing.T) {
	const text = `{"id":"1","source":"s","type":"weather.observed","time":"2026-03-01T12:00:00Z","dataversion":9,"data":{"deep":[1.50,{"x":null}]}}`
	var e events.Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	want := events.Unknown{Type: "weather.observed", JSON: json.RawMessage(`{"deep":[1.50,{"x":null}]}`)}
	if diff := cmp.Diff(events.Data(want), e.Data); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
	again, err := json.Marshal(e)
	if err != nil || string(again) != text {
		t.Errorf("got %s, %v, want %s", again, err, text)
	}
}

func TestAnUnknownFieldIsCarried(t *testing.T) {
	const text = `{"id":"1","source":"s","type":"discovery.failed","time":"2026-03-01T12:00:00Z","dataversion":1,"data":{"evidence":{"error":"x","colour":"red"},"mood":7}}`
	var e events.Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(events.Data(events.DiscoveryFailed{Evidence: events.Evidence{Error: "x"}}), e.Data); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
	again, err := json.Marshal(e)
	if err != nil || string(again) != text {
		t.Errorf("got %s, %v, want %s", again, err, text)
	}
}

func TestAPayloadOfTheWrongShapeIsAnError(t *testing.T) {
	if d, err := events.DecodeData(events.TypeDiscoveryFailed, json.RawMessage(`{"evidence":7}`)); err == nil {
		t.Errorf("got %+v, want an error", d)
	}
}
