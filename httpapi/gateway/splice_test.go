package gateway_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"mcpledger/httpapi/gateway"
)

func TestSplice(t *testing.T) {
	for story, c := range map[string]struct{ object, set, want string }{
		"a member is replaced where it stands":       {`{"a":1, "b" : 2 ,"c":3}`, "b=9", `{"a":1, "b" : 9 ,"c":3}`},
		"numbers and escapes stay as they were":      {`{"n":9007199254740993,"s":"\u00fc<","b":2}`, "b=1", `{"n":9007199254740993,"s":"\u00fc<","b":1}`},
		"a missing one comes last":                   {`{"a":1}`, "b=2", `{"a":1,"b":2}`},
		"the empty object gets it too":               {` { } `, "b=2", ` { "b":2} `},
		"each of two of the same name is replaced":   {`{"a":1,"a":2}`, "a=3", `{"a":3,"a":3}`},
		"a member of the same name deeper is spared": {`{"x":{"a":1},"a":1}`, "a=2", `{"x":{"a":1},"a":2}`},
		"a brace in a string is no end":              {`{"s":"}","a":1}`, "a=2", `{"s":"}","a":2}`},
	} {
		t.Run(story, func(t *testing.T) {
			name, value, _ := strings.Cut(c.set, "=")
			got, err := gateway.Splice([]byte(c.object), map[string][]byte{name: []byte(value)}, name)
			if err != nil || string(got) != c.want {
				t.Errorf("got  %s (%v)\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestSpliceRefusesWhatIsNoObject(t *testing.T) {
	for _, object := range []string{``, `1`, `[1]`, `{"a"`, `{"a":}`, `null`} {
		if got, err := gateway.Splice([]byte(object), nil); err == nil {
			t.Errorf("%q became %q", object, got)
		}
	}
}

// Whatever a server sends, a spliced object is the same object but for the member.
func FuzzSplice(f *testing.F) {
	for _, seed := range []string{`{}`, `{"name":"a","_meta":{"x":1e400}}`, `{"name" : "a" , "b":[1, 2 ]}`, `{"name":1,"name":2}`, `{"n":-0.0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		var before map[string]json.RawMessage
		whole := json.Unmarshal(object, &before) == nil && before != nil
		spliced, err := gateway.Splice(object, map[string][]byte{"name": []byte(`"new"`)}, "name")
		if !whole {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", object, err)
		}
		var after map[string]json.RawMessage
		if err := json.Unmarshal(spliced, &after); err != nil {
			t.Fatalf("%q became %q: %v", object, spliced, err)
		}
		if string(after["name"]) != `"new"` || string(gateway.Member(spliced, "name")) != `"new"` {
			t.Errorf("%q became %q", object, spliced)
		}
		delete(before, "name")
		delete(after, "name")
		if !slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))) {
			t.Errorf("%q became %q", object, spliced)
		}
		for name, value := range before {
			if string(after[name]) != string(value) {
				t.Errorf("%q: %s was %s, is %s", object, name, value, after[name])
			}
		}
	})
}
