//go:build e2e

package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The clients that drive the MCP endpoint.
const (
	typescriptClient = "@modelcontextprotocol/client@2.4.0"
	inspector        = "@modelcontextprotocol/inspector@2.12.0"
)

// behindTheEndpoint are the real servers that the clients reach through it. The last
// speaks the protocol of 2026-07-28.
var behindTheEndpoint = []string{"everything", "filesystem", "memory", "thinking", "context7"}

// clientSeen is what a client saw that went through the story all clients go through.
type clientSeen struct {
	Version    string       `json:"version"`
	Tools      []string     `json:"tools"`
	Call       resultSeen   `json:"call"`
	File       resultSeen   `json:"file"`
	Graph      resultSeen   `json:"graph"`
	Thought    resultSeen   `json:"thought"`
	Progress   []float64    `json:"progress"`
	Cancel     failureSeen  `json:"cancel"`
	Error      resultSeen   `json:"error"`
	Outside    resultSeen   `json:"outside"`
	Missing    resultSeen   `json:"missing"`
	Why        resultSeen   `json:"why"`
	Resources  []string     `json:"resources"`
	Resource   contentsSeen `json:"resource"`
	Templates  []string     `json:"templates"`
	Prompts    []string     `json:"prompts"`
	Prompt     messagesSeen `json:"prompt"`
	Completion []string     `json:"completion"`
	Update     string       `json:"update"`
	Changes    int          `json:"changes"`
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

// noteText is what the file says that the filesystem server may read.
const noteText = "what the note says"

// endpoint is a running service with real servers behind it, one that cannot start,
// and clients to drive it with.
type endpoint struct {
	service runningService
	modules string         // of npm
	work    string         // where the servers work
	entries map[string]any // of the config
	program string
}

// note is a file that the filesystem server may read.
func (e endpoint) note() string { return filepath.Join(e.work, "note.txt") }

// stdio returns the arguments that make the program an MCP server on stdio.
func (e endpoint) stdio() []string {
	return []string{"stdio", "--data=" + filepath.Join(e.work, "data")}
}

// addServer adds a server to the config of the running service.
func (e endpoint) addServer(t *testing.T, name string) {
	t.Helper()
	e.entries[name] = map[string]any{"command": "server", "args": []string{"sample-server", "toolbox"}}
	writeEntries(t, e.work, e.entries)
}

func startEndpoint(t *testing.T) endpoint {
	t.Helper()
	packages := []string{typescriptClient, inspector}
	var servers []realServer
	for _, s := range realServers {
		if slices.Contains(behindTheEndpoint, s.name) {
			servers, packages = append(servers, s), append(packages, s.npm)
		}
	}
	e := endpoint{modules: npmInstall(t, packages...), work: t.TempDir(), entries: map[string]any{}}
	fill := strings.NewReplacer("$WORK", e.work)
	for _, s := range servers {
		e.entries[s.name] = s.filled(filepath.Join(e.modules, ".bin"), e.work, fill).entry()
	}
	e.entries["broken"] = map[string]any{"command": "server", "args": []string{"sample-server", "import-error"}}
	for file, text := range map[string]string{
		e.note():                             noteText,
		filepath.Join(e.work, "memory.json"): `{"type":"entity","name":"Bern","entityType":"city","observations":["on the Aare"]}` + "\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if e.program, err = exec.LookPath("server"); err != nil {
		t.Fatal(err)
	}
	e.service = startService(t, e.work, e.entries)
	e.service.settledTools(t)
	return e
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

// Clients that share no code with us, in both eras, over HTTP and over stdio, use five
// published servers through one endpoint.
func TestE2EOtherClientsUseRealServersThroughOneEndpoint(t *testing.T) {
	e := startEndpoint(t)
	stories := map[string]func(t *testing.T, era string, stdio bool) clientSeen{
		"the TypeScript SDK": e.driveTypeScript, "the Go SDK": e.driveGo,
	}
	for _, client := range slices.Sorted(maps.Keys(stories)) {
		for _, era := range []string{"2025-11-25", "2026-07-28"} {
			for transport, stdio := range map[string]bool{"http": false, "stdio": true} {
				t.Run(client+" "+era+" over "+transport, func(t *testing.T) { checkSeen(t, era, stories[client](t, era, stdio)) })
			}
		}
	}
	e.inspect(t)
}

func checkSeen(t *testing.T, era string, seen clientSeen) {
	t.Helper()
	offers := func(tools ...string) bool {
		return !slices.ContainsFunc(tools, func(tool string) bool { return !slices.Contains(seen.Tools, tool) })
	}
	for story, ok := range map[string]bool{
		"speaks the era":                    seen.Version == era,
		"lists the tools of all servers":    offers("everything__get-sum", "filesystem__read_text_file", "memory__read_graph", "thinking__sequentialthinking", "context7__query-docs"),
		"lists the endpoint's own":          offers("ledger__why"),
		"calls a tool":                      seen.Call.text() == "Echo: hello",
		"reads a file":                      seen.File.text() == noteText,
		"searches a graph":                  strings.Contains(seen.Graph.text(), "on the Aare") && seen.Graph.Structured["entities"] != nil,
		"thinks":                            seen.Thought.Structured["thoughtNumber"] == 1.0,
		"hears progress":                    hearsSteps(seen.Progress),
		"cancels":                           strings.Contains(seen.Cancel.Failed, "enough"),
		"gets the server's own error":       seen.Error.IsError && strings.Contains(seen.Error.text(), "-32602"),
		"is refused a file outside":         seen.Outside.IsError && strings.Contains(seen.Outside.text(), "outside allowed directories"),
		"gets a reason for what is not":     seen.Missing.IsError && strings.Contains(seen.Missing.text(), "mcpledger:"),
		"asks why":                          seen.Why.Structured["class"] == "dependency",
		"lists resources":                   len(seen.Resources) > 0 && strings.HasPrefix(seen.Resources[0], "mcpledger://everything/"),
		"reads one":                         len(seen.Resource.Contents) == 1 && seen.Resource.Contents[0].URI == seen.Resources[0] && seen.Resource.Contents[0].Text != "",
		"lists templates":                   slices.Contains(seen.Templates, "mcpledger://everything/demo://resource/dynamic/text/{resourceId}"),
		"lists prompts":                     slices.Contains(seen.Prompts, "everything__simple-prompt"),
		"gets one":                          len(seen.Prompt.Messages) == 1,
		"has an argument completed":         slices.Equal(seen.Completion, []string{"Sales", "Support"}),
		"is told of an update":              seen.Update != "" && slices.Contains(seen.Resources, seen.Update),
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

// hearsSteps reports whether progress came in order, with nothing left out. The last of
// four steps may be missing: the TypeScript SDK drops one that it reads together with
// the answer, which this server sends right after it.
func hearsSteps(progress []float64) bool {
	steps := []float64{1, 2, 3, 4}
	return len(progress) >= 3 && len(progress) <= len(steps) && slices.Equal(progress, steps[:len(progress)])
}

// storyLimit bounds one client's story.
const storyLimit = 10 * time.Minute

func storyContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), storyLimit)
	t.Cleanup(cancel)
	return ctx
}
