package upstream_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpledger/discovery/upstream"
)

func parse(t testing.TB, tools string) upstream.Catalogue {
	t.Helper()
	c, err := upstream.ParseCatalogue(json.RawMessage(tools))
	if err != nil {
		t.Fatalf("parse %s: %v", tools, err)
	}
	return c
}

func TestTheHashIsThatOfTheContent(t *testing.T) {
	base := parse(t, `[{"name":"a","inputSchema":{"type":"object","x":9007199254740993}},{"name":"b"}]`)
	tests := []struct {
		name  string
		tools string
		same  bool
	}{
		{"other order and white space", `[ {"name":"b"}, {"inputSchema":{"x":9007199254740993, "type":"object"},"name":"a"} ]`, true},
		{"a large number that differs in its last digit", `[{"name":"a","inputSchema":{"type":"object","x":9007199254740992}},{"name":"b"}]`, false},
		{"another description", `[{"name":"a","inputSchema":{"type":"object","x":9007199254740993}},{"name":"b","description":"B"}]`, false},
		{"one tool less", `[{"name":"a","inputSchema":{"type":"object","x":9007199254740993}}]`, false},
		{"a tool twice", `[{"name":"a","inputSchema":{"type":"object","x":9007199254740993}},{"name":"b"},{"name":"b"}]`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parse(t, tt.tools); (got.Hash == base.Hash) != tt.same {
				t.Errorf("hash %s, base %s, want same: %t", got.Hash, base.Hash, tt.same)
			}
		})
	}
	if empty := parse(t, `[]`); empty.Hash == "" || empty.Len() != 0 {
		t.Errorf("an empty catalogue has hash %q and %d tools", empty.Hash, empty.Len())
	}
}

func TestTheDifferenceNamesWhatChanged(t *testing.T) {
	before := parse(t, `[{"name":"stays","x":{"b":1,"a":2}},{"name":"goes"},{"name":"moves","d":1}]`)
	after := parse(t, `[{"name":"moves","d":2},{"name":"comes"},{"name":"stays","x":{"a":2,"b":1}}]`)
	want := upstream.Changes{Added: []string{"comes"}, Removed: []string{"goes"}, Changed: []string{"moves"}}
	if diff := cmp.Diff(want, after.Diff(before)); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(upstream.Changes{Added: []string{"comes", "moves", "stays"}}, after.Diff(upstream.Catalogue{})); diff != "" {
		t.Errorf("difference from nothing (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoCatalogueIsRefused(t *testing.T) {
	for _, tools := range []string{``, `null`, `{}`, `[1]`, `[null]`, `[{}]`, `[{"name":""}]`, `[{"name":1}]`, `[{"name":"a"}`} {
		if c, err := upstream.ParseCatalogue(json.RawMessage(tools)); err == nil {
			t.Errorf("%s became %v", tools, c.Names())
		}
	}
}

// However a server shuffles its tools and keys, it is the same catalogue.
func TestOrderIsNoChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,6}`), 1, 8, rapid.ID).Draw(t, "names")
		describe := func(name string, swapped bool) string {
			if swapped {
				return `{"inputSchema":{"required":["x"],"type":"object"},"name":"` + name + `"}`
			}
			return `{"name":"` + name + `","inputSchema":{"type":"object","required":["x"]}}`
		}
		var one, other []string
		for _, name := range names {
			one = append(one, describe(name, false))
		}
		for _, name := range rapid.Permutation(names).Draw(t, "order") {
			other = append(other, describe(name, rapid.Bool().Draw(t, "swapped")))
		}
		a, errA := upstream.ParseCatalogue(json.RawMessage("[" + strings.Join(one, ",") + "]"))
		b, errB := upstream.ParseCatalogue(json.RawMessage("[" + strings.Join(other, ", ") + "]"))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.Hash != b.Hash || !cmp.Equal(a.Diff(b), upstream.Changes{}) || !slices.Equal(a.Names(), b.Names()) {
			t.Fatalf("%s and %s differ: %+v", a.Tools, b.Tools, a.Diff(b))
		}
	})
}

func FuzzCatalogue(f *testing.F) {
	f.Add([]byte(`[{"name":"a","x":1e400,"y":{"b":[null,true]}},{"name":"a"}]`))
	f.Add([]byte(`[{"name":"\ud800"},{"name":"b","name":"c"}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := upstream.ParseCatalogue(in)
		if err != nil {
			return
		}
		again, err := upstream.ParseCatalogue(c.Tools)
		if err != nil || again.Hash != c.Hash || again.Len() != c.Len() {
			t.Errorf("%s read again is %s: %v", in, again.Tools, err)
		}
		if !cmp.Equal(c.Diff(again), upstream.Changes{}) {
			t.Errorf("%s differs from itself: %+v", in, c.Diff(again))
		}
		for _, name := range c.Names() {
			if _, ok := c.Tool(name); !ok {
				t.Errorf("%s has no tool %q", in, name)
			}
		}
	})
}
