//go:build e2e

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// realServer is a server from npm as a user would configure it, with what is known
// of it.
type realServer struct {
	name string
	pkg  string // with its exact version
	bin  string
	args []string // $WORK is a folder of its own
	env  map[string]string

	// protocol is the version it is reached with, where that is what it is here for.
	protocol string
	// class is that of its failure; empty for a server that lists its tools.
	class string
}

// realServers each show something that the servers made for tests do not.
var realServers = []realServer{
	{name: "everything", pkg: "@modelcontextprotocol/server-everything@2026.8.31", bin: "mcp-server-everything"},
	{name: "filesystem", pkg: "@modelcontextprotocol/server-filesystem@2026.8.31", bin: "mcp-server-filesystem", args: []string{"$WORK"}},
	{name: "memory", pkg: "@modelcontextprotocol/server-memory@2026.8.31", bin: "mcp-server-memory", env: map[string]string{"MEMORY_FILE_PATH": "$WORK/memory.json"}},
	{name: "thinking", pkg: "@modelcontextprotocol/server-sequential-thinking@2026.8.31", bin: "mcp-server-sequential-thinking"},
	{name: "github", pkg: "@modelcontextprotocol/server-github@2025.4.8", bin: "mcp-server-github"},
	{name: "notion", pkg: "@notionhq/notion-mcp-server@2.5.2", bin: "notion-mcp-server"},
	{name: "context7", pkg: "@upstash/context7-mcp@4.1.1", bin: "context7-mcp", protocol: "2026-07-28"},
	{name: "playwright", pkg: "@playwright/mcp@0.0.83", bin: "playwright-mcp"},
	{name: "code-runner", pkg: "mcp-server-code-runner@0.1.8", bin: "mcp-server-code-runner"},
	{name: "postgres-refused", pkg: "@modelcontextprotocol/server-postgres@0.6.2", bin: "mcp-server-postgres", args: []string{"postgresql://127.0.0.1:9/none"}},

	{name: "slack", pkg: "@modelcontextprotocol/server-slack@2025.4.25", bin: "mcp-server-slack", class: "credentials_missing"},
	{name: "postgres", pkg: "@modelcontextprotocol/server-postgres@0.6.2", bin: "mcp-server-postgres", class: "config"},
	{name: "remote", pkg: "mcp-remote@0.15.1", bin: "mcp-remote", args: []string{"http://127.0.0.1:9/mcp"}, class: "network"},
	{name: "supabase", pkg: "@supabase/mcp-server-supabase@0.13.0", bin: "mcp-server-supabase", args: []string{"--access-token", "sbp_0000000000000000000000000000000000000000"}, class: "auth"},
}

func TestE2ERealServersAreListedAsTheyAre(t *testing.T) {
	work := t.TempDir()
	npm := installServers(t)
	home := filepath.Join(work, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	entries := map[string]any{"everything-http": map[string]any{"type": "http", "url": startEverythingHTTP(t, npm, home)}}
	for _, s := range realServers {
		env := map[string]string{"HOME": home}
		for key, value := range s.env {
			env[key] = strings.ReplaceAll(value, "$WORK", work)
		}
		entries[s.name] = map[string]any{"command": filepath.Join(npm, s.bin), "args": s.argsIn(work), "env": env}
	}
	service := startService(t, work, entries)

	tools := map[string]toolsAnswer{}
	for _, answer := range service.settledTools(t, 3*time.Minute) {
		tools[answer.Name] = answer
	}
	for _, s := range realServers {
		t.Run(s.name, func(t *testing.T) {
			got := tools[s.name]
			if s.class != "" {
				service.wantFailure(t, got, s.class)
				return
			}
			peer := exec.Command(filepath.Join(npm, s.bin), s.argsIn(work)...)
			peer.Env = append(os.Environ(), "HOME="+home)
			for key, value := range s.env {
				peer.Env = append(peer.Env, key+"="+strings.ReplaceAll(value, "$WORK", work))
			}
			wantSameTools(t, got, &mcp.CommandTransport{Command: peer})
			if protocol := service.server(t, s.name).ProtocolVersion; s.protocol != "" && protocol != s.protocol {
				t.Errorf("reached with protocol %q, want %s", protocol, s.protocol)
			}
		})
	}
	t.Run("everything over HTTP", func(t *testing.T) {
		url := entries["everything-http"].(map[string]any)["url"].(string)
		wantSameTools(t, tools["everything-http"], &mcp.StreamableClientTransport{Endpoint: url})
	})
}

func (s realServer) argsIn(work string) []string {
	args := make([]string, len(s.args))
	for i, a := range s.args {
		args[i] = strings.ReplaceAll(a, "$WORK", work)
	}
	return args
}

// toolsAnswer is what of one server's GET /api/tools is compared.
type toolsAnswer struct {
	Name        string `json:"name"`
	Status      string `json:"status"`
	State       string `json:"state"`
	StateReason string `json:"state_reason"`
	Tools       []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		InputSchema any    `json:"input_schema"`
	} `json:"tools"`
}

