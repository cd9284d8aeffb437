package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpledger/events"
)

// drawJSON gives any JSON, as others may write it: odd spellings, white space, names
// that look like references, and texts on both sides of the length that moves out.
func drawJSON(t *rapid.T) string {
	var value func(depth int) *rapid.Generator[string]
	text := rapid.OneOf(
		rapid.StringN(0, 20, -1),
		rapid.Just(strings.Repeat("ä<\n\"", 100)),
		rapid.StringN(events.LongTextBytes-8, events.LongTextBytes+8, -1),
	)
	quoted := rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 9).Draw(t, "spelling") == 0 {
			return rapid.SampledFrom([]string{
				`"\u0041\/` + strings.Repeat("x", 300) + `"`, `"\ud800` + strings.Repeat("y", 300) + `"`, `"{\"$text\":\"x\"}"`,
				"\"raw \xff byte" + strings.Repeat("z", 300) + "\"",
			}).Draw(t, "odd")
		}
		b, err := json.Marshal(text.Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	})
	name := rapid.OneOf(
		rapid.SampledFrom([]string{`"$text"`, `"$json"`, `"$$text"`, `"$$$json"`, `"\u0024text"`, `"a\"$text"`, `"\"$json"`, `"\\\"$$text"`, `"$"`, `"$texts"`, `"text"`, `"tools"`, `"facts"`}),
		quoted,
	)
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
	value = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			kinds := 6
			if depth == 0 {
				kinds = 4
			}
			switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
			case 0:
				return rapid.SampledFrom([]string{"null", "true", "-1.50e3", "12345678901234567890"}).Draw(t, "atom")
			case 1:
				return `{"$text":"` + events.ContentHash([]byte("somebody else's")) + `"}`
			case 2, 3:
				return quoted.Draw(t, "string")
			case 4:
				items := rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "items")
				return "[" + space.Draw(t, "space") + strings.Join(items, ",") + "]"
			}
			var members []string
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				members = append(members, name.Draw(t, "name")+space.Draw(t, "space")+":"+value(depth-1).Draw(t, "member"))
			}
			return "{" + strings.Join(members, space.Draw(t, "space")+",") + "}"
		})
	}
	return value(3).Draw(t, "json")
}

// Whatever JSON a payload is, what a log stores gives it back byte for byte.
func TestInlineGivesBackWhatExternalizeTook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]events.Type{events.TypeCatalogueChanged, events.TypeDiscoveryStarted, "weather.observed"}).Draw(t, "type")
		checkRoundTrip(t, typ, drawJSON(t))
	})
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func checkRoundTrip(t failer, typ events.Type, raw string) {
	t.Helper()
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(raw)); err != nil {
		t.Fatalf("%s is no JSON: %v", raw, err)
	}
	stored, contents, err := events.Externalize(typ, json.RawMessage(raw))
	if err != nil {
		t.Fatalf("externalize %s: %v", raw, err)
	}
	if !json.Valid(stored) {
		t.Fatalf("stored is no JSON: %s", stored)
	}
	bodies := map[string][]byte{}
	var hashes []string
	for _, c := range contents {
		if c.Hash != events.ContentHash(c.Body) {
			t.Fatalf("content %q has hash %s", c.Body, c.Hash)
		}
		bodies[c.Hash] = c.Body
		hashes = append(hashes, c.Hash)
	}
	if diff := cmp.Diff(hashes, events.References(stored)); diff != "" {
		t.Fatalf("references of %s (-contents +references):\n%s", stored, diff)
	}
	resolve := func(hash string) (*events.Loaded, error) {
		body, ok := bodies[hash]
		if !ok {
			return nil, fmt.Errorf("content %s was not taken out", hash)
		}
		return events.Load(body), nil
	}
	got, err := events.Inline(stored, resolve)
	if err != nil {
		t.Fatalf("inline %s: %v", stored, err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Fatalf("round trip by way of %s (-want +got):\n%s", stored, diff)
	}

	data, again, err := events.Restore(typ, stored, resolve)
	wantData, wantErr := events.DecodeData(typ, want.Bytes())
	if (err == nil) != (wantErr == nil) || !bytes.Equal(again, got) {
		t.Fatalf("restore %s: got %s, %v, decoded whole it gives %v", stored, again, err, wantErr)
	}
	if diff := cmp.Diff(wantData, data); err == nil && diff != "" {
		t.Fatalf("restored from %s (-decoded whole +restored):\n%s", stored, diff)
	}
}

