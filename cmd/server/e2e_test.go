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

	"mcpledger/discovery/mcptest"
)

// realServer is a published server as a user would configure it, with what is known
// of it.
type realServer struct {
	name string
	npm  string // package with its exact version; or
	goes string // Go program with its exact version
	bin  string
	args []string // $WORK is a folder of its own, $REFUSED an address nobody listens on
	env  map[string]string

	// modern says that it speaks the protocol of 2026-07-28, beside older ones.
	modern bool
	// chatty says that it writes plain lines to stdout, which only we put up with.
	chatty bool
	// call is a tools/call, its params, that is answered alike whenever it is made.
	call string
	// classes are those its failure may have; none for a server that lists its tools.
	classes []string
}

// realServers each show something that the servers made for tests do not.
var realServers = []realServer{
	{name: "everything", npm: "@modelcontextprotocol/server-everything@2026.8.31", bin: "mcp-server-everything", call: `{"name":"get-structured-content","arguments":{"location":"Chicago"}}`},
	{name: "filesystem", npm: "@modelcontextprotocol/server-filesystem@2026.8.31", bin: "mcp-server-filesystem", args: []string{"$WORK"}, call: `{"name":"list_allowed_directories","arguments":{}}`},
	{name: "memory", npm: "@modelcontextprotocol/server-memory@2026.8.31", bin: "mcp-server-memory", env: map[string]string{"MEMORY_FILE_PATH": "$WORK/memory.json"}, call: `{"name":"read_graph","arguments":{}}`},
	{name: "thinking", npm: "@modelcontextprotocol/server-sequential-thinking@2026.8.31", bin: "mcp-server-sequential-thinking", call: `{"name":"sequentialthinking","arguments":{"thought":"begin","thoughtNumber":1,"totalThoughts":1,"nextThoughtNeeded":false}}`},
	{name: "github", npm: "@modelcontextprotocol/server-github@2025.4.8", bin: "mcp-server-github"},
	{name: "notion", npm: "@notionhq/notion-mcp-server@2.5.2", bin: "notion-mcp-server"},
	{name: "context7", npm: "@upstash/context7-mcp@4.1.1", bin: "context7-mcp", modern: true},
	{name: "playwright", npm: "@playwright/mcp@0.0.83", bin: "playwright-mcp"},
	{name: "code-runner", npm: "mcp-server-code-runner@0.1.8", bin: "mcp-server-code-runner", chatty: true},
	{name: "postgres-refused", npm: "@modelcontextprotocol/server-postgres@0.6.2", bin: "mcp-server-postgres", args: []string{"postgresql://$REFUSED/none"}, call: `{"name":"query","arguments":{"sql":"select 1"}}`},
	{name: "go-everything", goes: "github.com/modelcontextprotocol/go-sdk/examples/server/everything@v1.8.0", bin: "everything", modern: true, call: `{"name":"greet","arguments":{"name":"you"}}`},

	{name: "slack", npm: "@modelcontextprotocol/server-slack@2025.4.25", bin: "mcp-server-slack", classes: []string{"credentials_missing"}},
	{name: "postgres", npm: "@modelcontextprotocol/server-postgres@0.6.2", bin: "mcp-server-postgres", classes: []string{"config"}},
	{name: "remote", npm: "mcp-remote@0.15.1", bin: "mcp-remote", args: []string{"http://$REFUSED/mcp"}, classes: []string{"network"}},
	{name: "supabase", npm: "@supabase/mcp-server-supabase@0.13.0", bin: "mcp-server-supabase", args: []string{"--access-token", "sbp_0000000000000000000000000000000000000000"}, classes: []string{"auth", "network"}},
}

func TestE2ERealServersAreListedAsTheyAre(t *testing.T) {
	bin := installServers(t)
	work := t.TempDir()
	home := filepath.Join(work, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$WORK", work, "$REFUSED", mcptest.FreeAddress(t))
	entries := map[string]any{}
	servers := make([]realServer, len(realServers))
	for i, s := range realServers {
		servers[i] = s.filled(bin, home, fill)
		entries[s.name] = servers[i].entry()
	}
	url := startEverythingHTTP(t, bin, home)
	entries["everything-http"] = map[string]any{"type": "http", "url": url}
	service := startService(t, work, entries)

	tools := map[string]toolsAnswer{}
	for _, answer := range service.settledTools(t) {
		tools[answer.Name] = answer
	}
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			got := tools[s.name]
			if len(s.classes) > 0 {
				service.wantFailure(t, got, s.classes)
				return
			}
			protocol := wantSameTools(t, got, &mcp.CommandTransport{Command: s.peerCommand()})
			if ours := service.protocol(t, s.name); s.modern && (protocol != "2026-07-28" || ours != protocol) {
				t.Errorf("reached with protocol %q, by the peer with %q, want 2026-07-28 both", ours, protocol)
			}
			wantSameThroughEndpoint(t, service, s)
		})
	}
	t.Run("everything over HTTP", func(t *testing.T) {
		wantSameTools(t, tools["everything-http"], &mcp.StreamableClientTransport{Endpoint: url})
	})
}

