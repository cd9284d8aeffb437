//go:build e2e

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The clients that drive the MCP endpoint, with the server they use through it.
const (
	typescriptClient = "@modelcontextprotocol/client@2.4.0"
	inspector        = "@modelcontextprotocol/inspector@2.12.0"
	everything       = "@modelcontextprotocol/server-everything@2026.8.31"
	// memory offers the same tools to every client, whatever the client can do.
	memory = "@modelcontextprotocol/server-memory@2026.8.31"
)

// clientSeen is what testdata/gateway/client.mjs saw.
type clientSeen struct {
	Version   string       `json:"version"`
	Tools     []string     `json:"tools"`
	Call      resultSeen   `json:"call"`
	Progress  []float64    `json:"progress"`
	Cancel    failureSeen  `json:"cancel"`
	Error     resultSeen   `json:"error"`
	Missing   resultSeen   `json:"missing"`
	Why       resultSeen   `json:"why"`
	Resources []string     `json:"resources"`
	Resource  contentsSeen `json:"resource"`
	Prompts   []string     `json:"prompts"`
	Prompt    messagesSeen `json:"prompt"`
	Changes   int          `json:"changes"`
}

type resultSeen struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Structured map[string]any `json:"structuredContent"`
	IsError    bool           `json:"isError"`
}

func (r resultSeen) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

type failureSeen struct {
	Failed string `json:"failed"`
}

type contentsSeen struct {
	Contents []struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"contents"`
}

type messagesSeen struct {
	Messages []any `json:"messages"`
}

func TestE2EAnotherLanguagesClientDrivesTheEndpoint(t *testing.T) {
	modules := npmInstall(t, typescriptClient, everything)
	script := filepath.Join(filepath.Dir(modules), "client.mjs")
	source, err := os.ReadFile("testdata/gateway/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, source, 0o600); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	entries := gatewayEntries(modules, work)
	service := startService(t, work, entries)
	service.settledTools(t, time.Minute)
	program, err := exec.LookPath("server")
	if err != nil {
		t.Fatal(err)
	}
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		for story, args := range map[string][]string{
			"http":  {"http", service.base + "/mcp"},
			"stdio": {"stdio", program, "stdio", "--data", filepath.Join(work, "data")},
		} {
			t.Run(era+" over "+story, func(t *testing.T) {
				seen := drive(t, script, append([]string{era}, args...), func() {
					entries["late "+era+" "+story] = map[string]any{"command": "server", "args": []string{"sample-server", "toolbox"}}
					writeEntries(t, work, entries)
				})
				checkSeen(t, era, seen)
			})
		}
	}
}

// gatewayEntries are the servers behind the endpoint.
func gatewayEntries(modules, work string) map[string]any {
	return map[string]any{
		"everything": map[string]any{"command": filepath.Join(modules, ".bin", "mcp-server-everything"), "env": map[string]string{"HOME": work}},
		"broken":     map[string]any{"command": "server", "args": []string{"sample-server", "import-error"}},
	}
}

func writeEntries(t *testing.T, work string, entries map[string]any) {
	t.Helper()
	config, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "mcp.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
}

// drive runs the client, calls change when it waits for one, and returns what it saw.
func drive(t *testing.T, script string, args []string, change func()) (seen clientSeen) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if lines.Text() == "ready for a change" {
			change()
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &seen); err != nil {
			t.Errorf("%s: %v", lines.Text(), err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the client: %v\n%s", err, stderr.String())
	}
	return seen
}

func checkSeen(t *testing.T, era string, seen clientSeen) {
	t.Helper()
	for story, ok := range map[string]bool{
		"speaks the era":                    seen.Version == era,
		"lists the server's tools":          slices.Contains(seen.Tools, "everything__get-sum"),
		"lists the endpoint's own":          slices.Contains(seen.Tools, "ledger__why"),
		"calls a tool":                      seen.Call.text() == "Echo: hello",
		"hears progress":                    slices.Equal(seen.Progress, []float64{1, 2, 3, 4}),
		"cancels":                           strings.Contains(seen.Cancel.Failed, "enough"),
		"gets the server's own error":       seen.Error.IsError && strings.Contains(seen.Error.text(), "-32602"),
		"gets a reason for what is not":     seen.Missing.IsError && strings.Contains(seen.Missing.text(), "mcpledger:"),
		"asks why":                          seen.Why.Structured["class"] == "dependency",
		"lists resources":                   len(seen.Resources) > 0 && strings.HasPrefix(seen.Resources[0], "mcpledger://everything/"),
		"reads one":                         len(seen.Resource.Contents) == 1 && seen.Resource.Contents[0].URI == seen.Resources[0] && seen.Resource.Contents[0].Text != "",
		"lists prompts":                     slices.Contains(seen.Prompts, "everything__simple-prompt"),
		"gets one":                          len(seen.Prompt.Messages) == 1,
		"hears that the list of tools grew": seen.Changes > 0,
	} {
		if !ok {
			t.Errorf("the client %s: no", story)
		}
	}
	if t.Failed() {
		t.Logf("it saw %+v", seen)
	}
}

func TestE2EInspectorDrivesTheEndpoint(t *testing.T) {
	modules := npmInstall(t, inspector, memory)
	work := t.TempDir()
	bin := filepath.Join(modules, ".bin", "mcp-server-memory")
	service := startService(t, work, map[string]any{"memory": map[string]any{"command": bin}})
	service.settledTools(t, time.Minute)
	inspect := func(t *testing.T, target []string, args ...string) map[string]any {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(modules, ".bin", "mcp-inspector"), append(append([]string{"--cli"}, target...), args...)...)
		cmd.Env = append(os.Environ(), "HOME="+work)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("inspect %v %v: %v\n%s%s", target, args, err, out, stderr.String())
		}
		var answer map[string]any
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("inspect %v %v: %s", target, args, out)
		}
		return answer
	}
	call := []string{"--method", "tools/call", "--tool-name", "read_graph"}

	t.Run("one server's list is its own", func(t *testing.T) {
		direct := inspect(t, []string{bin}, "--method", "tools/list")
		through := inspect(t, []string{service.base + "/mcp/memory", "--transport", "http"}, "--method", "tools/list")
		if diff := cmp.Diff(direct, through); diff != "" {
			t.Errorf("(-direct +through the endpoint):\n%s", diff)
		}
	})
	t.Run("so are its results", func(t *testing.T) {
		direct := inspect(t, []string{bin}, call...)
		through := inspect(t, []string{service.base + "/mcp/memory", "--transport", "http"}, call...)
		if diff := cmp.Diff(direct, through); diff != "" {
			t.Errorf("(-direct +through the endpoint):\n%s", diff)
		}
	})
	t.Run("over stdio all of them are offered", func(t *testing.T) {
		call[3] = "memory__read_graph"
		program, err := exec.LookPath("server")
		if err != nil {
			t.Fatal(err)
		}
		answer := inspect(t, []string{program, "stdio", "--data=" + filepath.Join(work, "data")}, call...)
		if _, found := answer["structuredContent"].(map[string]any)["entities"]; !found {
			t.Errorf("answer %v", answer)
		}
	})
}