func TestAnEscapedQuoteBeginsNoReference(t *testing.T) {
	hash := strings.Repeat("a", 64)
	for _, raw := range []string{
		`{"a\"$text":1}`, `{"\"$json":{"$text":"x"}}`, `{"\\\"$text":["a\\","$text"]}`, `{"a":"\"$text","$$json":2}`,
		`{"a":"{\"$text\":\"` + hash + `\"}"}`,
	} {
		checkRoundTrip(t, "weather.observed", raw)
	}
}

func TestAPayloadThatIsNoObjectIsDecodedAlike(t *testing.T) {
	for _, raw := range []string{`"` + strings.Repeat("a", 300) + `"`, `"short"`, `[]`, `{}`, `null`, `7`} {
		checkRoundTrip(t, events.TypeCatalogueChanged, raw)
	}
}

func FuzzExternalize(f *testing.F) {
	for _, typ := range knownTypes(f) {
		raw, err := events.EncodeData(full(f, typ))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(typ), string(raw))
	}
	f.Add("weather.observed", `{"$text":"x","$$json":{"$text":"`+strings.Repeat("a", 64)+`"}}`)
	f.Fuzz(func(t *testing.T, typ, raw string) {
		if json.Valid([]byte(raw)) {
			checkRoundTrip(t, events.Type(typ), raw)
		}
	})
}

