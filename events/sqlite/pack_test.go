package sqlite_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

var update = flag.Bool("update", false, "write testdata/packed.txt anew")

// Logs on disk hold packed payloads for ever: each line of the file has the packed
// form, in hex, of the JSON after it.
func TestWhatWasPackedOnceIsUnpackedForEver(t *testing.T) {
	const path = "testdata/packed.txt"
	if *update {
		var file bytes.Buffer
		for _, w := range sqlite.Words {
			text := "[" + w + "]"
			if strings.HasSuffix(w, ":") {
				text = `{"x":1,` + w + `{` + w + `0}}`
			}
			file.WriteString(hex.EncodeToString(sqlite.Pack([]byte(text))) + " " + text + "\n")
		}
		if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(file)) {
		packedHex, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		packed, err := hex.DecodeString(packedHex)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := sqlite.Unpack(packed); err != nil || string(got) != want {
			t.Errorf("%s is unpacked as %s, %v, want %s", packedHex, got, err, want)
		}
		if n++; n <= len(sqlite.Words) && len(packed) >= len(want) {
			t.Errorf("%s takes %d bytes packed and %d not", want, len(packed), len(want))
		}
	}
	if n < len(sqlite.Words) {
		t.Errorf("%s has %d lines for %d words; run with -update if words were added at the end", path, n, len(sqlite.Words))
	}
}

func TestPackIsUndoneByUnpack(t *testing.T) {
	hash := events.ContentHash([]byte("x"))
	pieces := append([]string{
		`{`, `}`, `[`, `]`, `,`, `:`, `"`, `\`, `\"`, `"a"`, `"a":`, `1`, `{"$text":"` + hash + `"}`, `{"$json":"` + hash + `"}`,
		`{"$text":"` + strings.ToUpper(hash) + `"}`, `{"$text":"` + hash, `{"$text":"`, `"}`, " ",
	}, sqlite.Words...)
	rapid.Check(t, func(t *rapid.T) {
		// Any words in any order that are compact JSON.
		var object func(depth int) string
		object = func(depth int) string {
			var members []string
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				name := rapid.SampledFrom(sqlite.Words).Draw(t, "name")
				if !strings.HasSuffix(name, ":") {
					name += ":"
				}
				value := rapid.SampledFrom(sqlite.Words).Draw(t, "value")
				switch rapid.IntRange(0, 4).Draw(t, "kind") {
				case 0:
					value = `{"$text":"` + hash + `"}`
				case 1:
					value = `[{},` + strings.TrimSuffix(value, ":") + `]`
				case 2:
					text, err := json.Marshal(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 5).Draw(t, "text"), ""))
					if err != nil {
						t.Fatal(err)
					}
					value = string(text)
				case 3:
					if depth > 0 {
						value = object(depth - 1)
					}
				}
				members = append(members, name+strings.TrimSuffix(value, ":"))
			}
			return "{" + strings.Join(members, ",") + "}"
		}
		checkPack(t, []byte(object(2)))
	})
}

func checkPack(t interface {
	Helper()
	Fatalf(string, ...any)
}, want []byte,
) {
	t.Helper()
	if !json.Valid(want) {
		t.Fatalf("%s is no JSON", want)
	}
	packed := sqlite.Pack(want)
	got, err := sqlite.Unpack(packed)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("packed as %q and unpacked as\n%s, %v, want\n%s", packed, got, err, want)
	}
}

func FuzzPack(f *testing.F) {
	for _, w := range sqlite.Words {
		f.Add([]byte(`{"a":1,` + strings.TrimSuffix(w, ":") + `:` + strings.TrimSuffix(w, ":") + `}`))
	}
	f.Add([]byte(`{"evidence":{"stderr_tail":{"$text":"` + events.ContentHash(nil) + `"},"x":[{"$json":"` + events.ContentHash(nil) + `"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = sqlite.Unpack(b) // must not panic, whatever the file holds
		var compact bytes.Buffer
		if json.Compact(&compact, b) == nil {
			checkPack(t, compact.Bytes())
		}
	})
}

func TestUnpackRefusesWhatPackDoesNotWrite(t *testing.T) {
	for _, packed := range []string{"\x00", "\x01short", "\x1c", "\x1f\xff", "{\x02"} {
		if got, err := sqlite.Unpack([]byte(packed)); err == nil {
			t.Errorf("%q is unpacked as %s", packed, got)
		}
	}
}
