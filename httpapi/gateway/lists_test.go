package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/projections"
)

func newLibrary() *script {
	return &script{
		tools: `[]`, capabilities: `{"tools":{},"resources":{},"prompts":{},"completions":{}}`,
		answers: map[string]string{
			"resources/list":           `{"resources":[{"uri":"file:///a b","name":"a","size":9007199254740993}]}`,
			"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"file:///{path}","name":"any"}]}`,
			"resources/read":           `{"contents":[{"uri":"file:///a b","text":"hello"}]}`,
			"prompts/list":             `{"prompts":[{"name":"greet","arguments":[{"name":"who"}]},{"name":"grüße"}]}`,
			"prompts/get":              `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`,
			"completion/complete":      `{"completion":{"values":["world"],"total":1}}`,
		},
	}
}

func TestResourcesPromptsAndCompletionsPassThrough(t *testing.T) {
	w := newWorld(t)
	lib, other := newLibrary(), &script{tools: `[]`}
	w.remote("li.b", lib.serve(t))
	w.remote("plain", other.serve(t))
	w.start()
	w.await("li.b", projections.StateReady)
	w.await("plain", projections.StateReady)
	ctx := context.Background()
	inBothEras(t, w, func(t *testing.T, e era) {
		s := w.connect(e, "")
		resources, err := s.ListResources(ctx, nil)
		if err != nil || len(resources.Resources) != 1 || resources.Resources[0].URI != "mcpledger://li.b/file:///a b" {
			t.Fatalf("resources %+v, %v", resources, err)
		}
		for _, uri := range []string{resources.Resources[0].URI, "file:///a b"} {
			read, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
			if err != nil || read.Contents[0].Text != "hello" || read.Contents[0].URI != "mcpledger://li.b/file:///a b" {
				t.Errorf("read %s: %+v, %v", uri, read, err)
			}
			if !strings.Contains(lib.last(), `"uri":"file:///a b"`) {
				t.Errorf("the server was asked %s", lib.last())
			}
		}
		if _, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: "file:///nowhere"}); err == nil {
			t.Error("an address that nobody lists was read")
		}
		templates, err := s.ListResourceTemplates(ctx, nil)
		if err != nil || templates.ResourceTemplates[0].URITemplate != "mcpledger://li.b/file:///{path}" {
			t.Errorf("templates %+v, %v", templates, err)
		}
		prompts, err := s.ListPrompts(ctx, nil)
		if err != nil || len(prompts.Prompts) != 2 {
			t.Fatalf("prompts %+v, %v", prompts, err)
		}
		for i, own := range []string{"greet", "grüße"} {
			got, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: prompts.Prompts[i].Name, Arguments: map[string]string{"who": "me"}})
			if err != nil || len(got.Messages) != 1 || !strings.Contains(lib.last(), `"name":"`+own+`"`) {
				t.Errorf("prompt %s: %+v, %v; the server was asked %s", prompts.Prompts[i].Name, got, err, lib.last())
			}
		}
		for _, ref := range []*mcp.CompleteReference{
			{Type: "ref/prompt", Name: prompts.Prompts[0].Name},
			{Type: "ref/resource", URI: templates.ResourceTemplates[0].URITemplate},
		} {
			got, err := s.Complete(ctx, &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "w"}})
			if err != nil || got.Completion.Values[0] != "world" {
				t.Errorf("completion for %+v: %+v, %v", ref, got, err)
			}
		}
	})
	if asked := other.last(); asked != "" {
		t.Errorf("a server without resources was asked %s", asked)
	}
}

func TestOneServersResourcesKeepTheirAddresses(t *testing.T) {
	w := newWorld(t)
	lib := newLibrary()
	w.remote("lib", lib.serve(t))
	w.start()
	w.await("lib", projections.StateReady)
	c := w.raw("/lib")
	for method, params := range map[string]string{
		"resources/list": `{}`, "resources/templates/list": `{}`, "prompts/list": `{}`,
		"resources/read": `{"uri":"file:///a b"}`, "prompts/get": `{"name":"greet"}`,
	} {
		if got := string(c.result(method, params)); got != lib.answers[method] {
			t.Errorf("%s:\n got %s\nwant %s", method, got, lib.answers[method])
		}
	}
}

// Servers write their JSON as they like: some escape each slash, others what is not ASCII.
func TestAServersOwnAddressIsFoundHoweverItIsWritten(t *testing.T) {
	w := newWorld(t)
	lib := newLibrary()
	lib.answer("resources/list", `{"resources":[{"name":"a","uri":"file:\/\/\/a"},{"name":"g","uri":"file:///gr\u00fc\u00dfe?x=1"},{"name":"none"}]}`)
	w.remote("lib", lib.serve(t))
	w.start()
	w.await("lib", projections.StateReady)
	c := w.raw("")
	for _, uri := range []string{"file:///a", "file:///grüße?x=1"} {
		c.result("resources/read", `{"uri":"`+uri+`"}`)
		if asked := lib.last(); !strings.Contains(asked, `"uri":"`+uri+`"`) {
			t.Errorf("for %s the server was asked %s", uri, asked)
		}
	}
	for _, uri := range []string{`""`, `"file:///b"`, `null`} {
		if _, _, body := c.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":` + uri + `}}`); !strings.Contains(string(body), "no server here has a resource of that address") {
			t.Errorf("%s, which nobody lists: %s", uri, body)
		}
	}
}

func TestAListIsAskedForOnce(t *testing.T) {
	w := newWorld(t)
	lib := newLibrary()
	w.remote("lib", lib.serve(t))
	w.start()
	w.await("lib", projections.StateReady)
	for range 3 {
		w.raw("").result("resources/list", `{}`)
	}
	if asked := lib.all(); len(asked) != 1 {
		t.Errorf("the server was asked %q", asked)
	}
}