func TestLongTextsAndDocumentsMoveOut(t *testing.T) {
	long := strings.Repeat("x", events.LongTextBytes-2)
	for _, c := range []struct {
		name     string
		typ      events.Type
		raw      string
		contents []string
	}{
		{"a short text stays", "t", `{"a":"` + long[1:] + `"}`, nil},
		{"a long one moves", "t", `{"a":"` + long + `","b":["` + long + `"]}`, []string{long, long}},
		{"a long name stays", "t", `{"` + long + `":1}`, nil},
		{"a catalogue's tools move as they are", events.TypeCatalogueChanged, `{"hash":"h","tools":[{"d":"` + long + `"}],"x":1}`, []string{`[{"d":"` + long + `"}]`}},
		{"only its own", events.TypeCatalogueChanged, `{"x":{"tools":[]}}`, nil},
		{"an attempt's facts move", events.TypeDiscoveryStarted, `{"attempt":1,"facts":[{"path":"p"}]}`, []string{`[{"path":"p"}]`}},
		{"the tools of another type stay", "t", `{"tools":[]}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, contents, err := events.Externalize(c.typ, json.RawMessage(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, content := range contents {
				got = append(got, string(content.Body))
			}
			if diff := cmp.Diff(c.contents, got); diff != "" {
				t.Errorf("contents (-want +got):\n%s", diff)
			}
			checkRoundTrip(t, c.typ, c.raw)
		})
	}
}

func TestInlinePassesOnThatAContentIsMissing(t *testing.T) {
	stored, _, err := events.Externalize("t", json.RawMessage(`{"a":"`+strings.Repeat("x", 300)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Inline(stored, func(string) (*events.Loaded, error) { return nil, events.ErrNotFound }); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

// slowly decodes as encoding/json does.
func slowly(t testing.TB, typ events.Type, raw []byte) (events.Data, error) {
	t.Helper()
	v := reflect.New(reflect.TypeOf(zero(t, typ)))
	err := json.Unmarshal(raw, v.Interface())
	return v.Elem().Interface().(events.Data), err
}

func checkAgrees(t testing.TB, typ events.Type, raw []byte) {
	t.Helper()
	want, wantErr := slowly(t, typ, raw)
	got, err := events.DecodeData(typ, raw)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s of %q: got error %v, encoding/json has %v", typ, raw, err, wantErr)
	}
	if err == nil && !reflect.DeepEqual(want, got) {
		t.Fatalf("%s of %q (-encoding/json +got):\n%s", typ, raw, cmp.Diff(want, got))
	}
}

func TestDecodingAgreesWithEncodingJSON(t *testing.T) {
	for _, typ := range knownTypes(t) {
		raw, err := events.EncodeData(full(t, typ))
		if err != nil {
			t.Fatal(err)
		}
		checkAgrees(t, typ, raw)
		checkAgrees(t, typ, bytes.ReplaceAll(raw, []byte(`"`), []byte(`" `)))
		for cut := range raw {
			checkAgrees(t, typ, raw[:cut])
		}
	}
	for _, raw := range []string{
		`{}`, `null`, `[]`, `7`, ``, `{"tool":null}`, `{"Tool":"a"}`, `{"tool":"a","tool":"b"}`, `{"tool":"a","TOOL":"b"}`, `{"t\u006fol":"a"}`,
		`{"tool":"\u00e4\n\/","new":{"x":[1,"}"]}}`, `{"new":tru}`, "{\"tool\":\"\xff\"}", "{\"tool\":\"a\x01\"}", "{\"tool\":\"a\\nb\x01\"}", `{"tool":"a\x"}`, `{"tool":"a\`,
		`{"arguments_size":1.0}`, `{"arguments_size":1e3}`, `{"arguments_size":-0}`, `{"arguments_size":01}`, `{"arguments_size":-}`, `{"arguments_size":--1}`,
		`{"arguments_size":9223372036854775807}`, `{"arguments_size":-9223372036854775808}`, `{"arguments_size":9223372036854775808}`,
		`{"tool":"a"}x`, `{"tool":"a"} `, `{"tool":"a",}`, `{,"tool":"a"}`, `{"tool" :"a"}`, `{"tool":"a"`, `{"":1}`, `{"tool":"a"]`,
	} {
		checkAgrees(t, events.TypeToolCallStarted, []byte(raw))
	}
	for _, raw := range []string{
		`{"evidence":{"exit_code":null,"stdout_junk":{"count":1}}}`, `{"evidence":{"exit_code":true}}`, `{"evidence":null}`, `{"evidence":[]}`,
		`{"evidence":{"dispatched":true,"session_sent":false}}`, `{"evidence":{"dispatched":truefalse}}`, `{"evidence":{"stdout_junk":null}}`,
	} {
		checkAgrees(t, events.TypeDiscoveryFailed, []byte(raw))
	}
	for _, raw := range []string{`{"servers":[]}`, `{"servers":null}`, `{"servers":["a",null]}`, `{"servers":["a",]}`, `{"servers":[`, `{"servers":["a"`, `{"servers":["a","b"],"trigger":"x"}`} {
		checkAgrees(t, events.TypeDiscoveryRunStarted, []byte(raw))
	}
	for _, raw := range []string{`{"hash":"h","tools": [1]}`, `{"hash":"h","tools":[1] }`, "{\"tools\":\n[1, 2]\t,\"removed\":[]}", `{"tools": }`, "{\"tools\":\u00a0[1]}"} {
		checkAgrees(t, events.TypeCatalogueChanged, []byte(raw))
	}
	for _, raw := range []string{`{"config":null}`, `{"config":{"a":}}`, `{"config":}`, `{"config":{"a":[1]},"settings":{"skip":{"ttl_ms":[1,2]}}}`} {
		checkAgrees(t, events.TypeServerConfigured, []byte(raw))
	}
}

func FuzzDecodeData(f *testing.F) {
	types := knownTypes(f)
	for i, typ := range types {
		raw, err := events.EncodeData(full(f, typ))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, string(raw))
	}
	f.Fuzz(func(t *testing.T, i int, raw string) {
		if i >= 0 && i < len(types) {
			checkAgrees(t, types[i], []byte(raw))
		}
	})
}
