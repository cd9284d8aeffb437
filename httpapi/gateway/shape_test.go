package gateway_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery/mcptest"
	"mcpledger/projections"
)

// Clients refuse a whole list for one item of it.
func TestOneServersOddItemsLeaveTheOthersTheirs(t *testing.T) {
	const good = `"inputSchema":{"type":"object"}`
	tools := []struct{ story, sent, want string }{ // want without _meta; empty: left out
		{"no schema", `{"name":"a"}`, `{"name":"bad__a",` + good + `}`},
		{"a schema of null", `{"inputSchema":null,"name":"b","x-new":1}`, `{"name":"bad__b","x-new":1,` + good + `}`},
		{"a schema that is a text", `{"name":"c","inputSchema":"object"}`, ""},
		{"a schema of no object", `{"name":"d","inputSchema":{"type":"string"}}`, ""},
		{"properties that are none", `{"name":"e","inputSchema":{"type":"object","properties":{"x":5}}}`, ""},
		{"properties in a list", `{"name":"f","inputSchema":{"type":"object","properties":[]}}`, ""},
		{"required that names none", `{"name":"g","inputSchema":{"type":"object","required":[1]}}`, ""},
		{"a description that is a number", `{"name":"h","description":5,` + good + `}`, `{"name":"bad__h",` + good + `}`},
		{"a title of null", `{"name":"i","title":null,"description":"x",` + good + `}`, `{"name":"bad__i","description":"x",` + good + `}`},
		{"hints in a list", `{"name":"j",` + good + `,"annotations":[]}`, `{"name":"bad__j",` + good + `}`},
		{"a hint that is a text", `{"name":"k",` + good + `,"annotations":{"readOnlyHint":"yes"}}`, `{"name":"bad__k",` + good + `}`},
		{"an output schema of no object", `{"name":"l",` + good + `,"outputSchema":{"type":"array"}}`, `{"name":"bad__l",` + good + `}`},
		{"icons without a source", `{"name":"m",` + good + `,"icons":[{}]}`, `{"name":"bad__m",` + good + `}`},
		{"a meta that is a number", `{"name":"n",` + good + `,"_meta":5}`, `{"name":"bad__n",` + good + `}`},
		{"bytes that are no text", "{\"name\":\"o\",\"description\":\"\xff\"," + good + "}", `{"name":"bad__o","description":"\ufffd",` + good + `}`},
		{"a name once more", `{"name":"a","description":"the second"}`, ""},
		{"an execution nobody knows", `{"name":"p",` + good + `,"execution":{"taskSupport":"always"}}`, `{"name":"bad__p",` + good + `}`},
	}
	var sent []string
	for _, one := range tools {
		sent = append(sent, one.sent)
	}
	w := newWorld(t)
	w.program("good", mcptest.Fake{})
	w.remote("bad", (&script{
		tools: "[" + strings.Join(sent, ",") + "]", capabilities: `{"tools":{},"resources":{},"prompts":{}}`,
		answers: map[string]string{
			"resources/list": `{"resources":[5,{"uri":"x:a"},{"uri":"x:b","name":"b","size":"1","annotations":{"priority":2},"mimeType":null},
				{"uri":"x:c","name":"c","size":15,"annotations":{"audience":["user"],"priority":1}},{"uri":"x:e","name":"e","size":1.5},{"uri":1,"name":"d"}]}`,
			"resources/templates/list": `{"resourceTemplates":[{"name":"t","uriTemplate":5},{"name":"t","uriTemplate":"x:{y}","description":[]}]}`,
			"prompts/list": `{"prompts":[{"name":"p","arguments":{}},{"name":"q","arguments":[{"name":"x","required":"yes"}]},{"name":1},
				{"name":"r","arguments":[{"name":"x","required":true}],"title":{}}]}`,
		},
	}).serve(t))
	w.start()
	w.await("good", projections.StateReady)
	w.await("bad", projections.StateReady)

	list := func(method, member, key string) map[string]any {
		listed := parsed(t, w.raw("").result(method, `{}`)).(map[string]any)[member].([]any)
		items := map[string]any{}
		for _, item := range listed {
			item := item.(map[string]any)
			delete(item, "_meta")
			name := item[key].(string)
			if _, twice := items[name]; twice {
				t.Errorf("%s lists %s twice", method, name)
			}
			items[name] = item
		}
		return items
	}
	got := list("tools/list", "tools", "name")
	for _, one := range tools {
		if one.want == "" {
			continue
		}
		want := parsed(t, []byte(one.want)).(map[string]any)
		if diff := cmp.Diff(any(want), got[want["name"].(string)]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", one.story, diff)
		}
	}
	for _, name := range []string{"bad__c", "bad__d", "bad__e", "bad__f", "bad__g"} {
		if got[name] != nil {
			t.Errorf("%s is offered: %v", name, got[name])
		}
	}
	for _, one := range []struct{ method, member, key, want string }{
		{"resources/list", "resources", "uri", `{
			"mcpledger://bad/x:b":{"uri":"mcpledger://bad/x:b","name":"b"},
			"mcpledger://bad/x:c":{"uri":"mcpledger://bad/x:c","name":"c","size":15,"annotations":{"audience":["user"],"priority":1}},
			"mcpledger://bad/x:e":{"uri":"mcpledger://bad/x:e","name":"e"}}`},
		{"resources/templates/list", "resourceTemplates", "uriTemplate", `{"mcpledger://bad/x:{y}":{"uriTemplate":"mcpledger://bad/x:{y}","name":"t"}}`},
		{"prompts/list", "prompts", "name", `{"bad__r":{"name":"bad__r","arguments":[{"name":"x","required":true}]}}`},
	} {
		if diff := cmp.Diff(parsed(t, []byte(one.want)), any(list(one.method, one.member, one.key))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", one.method, diff)
		}
	}

	inBothEras(t, w, func(t *testing.T, e era) {
		s := w.connect(e, "")
		if names := toolNames(t, s); !slices.Contains(names, "good__echo") || !slices.Contains(names, "bad__a") {
			t.Errorf("a typed client sees %q", names)
		}
		for _, err := range []error{
			second(s.ListResources(t.Context(), nil)), second(s.ListResourceTemplates(t.Context(), nil)), second(s.ListPrompts(t.Context(), nil)),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// Clients list all the time.
func TestAnOddItemIsLoggedOnceUntilItChanges(t *testing.T) {
	var later atomic.Int64
	w := newWorld(t)
	w.options.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	odd := &script{
		tools:        `[{"name":"t","inputSchema":5},{"name":"u"}]`,
		capabilities: `{"tools":{},"resources":{},"prompts":{}}`,
		answers: map[string]string{
			"resources/list": `{"resources":[{"name":"r"},{"name":"s","uri":5},{"uri":"x:a"}]}`,
			"prompts/list":   `{"prompts":5}`,
		},
	}
	w.remote("odd", odd.serve(t))
	w.start()
	w.await("odd", projections.StateReady)
	wantLines := func(when string, want ...string) {
		t.Helper()
		for _, path := range []string{"", "/odd", ""} {
			c := w.raw(path)
			for _, method := range []string{"tools/list", "resources/list", "prompts/list"} {
				c.result(method, `{}`)
			}
		}
		var got []string
		for line := range strings.Lines(w.logged.String()) {
			if _, what, found := strings.Cut(strings.TrimSpace(line), "server=odd method="); found {
				got = append(got, what)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	lines := []string{
		`tools/list err="\"t\": its inputSchema is not what the protocol has there"`,
		`resources/list err="\"r\": its uri is not what the protocol has there"`,
		`resources/list err="\"s\": its uri is not what the protocol has there"`,
		`resources/list err="one without a name: its name is not what the protocol has there"`,
		`prompts/list err="the answer holds no list"`,
	}
	wantLines("at first", lines...)
	later.Add(int64(time.Hour))
	wantLines("an hour later", lines...)
	odd.answer("resources/list", `{"resources":[{"name":"r","uri":"x:r"},{"name":"s","uri":"x:s"}]}`)
	odd.answer("prompts/list", `{"prompts":[{"name":"p","arguments":5}]}`)
	later.Add(int64(time.Hour))
	lines = append(lines, `prompts/list err="\"p\": its arguments is not what the protocol has there"`)
	wantLines("when it has changed", lines...)
	odd.answer("resources/list", `{"resources":[{"name":"r","uri":"x:r"},{"name":"s","uri":5}]}`)
	odd.answer("prompts/list", `{"prompts":5}`)
	later.Add(int64(time.Hour))
	wantLines("when it is as it was", append(lines, lines[2], lines[4])...)
	if got := w.raw("").result("resources/list", `{}`); !strings.Contains(string(got), "x:r") {
		t.Errorf("the list: %s", got)
	}
}

func second[T any](_ T, err error) error { return err }
