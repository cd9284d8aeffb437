//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inspect asks each server itself and through the endpoint with the inspector, and
// compares the answers.
func (e endpoint) inspect(t *testing.T) {
	questions := map[string][][]string{
		"filesystem": {{"tools/list"}, {"tools/call", "--tool-name", "read_text_file", "--tool-arg", "path=" + e.note()}},
		"memory":     {{"tools/list"}, {"tools/call", "--tool-name", "search_nodes", "--tool-arg", "query=Bern"}},
		"thinking":   {{"tools/list"}},
		// Its list of tools is longer for a client that has roots, as the inspector has.
		"everything": {
			{"resources/list"}, {"resources/templates/list"}, {"prompts/list"},
			{"tools/call", "--tool-name", "get-structured-content", "--tool-arg", "location=Chicago"},
			{"prompts/get", "--prompt-name", "args-prompt", "--prompt-args", "city=Bern"},
		},
	}
	for server, asked := range questions {
		entry := e.entries[server].(map[string]any)
		direct := append([]string{entry["command"].(string)}, entry["args"].([]string)...)
		for key, value := range entry["env"].(map[string]string) {
			direct = append(direct, "-e", key+"="+value)
		}
		through := []string{e.service.base + "/mcp/" + server, "--transport", "http"}
		for _, question := range asked {
			t.Run("the inspector sees no difference in "+question[0]+" of "+server, func(t *testing.T) {
				args := append([]string{"--method"}, question...)
				want := e.inspector(t, append(direct, args...)...)
				if diff := cmp.Diff(want, e.inspector(t, append(through, args...)...)); diff != "" {
					t.Errorf("(-direct +through the endpoint):\n%s", diff)
				}
			})
		}
	}
	for _, era := range []string{"legacy", "modern"} {
		for transport, target := range map[string][]string{
			"http":  {e.service.base + "/mcp", "--transport", "http"},
			"stdio": append([]string{e.program}, e.stdio()...),
		} {
			t.Run("the inspector uses all servers, "+era+" over "+transport, func(t *testing.T) {
				ask := func(question ...string) map[string]any {
					t.Helper()
					return e.inspector(t, append(append(target, "--protocol-era", era, "--method"), question...)...)
				}
				if tools, _ := ask("tools/list")["tools"].([]any); len(tools) < 40 {
					t.Errorf("%d tools", len(tools))
				}
				graph := ask("tools/call", "--tool-name", "memory__search_nodes", "--tool-arg", "query=Bern")
				if found, _ := graph["structuredContent"].(map[string]any)["entities"].([]any); len(found) != 1 {
					t.Errorf("call: %v", graph)
				}
				resources, _ := ask("resources/list")["resources"].([]any)
				if len(resources) == 0 {
					t.Fatal("no resources")
				}
				read := ask("resources/read", "--uri", resources[0].(map[string]any)["uri"].(string))
				if contents, _ := read["contents"].([]any); len(contents) != 1 {
					t.Errorf("resource: %v", read)
				}
				prompt := ask("prompts/get", "--prompt-name", "everything__args-prompt", "--prompt-args", "city=Bern")
				if messages, _ := prompt["messages"].([]any); len(messages) != 1 {
					t.Errorf("prompt: %v", prompt)
				}
			})
		}
	}
}

// inspector runs the inspector once and returns the answer it shows.
func (e endpoint) inspector(t *testing.T, args ...string) (answer map[string]any) {
	t.Helper()
	cmd := exec.CommandContext(storyContext(t), filepath.Join(e.modules, ".bin", "mcp-inspector"), append([]string{"--cli"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+e.work)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("inspect %q: %v\n%s%s", args, err, out, stderr.String())
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("inspect %q: %s", args, out)
	}
	return answer
}
