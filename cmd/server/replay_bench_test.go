package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpledger/projections/rules"
)

// BenchmarkReplayMemory is the most memory that "replay" has resident over a log of a
// million events and a thousand servers, and how long it takes from start to end. The
// bar is 80 MiB.
func BenchmarkReplayMemory(b *testing.B) {
	const servers, broken, total = 1000, 50, 1_000_000
	program, dir := buildProgram(b), b.TempDir()
	data, file, candidate := filepath.Join(dir, "data"), filepath.Join(dir, "mcp.json"), filepath.Join(dir, "candidate.yaml")
	entries := map[string]any{}
	for i := range servers {
		entries[fmt.Sprintf("server-%04d", i)] = map[string]any{"command": "/bin/false", "args": []string{fmt.Sprint(i)}}
	}
	writeJSON(b, file, map[string]any{"mcpServers": entries})
	fillLog(b, data, file, broken, total)
	hasty := strings.Replace(rules.Default().Text(), "after: 3, for: [1h, 4h, 24h]", "after: 1, for: [6h]", 1)
	if err := os.WriteFile(candidate, []byte(hasty), 0o600); err != nil {
		b.Fatal(err)
	}
	var most int
	for b.Loop() {
		most = max(most, peakKiB(b, exec.Command(program, "replay", "--data", data, "--rules", candidate)))
	}
	b.ReportMetric(float64(most)/1024, "MiB")
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakKiB runs a replay to its verdict and returns the most memory it had resident, as
// Linux tells while it runs. What getrusage tells afterwards may be the memory of
// whoever started it.
func peakKiB(b *testing.B, cmd *exec.Cmd) (peak int) {
	b.Helper()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			code := cmd.ProcessState.ExitCode()
			if !slices.Contains(slices.Collect(maps.Values(replayExits)), code) || peak == 0 {
				b.Fatalf("%v, a peak of %d KiB was seen", err, peak)
			}
			return peak
		case <-look.C:
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)) // gone with the process
			if m := peakLine.FindSubmatch(status); m != nil {
				peak, _ = strconv.Atoi(string(m[1]))
			}
		}
	}
}
