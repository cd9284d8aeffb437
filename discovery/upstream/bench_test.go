package upstream_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
)

// BenchmarkCall measures one caller over stdio against a floor in the same run: the
// same request written to the same server's stdin and its answer read from stdout.
// It reports calls/s, and as of-floor the share of the floor's.
func BenchmarkCall(b *testing.B) {
	floor := bareCalls(b, 2000)
	s, err := upstream.Open(b.Context(), target(mcptest.Fake{}))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close(b.Context()) }()
	calls := 0
	began := time.Now()
	for b.Loop() {
		if _, err := s.CallTool(b.Context(), "echo", json.RawMessage(`{"text":"hello"}`), upstream.CallOptions{}); err != nil {
			b.Fatal(err)
		}
		calls++
	}
	rate := float64(calls) / time.Since(began).Seconds()
	b.ReportMetric(rate, "calls/s")
	b.ReportMetric(rate/floor, "of-floor")
}

// bareCalls returns how many calls a second the server answers over bare pipes.
func bareCalls(b *testing.B, n int) float64 {
	b.Helper()
	fake := target(mcptest.Fake{})
	cmd := exec.Command(fake.Command)
	cmd.Env = fake.Env
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	began := time.Now()
	for i := range n {
		if _, err := fmt.Fprintf(stdin, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`+"\n", i); err != nil {
			b.Fatal(err)
		}
		if _, err := lines.ReadBytes('\n'); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return float64(n) / took.Seconds()
}
