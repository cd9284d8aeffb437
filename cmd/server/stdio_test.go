package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

// desktop is a place where clients start the program themselves, as desktop
// applications do.
type desktop struct {
	*testing.T
	dir string
}

func newDesktop(t *testing.T) desktop {
	t.Helper()
	d := desktop{T: t, dir: t.TempDir()}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(d.dir, "server") // the name by which the test binary is the program
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	d.configure(map[string]any{"command": link, "args": []string{"sample-server", "toolbox"}})
	return d
}

// configure writes the config, with one entry for the toolbox.
func (d desktop) configure(toolbox map[string]any) {
	d.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"toolbox": toolbox}})
	if err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "mcp.json"), b, 0o600); err != nil {
		d.Fatal(err)
	}
}

// command returns the program with the desktop's config and data.
func (d desktop) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(d.dir, "server"), args...)
	cmd.Args = append(cmd.Args, "--data", filepath.Join(d.dir, "data"))
	cmd.Env = append(os.Environ(), "HOME="+d.dir, "XDG_CONFIG_HOME="+d.dir)
	return cmd
}

// client starts the program and speaks to it.
func (d desktop) client() (*mcp.ClientSession, *exec.Cmd) {
	d.Helper()
	cmd := d.command("stdio", "--config", filepath.Join(d.dir, "mcp.json"))
	client := mcp.NewClient(&mcp.Implementation{Name: "desktop", Version: "1"}, nil)
	s, err := client.Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = s.Close() })
	return s, cmd
}

// count calls a tool of the toolbox.
func (d desktop) count(s *mcp.ClientSession) {
	d.Helper()
	r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "toolbox__count_words", Arguments: map[string]any{"text": "one two three"}})
	if err != nil || r.IsError {
		d.Fatalf("call: %v %+v", err, r)
	}
}

func TestAClientBecomesTheServiceAndOthersJoinIt(t *testing.T) {
	d := newDesktop(t)
	first, _ := d.client()
	d.count(first)
	second, _ := d.client()
	d.count(second)
	service, running, err := readServiceFile(filepath.Join(d.dir, "data"))
	if err != nil || !running {
		t.Fatalf("service.json: %v %v", running, err)
	}
	if err := first.Close(); err != nil {
		t.Errorf("the first client's end: %v", err)
	}
	d.count(second) // which is the service now
	after, running, err := readServiceFile(filepath.Join(d.dir, "data"))
	if err != nil || !running || after.PID == service.PID {
		t.Errorf("the service was %+v, is %+v (%v, %v)", service, after, running, err)
	}
}

func TestClientsThatStartTogetherShareOneService(t *testing.T) {
	d := newDesktop(t)
	done := make(chan *mcp.ClientSession)
	for range 4 {
		go func() {
			s, _ := d.client()
			done <- s
		}()
	}
	for range 4 {
		d.count(<-done)
	}
}

func TestLeftoversOfACrashAreEnded(t *testing.T) {
	d := newDesktop(t)
	left := filepath.Join(d.dir, "left")
	// What the server starts does not die with it, as below npx.
	d.configure(map[string]any{
		"command": "sh", "args": []string{"-c", "sleep 300 & echo $! >" + left + "; exec " + filepath.Join(d.dir, "server") + " sample-server toolbox"},
	})
	first, cmd := d.client()
	d.count(first)
	if err := cmd.Process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	pid := processIn(t, left)
	if !alive(pid) {
		t.Fatal("nothing was left")
	}
	d.configure(map[string]any{"command": filepath.Join(d.dir, "server"), "args": []string{"sample-server", "toolbox"}})
	second, _ := d.client() // past a stale service.json
	d.count(second)
	waitFor(t, "what was left is ended", func() bool { return processState(pid) == "" })
}

// processIn returns the process id that a file holds.
func processIn(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// processState returns the letter for a process's state, empty when it has ended. One
// that nobody reaps has ended, too.
func processState(pid int) string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return strings.TrimPrefix(after[:1], "Z")
}

func TestStdioWithoutConfigSaysWhatToDo(t *testing.T) {
	d := newDesktop(t)
	cmd := d.command("stdio")
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = io.MultiReader(), &stderr
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(stderr.String(), "--config FILE") {
		t.Errorf("exit code %d (%v): %s", code, err, stderr.String())
	}
}

func TestStdioAnswersEverythingBeforeItEnds(t *testing.T) {
	d := newDesktop(t)
	cmd := d.command("stdio", "--config", filepath.Join(d.dir, "mcp.json"), "--server", "toolbox")
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"pipe","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":1,"result"`, `"id":2,"result"`, `"name":"count_words"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is missing after %s in\n%s", want, time.Since(began), out)
		}
	}
	for line := range strings.Lines(string(out)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no message: %q", line)
		}
	}
}
