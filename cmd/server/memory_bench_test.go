package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// memory is what of the process is resident: at rest after reads and calls, how much
// more after as many again, after questions about the past, and at most while an
// answer of 64 MiB comes in. The bars are 80 MiB, flat, and 150 MiB.
func (l largeLog) memory(b *testing.B) {
	for b.Loop() {
		p := l.serve(b)
		b.ReportMetric(p.resident(b, "VmRSS"), "MiB-started")
		p.readAndCall(b)
		atRest := p.rested(b)
		p.readAndCall(b)
		b.ReportMetric(atRest, "MiB-at-rest")
		b.ReportMetric(p.rested(b)-atRest, "MiB-more-later")

		p.forgetPeak(b)
		p.call(b, vastServer, `"outcome":"failed"`)
		b.ReportMetric(p.resident(b, "VmHWM"), "MiB-peak-64MiB-answer")

		p.rested(b) // so that the peak to come is none of that answer's
		p.forgetPeak(b)
		for n := range 5 {
			p.get(b, fmt.Sprintf("/api/servers?limit=1000&at=%d", 150_000*(n+1)))
		}
		b.ReportMetric(p.resident(b, "VmHWM"), "MiB-peak-past")
		b.ReportMetric(p.rested(b), "MiB-after-past")
		p.stop()
	}
}

// readAndCall does what a busy hour does: it reads every list, some histories, and
// calls a tool two thousand times.
func (p runningProgram) readAndCall(b *testing.B) {
	b.Helper()
	for n := range 20 {
		p.get(b, "/api/tools")
		p.get(b, "/api/servers?limit=1000")
		p.get(b, "/api/events?limit=1000&order=desc")
		p.get(b, fmt.Sprintf("/api/servers/%s%02d/history", oftenAsked, n))
	}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 250 {
				p.call(b, echoServer, `"outcome":"succeeded"`)
			}
		})
	}
	callers.Wait()
}

// rested returns the resident MiB once the process has had the time to give back what
// it does not use.
func (p runningProgram) rested(b *testing.B) float64 {
	b.Helper()
	time.Sleep(trimEvery + time.Second)
	return p.resident(b, "VmRSS")
}

// resident returns a size of the process in MiB, by its name in /proc/PID/status.
func (p runningProgram) resident(b *testing.B, name string) float64 {
	b.Helper()
	return residentMiB(b, p.Process.Pid, name)
}

// residentMiB returns a size of any process, by its name in /proc/PID/status.
func residentMiB(b *testing.B, pid int, name string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("no /proc")
	}
	_, rest, _ := strings.Cut(string(status), name+":")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatalf("%s in %s: %v", name, status, err)
	}
	return kib / 1024
}

// forgetPeak has the kernel measure the peak of resident memory anew.
func (p runningProgram) forgetPeak(b *testing.B) {
	b.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Process.Pid), []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

// get asks the program for path, with its query, and returns the answer.
func (p runningProgram) get(b *testing.B, path string) (answer json.RawMessage) {
	b.Helper()
	if err := p.client.get(b.Context(), path, nil, &answer); err != nil {
		b.Fatal(err)
	}
	return answer
}

// call calls the tool echo of a server and wants a part of the answer to be as given.
func (p runningProgram) call(b *testing.B, server, want string) {
	b.Helper()
	var answer json.RawMessage
	err := p.client.post(b.Context(), "/api/servers/"+server+"/tools/echo/call", nil, map[string]any{"arguments": map[string]any{"n": 1}}, &answer)
	if err != nil || !strings.Contains(string(answer), want) {
		b.Errorf("a call of %s was answered %s %v", server, answer, err)
	}
}