// serverAnswer is what of GET /api/servers/{name} is compared.
type serverAnswer struct {
	ProtocolVersion string `json:"protocol_version"`
	Cause           *struct {
		Class string `json:"class"`
		Text  string `json:"text"`
	} `json:"cause"`
}

type runningService struct{ base string }

// wantFailure checks that a server which cannot work says why.
func (s runningService) wantFailure(t *testing.T, got toolsAnswer, class string) {
	t.Helper()
	cause := s.server(t, got.Name).Cause
	switch {
	case got.Status != "error" || len(got.Tools) > 0:
		t.Errorf("is %s with %d tools: %s", got.Status, len(got.Tools), got.StateReason)
	case cause == nil:
		t.Errorf("fails without a cause: %s", got.StateReason)
	case cause.Class != class:
		t.Errorf("is of class %s, want %s: %s", cause.Class, class, cause.Text)
	}
}

func (s runningService) server(t *testing.T, name string) serverAnswer {
	t.Helper()
	var answer serverAnswer
	s.get(t, "/api/servers/"+name, &answer)
	return answer
}

// settledTools waits until every server has an outcome.
func (s runningService) settledTools(t *testing.T, limit time.Duration) []toolsAnswer {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		var all []toolsAnswer
		s.get(t, "/api/tools", &all)
		if len(all) > 0 && !slices.ContainsFunc(all, func(a toolsAnswer) bool { return a.Status == "loading" }) {
			return all
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("servers still without outcome after %s: %+v", limit, all)
		}
	}
}

func (s runningService) get(t *testing.T, path string, into any) {
	t.Helper()
	res, err := http.Get(s.base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		t.Fatal(err)
	case res.StatusCode == http.StatusServiceUnavailable:
		return // it is catching up
	case res.StatusCode != http.StatusOK:
		t.Fatalf("GET %s: %s: %s", path, res.Status, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
}

// startService runs the program as a user does and returns it when it answers.
func startService(t *testing.T, work string, entries map[string]any) runningService {
	t.Helper()
	config, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	configFile, data := filepath.Join(work, "mcp.json"), filepath.Join(work, "data")
	if err := os.WriteFile(configFile, config, 0o600); err != nil {
		t.Fatal(err)
	}
	runInBackground(t, exec.Command("server", "--config", configFile, "--data", data, "--listen", "127.0.0.1:0"))
	var service serviceFile
	waitUntil(t, "the service listens", func() bool {
		s, running, err := readServiceFile(data)
		service = s
		return err == nil && running
	})
	return runningService{base: service.Address}
}

// wantSameTools asks the server itself, with a client that shares no code with ours.
func wantSameTools(t *testing.T, got toolsAnswer, peer mcp.Transport) {
	t.Helper()
	if got.Status != "ok" {
		t.Fatalf("is %s: %s", got.State, got.StateReason)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "peer", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(ctx, peer, nil)
	if err != nil {
		t.Fatalf("the server does not answer the peer: %v", err)
	}
	defer session.Close()
	want := map[string]any{}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		want[tool.Name] = tool.InputSchema
	}
	schemas := map[string]any{}
	for _, tool := range got.Tools {
		schemas[tool.Name] = tool.InputSchema
	}
	if len(want) == 0 {
		t.Fatal("the server tells the peer of no tools")
	}
	if diff := cmp.Diff(want, schemas); diff != "" {
		t.Errorf("input schemas differ (-sent by the server +ours):\n%s", diff)
	}
}

// installServers installs the packages and returns the folder of their programs.
func installServers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"install", "--no-audit", "--no-fund", "--silent", "--prefix", dir}
	for _, s := range realServers {
		if !slices.Contains(args, s.pkg) {
			args = append(args, s.pkg)
		}
	}
	if out, err := exec.Command("npm", args...).CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	return filepath.Join(dir, "node_modules", ".bin")
}

// startEverythingHTTP runs the reference server over streamable HTTP and returns its
// URL.
func startEverythingHTTP(t *testing.T, npm, home string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(filepath.Join(npm, "mcp-server-everything"), "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port, "HOME="+home)
	runInBackground(t, cmd)
	waitUntil(t, "the HTTP server listens", func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return fmt.Sprintf("http://%s/mcp", addr)
}

// runInBackground ends the program with the test, and shows its output if the test
// failed.
func runInBackground(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(cmd.Path), out.String())
		}
	})
}

// waitUntil asks again and again, for 30 seconds at most.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited 30 s in vain until %s", what)
		}
	}
}
