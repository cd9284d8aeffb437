package main

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"mcpledger/discovery/mcptest"
)

// kill ends a process as the kernel does that is out of memory.
func (d desktop) kill(cmd *exec.Cmd) {
	d.Helper()
	if err := cmd.Process.Signal(unix.SIGKILL); err != nil {
		d.Fatal(err)
	}
}

func TestAClientOnStdioGoesOnAfterTheServiceIsKilled(t *testing.T) {
	d := newDesktop(t)
	first, service := d.client()
	d.count(first)
	second, _ := d.client()
	d.count(second)
	d.kill(service)
	_ = first.Close() // which waits for its end
	d.list(second)    // what may be asked twice is, and this client is the service now
	d.count(second)
}

// list lists the tools until those of a server that has just been started are there.
func (d desktop) list(s *mcp.ClientSession) {
	d.Helper()
	for deadline := time.Now().Add(patience); ; <-time.NewTimer(20 * time.Millisecond).C {
		tools, err := s.ListTools(context.Background(), nil)
		if err != nil {
			d.Fatalf("list: %v", err)
		}
		if slices.ContainsFunc(tools.Tools, func(tool *mcp.Tool) bool { return tool.Name == "toolbox__count_words" }) {
			return
		}
		if time.Now().After(deadline) {
			d.Fatalf("the toolbox is not listed: %+v", tools)
		}
	}
}

// serve runs the service at an address until the test ends or it is killed, and returns
// once it answers.
func (d desktop) serve(address string) *exec.Cmd {
	d.Helper()
	cmd := d.command("--config", filepath.Join(d.dir, "mcp.json"), "--listen", address)
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(patience); ; <-time.NewTimer(20 * time.Millisecond).C {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
			return cmd
		}
		if time.Now().After(deadline) {
			d.Fatalf("the service does not answer: %v", err)
		}
	}
}

func (d desktop) dial(address, era string) *mcp.ClientSession {
	d.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "remote", Version: "1"}, nil)
	s, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = s.Close() })
	return s
}

func TestClientsOverHTTPGoOnAfterTheServiceIsKilled(t *testing.T) {
	d := newDesktop(t)
	address := mcptest.FreeAddress(t)
	service := d.serve(address)
	sessionless, session := d.dial(address, "2026-07-28"), d.dial(address, "2025-11-25")
	d.list(sessionless)
	d.count(sessionless)
	d.count(session)
	d.kill(service)
	_ = service.Wait()
	d.serve(address)
	d.count(sessionless)
	// A session went with the service. Its client is told so, and begins another.
	if _, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "toolbox__count_words", Arguments: map[string]any{"text": "one"}}); err == nil {
		t.Error("a session outlived its service")
	}
	d.count(d.dial(address, "2025-11-25"))
}
