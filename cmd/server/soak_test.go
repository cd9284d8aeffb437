//go:build soak

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpledger/httpapi/api"
)

var (
	soakTime  = flag.Duration("soak", time.Hour, "how long the soak lasts")
	soakSpeed = flag.Int("soak-speed", 20, "how many times faster than a real one the clock of the service runs, and how many times denser the traffic is")
)

// soakSpeedVariable tells the service of a soak its speed.
const soakSpeedVariable = "SOAK_SPEED"

// The service of a soak is the program with a clock that runs faster. Whatever is
// reckoned in times of the log goes by it: when a server is due, when a skip or a gate
// ends, when a session lay idle for too long. Timers do not: what waits for a server or
// a client waits as long as ever, for those are not faster either.
func init() {
	programs["soak-server"] = func() {
		speed, err := strconv.Atoi(os.Getenv(soakSpeedVariable))
		if err != nil {
			panic(err)
		}
		began := time.Now()
		now := func() time.Time {
			passed := time.Since(began)
			return began.Add(passed * time.Duration(speed))
		}
		p := &program{
			stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookupEnv: os.LookupEnv,
			now: now, lookEvery: time.Second / time.Duration(speed),
		}
		os.Exit(p.run(os.Args[1:]))
	}
}

// TestSoak has a fleet in which all goes wrong that may, and clients of every kind, for
// as long as -soak says, and fails unless the service has as many goroutines,
// descriptors, processes and as much memory in the end as it had at first.
func TestSoak(t *testing.T) {
	s := newMortalService(t)
	s.program = "soak-server"
	t.Setenv(soakSpeedVariable, fmt.Sprint(*soakSpeed))
	fleet := newSoakFleet(t, s.config)
	s.start()

	traffic := newSoakTraffic(t, s, fleet)
	traffic.begin(*soakSpeed)
	samples := takeSamples(t, s, *soakTime)
	traffic.end()

	t.Logf("%d servers, clock and traffic at %d times their speed, %s; %s", len(fleet.entries), *soakSpeed, *soakTime, traffic)
	for _, line := range judge(samples) {
		t.Log(line.text)
		if !line.flat {
			t.Errorf("not flat: %s", line.name)
		}
	}
}

// sample is what the service holds at one moment, and its resident memory since the
// sample before, which comes and goes with bursts.
type sample struct {
	goroutines, descriptors, processes float64
	residentMiB, peakMiB               float64 // on average, at most
	logMiB, events                     float64
}

// takeSamples looks every minute, or more often in a short soak, and prints what it
// sees. At the resident memory it looks every second.
func takeSamples(t *testing.T, s *mortalService, long time.Duration) (samples []sample) {
	t.Helper()
	began, next := time.Now(), min(time.Minute, long/24)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var resident []float64
	t.Log("after    goroutines  descriptors  processes  resident, at most    log       events")
	for interval := next; next <= long; <-tick.C {
		mib, err := s.residentMiB()
		if err != nil {
			t.Fatal(err)
		}
		resident = append(resident, mib)
		if time.Since(began) < next {
			continue
		}
		now, err := s.sample()
		if err != nil {
			t.Fatalf("after %s: %v", next, err)
		}
		now.residentMiB, now.peakMiB = mean(resident), slices.Max(resident)
		samples = append(samples, now)
		t.Logf("%-7s  %-10.0f  %-11.0f  %-9.0f  %.1f, %-9.1f MiB  %.1f MiB  %.0f", next.Round(time.Second),
			now.goroutines, now.descriptors, now.processes, now.residentMiB, now.peakMiB, now.logMiB, now.events)
		next, resident = next+interval, nil
	}
	return samples
}

// residentMiB asks the kernel.
func (s *mortalService) residentMiB() (mib float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "\nVmRSS:")
	_, err = fmt.Sscan(rest, &mib)
	return mib / (1 << 10), err
}

// sample asks the service and the kernel.
func (s *mortalService) sample() (now sample, err error) {
	pid := s.process.Process.Pid
	var answer bytes.Buffer
	res, err := s.client().open(context.Background(), http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		return now, err
	}
	_, err = answer.ReadFrom(res.Body)
	res.Body.Close()
	if err != nil {
		return now, err
	}
	var ready api.Readiness
	if err := s.client().get(context.Background(), "/readyz", nil, &ready); err != nil {
		return now, err
	}
	now.events = float64(ready.Sequence)
	_, rest, _ := strings.Cut(answer.String(), "\ngo_goroutines ")
	if _, err := fmt.Sscan(rest, &now.goroutines); err != nil {
		return now, fmt.Errorf("read go_goroutines: %w", err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return now, err
	}
	now.descriptors = float64(len(open))
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return now, err
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a thread may end meanwhile
			return now, err
		}
		now.processes += float64(len(strings.Fields(string(children))))
	}
	for _, file := range []string{"ledger.db", "ledger.db-wal"} {
		info, err := os.Stat(filepath.Join(s.data, file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return now, err
		}
		if err == nil {
			now.logMiB += float64(info.Size()) / (1 << 20)
		}
	}
	return now, nil
}

// judgment is what a soak says of one thing it measured.
type judgment struct {
	name, text string
	flat       bool
}

// judge compares the first quarter of the samples after the warm-up, which is a fifth
// of them, with the last one. What may be more by a tenth, and a little for small
// numbers, is flat. The log grows, but not by more bytes an event.
func judge(samples []sample) (verdict []judgment) {
	samples = samples[len(samples)/5:]
	quarter := max(1, len(samples)/4)
	for _, m := range []struct {
		name string
		of   func(sample) float64
		more float64 // besides a tenth
	}{
		{"goroutines", func(s sample) float64 { return s.goroutines }, 10},
		{"descriptors", func(s sample) float64 { return s.descriptors }, 5},
		{"processes", func(s sample) float64 { return s.processes }, 2},
		{"resident MiB", func(s sample) float64 { return s.residentMiB }, 4},
		{"at most, MiB", func(s sample) float64 { return s.peakMiB }, 8},
		{"log bytes an event", func(s sample) float64 { return s.logMiB * (1 << 20) / s.events }, 0},
	} {
		var values []float64
		for _, s := range samples {
			values = append(values, m.of(s))
		}
		was, is := mean(values[:quarter]), mean(values[len(values)-quarter:])
		flat := is <= was*1.1+m.more
		word := "flat"
		if !flat {
			word = "NOT FLAT"
		}
		verdict = append(verdict, judgment{m.name, fmt.Sprintf("%-18s  %8.1f at first, %8.1f in the end: %s", m.name, was, is, word), flat})
	}
	return verdict
}

func mean(of []float64) (sum float64) {
	for _, v := range of {
		sum += v
	}
	return sum / float64(len(of))
}