// filled returns the server with real paths and addresses.
func (s realServer) filled(bin, home string, fill *strings.Replacer) realServer {
	s.bin = filepath.Join(bin, s.bin)
	args := []string{}
	for _, a := range s.args {
		args = append(args, fill.Replace(a))
	}
	env := map[string]string{"HOME": home}
	for key, value := range s.env {
		env[key] = fill.Replace(value)
	}
	s.args, s.env = args, env
	return s
}

// entry is the server in a config.
func (s realServer) entry() map[string]any {
	entry := map[string]any{"command": s.bin, "args": s.args, "env": s.env}
	if s.modern {
		entry["mcpledger"] = map[string]any{"era": "modern"}
	}
	return entry
}

// peerCommand returns how the peer starts the server: as we do, but without plain
// lines on stdout.
func (s realServer) peerCommand() *exec.Cmd {
	cmd := exec.Command(s.bin, s.args...)
	if s.chatty {
		cmd = exec.Command("sh", append([]string{"-c", `"$0" "$@" | grep --line-buffered "^{"`, s.bin}, s.args...)...)
	}
	cmd.Env = os.Environ()
	for key, value := range s.env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	return cmd
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
	Cause *struct {
		Class string `json:"class"`
		Text  string `json:"text"`
	} `json:"cause"`
}

type runningService struct{ base string }

// wantFailure checks that a server which cannot work says why.
func (s runningService) wantFailure(t *testing.T, got toolsAnswer, classes []string) {
	t.Helper()
	var answer serverAnswer
	s.get(t, "/api/servers/"+got.Name, &answer)
	cause := answer.Cause
	switch {
	case got.Status != "error" || len(got.Tools) > 0:
		t.Errorf("is %s with %d tools: %s", got.Status, len(got.Tools), got.StateReason)
	case cause == nil:
		t.Errorf("fails without a cause: %s", got.StateReason)
	case !slices.Contains(classes, cause.Class):
		t.Errorf("is of class %s, want %q: %s", cause.Class, classes, cause.Text)
	}
}

// settledTools waits until every server has an outcome.
func (s runningService) settledTools(t *testing.T) (all []toolsAnswer) {
	t.Helper()
	waitFor(t, "all servers have an outcome", func() bool {
		all = nil
		s.get(t, "/api/tools", &all)
		return len(all) > 0 && !slices.ContainsFunc(all, func(a toolsAnswer) bool { return a.Status == "loading" })
	})
	return all
}

// protocol returns the protocol version we speak with a server.
func (s runningService) protocol(t *testing.T, name string) string {
	t.Helper()
	var server struct {
		ProtocolVersion string `json:"protocol_version"`
	}
	s.get(t, "/api/servers/"+name, &server)
	return server.ProtocolVersion
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
	waitFor(t, "the service listens", func() bool {
		s, running, err := readServiceFile(data)
		service = s
		return err == nil && running
	})
	return runningService{base: service.Address}
}

// wantSameTools asks the server itself, with a client that shares no code with ours,
// and returns the protocol version they spoke.
func wantSameTools(t *testing.T, got toolsAnswer, peer mcp.Transport) (protocol string) {
	t.Helper()
	if got.Status != "ok" {
		t.Fatalf("is %s: %s", got.State, got.StateReason)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
	return session.InitializeResult().ProtocolVersion
}

// installServers installs the real servers and returns the folder of their programs.
func installServers(t *testing.T) string {
	t.Helper()
	var packages []string
	for _, s := range realServers {
		if s.npm != "" && !slices.Contains(packages, s.npm) {
			packages = append(packages, s.npm)
		}
	}
	bin := filepath.Join(npmInstall(t, packages...), ".bin")
	for _, s := range realServers {
		if s.goes == "" {
			continue
		}
		download(t, []string{"GOBIN=" + bin, "GOFLAGS="}, "go", "install", s.goes)
	}
	return bin
}

// npmInstall installs packages for this test alone and returns their folder.
func npmInstall(t *testing.T, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	download(t, nil, "npm", append([]string{"install", "--no-audit", "--no-fund", "--silent", "--prefix", dir}, packages...)...)
	return filepath.Join(dir, "node_modules")
}

// download runs a program that fetches something, up to three times: a registry that does
// not answer for a moment says nothing of what is tested.
func download(t *testing.T, env []string, program string, args ...string) {
	t.Helper()
	for tries := 1; ; tries++ {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env, cmd.WaitDelay = append(os.Environ(), env...), patience
		out, err := cmd.CombinedOutput()
		cancel()
		switch {
		case err == nil:
			return
		case tries == 3:
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		t.Logf("tried again: %s: %v\n%s", cmd, err, out)
	}
}

// startEverythingHTTP runs the reference server over streamable HTTP and returns its
// URL.
func startEverythingHTTP(t *testing.T, bin, home string) string {
	t.Helper()
	addr := mcptest.FreeAddress(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "mcp-server-everything"), "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port, "HOME="+home)
	runInBackground(t, cmd)
	waitFor(t, "the HTTP server listens", func() bool {
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
