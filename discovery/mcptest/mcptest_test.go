package mcptest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mcpledger/discovery/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// run starts a fake program, gives it lines on stdin, and returns what it wrote to
// stdout, and how it ended.
func run(t *testing.T, fake mcptest.Fake, lines ...string) (string, error) {
	t.Helper()
	command := fake.Command()
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Env = command.Environ()
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.Output()
	return string(out), err
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	list       = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

func TestAProgramSpeaksTheProtocolUntilStdinEnds(t *testing.T) {
	out, err := run(t, mcptest.Fake{Tools: 3}, initialize, list)
	if err != nil || strings.Count(out, "\n") != 2 || !strings.Contains(out, `"protocolVersion":"2025-11-25"`) || !strings.Contains(out, `"tool-0003"`) {
		t.Errorf("it wrote %s and ended with %v", out, err)
	}
}

func TestAFaultMayEndAfterSomeLaunches(t *testing.T) {
	launches := filepath.Join(t.TempDir(), "launches")
	fake := mcptest.Fake{Fault: mcptest.Exit, ExitCode: 3, FailFirst: 2, Launches: launches}
	for launch, want := range []string{"exit status 3", "exit status 3", "<nil>"} {
		if _, err := run(t, fake, initialize); fmt.Sprint(err) != want {
			t.Errorf("launch %d ended with %v, want %s", launch+1, err, want)
		}
	}
	if got := mcptest.Launches(launches); got != 3 {
		t.Errorf("%d launches counted", got)
	}
}

func TestAServerRecordsWhatItWasAsked(t *testing.T) {
	server := mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, Status: 503, At: "initialize", Times: 1})
	for _, want := range []int{503, 200} {
		resp, err := http.Post(server.URL, "application/json", strings.NewReader(initialize))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("status %d, want %d", resp.StatusCode, want)
		}
	}
	if server.Count("initialize") != 2 || server.Count(http.MethodPost) != 2 {
		t.Errorf("requests %+v", server.Requests())
	}
}

func TestAFreeAddressIsGivenToNobodyAndMayBeListenedOnAgainAndAgain(t *testing.T) {
	address := mcptest.FreeAddress(t)
	for range 2 {
		if conn, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("a connection gave %v, %v, want it refused", conn, err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		_ = l.Close()
	}
}
