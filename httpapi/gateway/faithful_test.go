package gateway_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpledger/projections"
)

// parsed is a JSON value whose numbers are as they were written.
func parsed(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// oddTools are what the protocol allows and libraries lose.
const oddTools = `[
  {"name":"plain","description":"a <b> & c","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","type":"object",
     "definitions":{"x":{"const":9007199254740993}},"properties":{"n":{"$ref":"#/definitions/x"}},"oneOf":[{"required":["n"]},{}],"x-order":["n"]},
   "outputSchema":{"type":"object","x-unit":"°C"},"annotations":{"readOnlyHint":true,"x-cost":0.10},"icons":[{"src":"data:,"}],"x-future":{"deep":[1,2.50,1e30]}},
  {"name":"with meta","_meta":{"vendor.example/id":12345678901234567890},"inputSchema":{"type":"object"}},
  {"name":"prüfe","inputSchema":{"type":"object","additionalProperties":true}}
]`

func TestTheListIsTheServersOwn(t *testing.T) {
	w := newWorld(t)
	s := &script{tools: oddTools}
	w.remote("odd.one", s.serve(t))
	w.start()
	w.await("odd.one", projections.StateReady)
	want := parsed(t, []byte(oddTools))

	t.Run("for one server it is the same", func(t *testing.T) {
		got := parsed(t, w.raw("/odd.one").result("tools/list", `{}`)).(map[string]any)
		if diff := cmp.Diff(want, got["tools"]); diff != "" || len(got) != 1 {
			t.Errorf("(-server's +ours):\n%s", diff)
		}
	})
	t.Run("for all of them but for names and their origin", func(t *testing.T) {
		listed := parsed(t, w.raw("").result("tools/list", `{}`)).(map[string]any)["tools"].([]any)
		var got []any
		for _, tool := range listed {
			tool := tool.(map[string]any)
			if strings.HasPrefix(tool["name"].(string), "ledger__") {
				continue
			}
			meta := tool["_meta"].(map[string]any)
			if meta["mcpledger/server"] != "odd.one" {
				t.Errorf("origin of %v: %v", tool["name"], meta)
			}
			tool["name"] = meta["mcpledger/name"]
			delete(meta, "mcpledger/server")
			delete(meta, "mcpledger/name")
			if len(meta) == 0 {
				delete(tool, "_meta")
			}
			got = append(got, tool)
		}
		if diff := cmp.Diff(want, any(got)); diff != "" {
			t.Errorf("(-server's +ours):\n%s", diff)
		}
	})
}

func TestResultsAreTheServersOwn(t *testing.T) {
	results := map[string]string{
		"numbers":  `{"content":[],"structuredContent":{"n":9007199254740993,"f":1.50,"z":-0},"_meta":{"x":12345678901234567890}}`,
		"unknown":  `{"content":[{"type":"hologram","beams":[1,2]},{"type":"text","text":"<&>","x-new":1}],"x-top":{"a":null}}`,
		"bare":     `{"structuredContent":{"only":true}}`,
		"nothing":  `{}`,
		"spaced":   "{\n  \"content\" : [\r\n ],\n \"a\" : \"line\\nbreak\" }",
		"resource": `{"content":[{"type":"resource_link","uri":"file:///x","name":"x"}]}`,
		"failing":  `{"content":[{"type":"text","text":"no"}],"isError":true,"_meta":{"k":1}}`,
	}
	w := newWorld(t)
	s := &script{answers: map[string]string{}}
	var tools []string
	for name, result := range results {
		tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"}}`)
		s.answers["tools/call "+name] = result
	}
	s.tools = "[" + strings.Join(tools, ",") + "]"
	w.remote("odd", s.serve(t))
	w.start()
	w.await("odd", projections.StateReady)
	c := w.raw("")
	for name, result := range results {
		t.Run(name, func(t *testing.T) {
			w.T = t
			got := c.result("tools/call", `{"name":"odd__`+name+`","arguments":{}}`)
			if diff := cmp.Diff(parsed(t, []byte(result)), parsed(t, got)); diff != "" {
				t.Errorf("(-server's +ours):\n%s", diff)
			}
			if bytes.ContainsAny(got, "\r\n") {
				t.Errorf("a line breaks in %q", got)
			}
		})
	}
}

func TestArgumentsReachTheServerAsTheyWereSent(t *testing.T) {
	w := newWorld(t)
	s := &script{tools: `[{"name":"take","inputSchema":{"type":"object"}}]`, answers: map[string]string{"tools/call take": `{"content":[]}`}}
	w.remote("odd", s.serve(t))
	w.start()
	w.await("odd", projections.StateReady)
	arguments := `{"n":9007199254740993,"f":1.50,"s":"<ü>","deep":{"a":[null,1e400]}}`
	w.raw("").result("tools/call", `{"name":"odd__take","arguments":`+arguments+`,"_meta":{"traceparent":"00-1","vendor/id":12345678901234567890,"io.modelcontextprotocol/clientInfo":{"name":"x"}}}`)
	sent := parsed(t, []byte(s.last())).(map[string]any)["params"].(map[string]any)
	if !reflect.DeepEqual(sent["arguments"], parsed(t, []byte(arguments))) {
		t.Errorf("arguments %v", sent["arguments"])
	}
	meta := sent["_meta"].(map[string]any)
	if meta["traceparent"] != "00-1" || meta["vendor/id"] != json.Number("12345678901234567890") {
		t.Errorf("_meta %v", meta)
	}
	if _, told := meta["io.modelcontextprotocol/clientInfo"]; told {
		t.Error("what the client says of itself went on to the server")
	}
	if sent["name"] != "take" {
		t.Errorf("name %v", sent["name"])
	}
}
