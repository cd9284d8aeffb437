package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The tour of the README shows what is printed, but for what is otherwise each time: the
// order in which the servers come, times, numbers of events, the port and the token.
func TestTheTourShowsWhatIsPrinted(t *testing.T) {
	_, tour, _ := strings.Cut(read(t, source+"/README.md"), "## A two-minute tour")
	shown := regexp.MustCompile("(?s)```console\n\\$ .*?\n(.*?)\n(?:\\$|```)").FindAllStringSubmatch(tour, 2)
	if len(shown) != 2 {
		t.Fatal("the README has no tour")
	}

	data := filepath.Join(t.TempDir(), "tour")
	fleet := startFleet(t, data)
	fleet.await("toolbox +ready", "calendar +ready", "flaky +ready", "slow-start +ready", "silent +failed", "broken-import +failed")
	printed := fleet.stop()

	// The second failure, for which the tour waits a minute, comes at once with a restart.
	fleet = startFleet(t, data)
	fleet.await("broken-import +skipped")
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	why := ""
	for !strings.Contains(why, "discovery.skipped") { // recorded after it was told
		said, err := exec.CommandContext(ctx, "server", "why", "broken-import", "--data", data).CombinedOutput()
		if why = string(said); err != nil {
			t.Fatalf("%v: %s", err, why)
		}
	}
	printed += fleet.stop()

	there := strings.Split(sameEachTime(printed, data), "\n")
	for _, line := range strings.Split(sameEachTime(shown[0][1], "/tmp/tour"), "\n") {
		if !slices.Contains(there, line) {
			t.Errorf("the README shows\n%s\nwhich is not among\n%s", line, strings.Join(there, "\n"))
		}
	}
	if diff := cmp.Diff(sameEachTime(shown[1][1], "/tmp/tour"), sameEachTime(strings.TrimSpace(why), data)); diff != "" {
		t.Errorf("the README shows another explanation (-README +printed):\n%s", diff)
	}
}

// fleetRun is a service that runs the sample fleet.
type fleetRun struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   watched
	ended chan error
}

func startFleet(t *testing.T, data string) *fleetRun {
	t.Helper()
	f := &fleetRun{t: t, ended: make(chan error, 1), out: watched{wrote: make(chan struct{}, 1)}}
	f.cmd = exec.CommandContext(t.Context(), "server", "--data", data, "--listen", "127.0.0.1:0")
	f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.out
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { f.ended <- f.cmd.Wait() }()
	return f
}

// await waits until a line was printed for each pattern.
func (f *fleetRun) await(patterns ...string) {
	f.t.Helper()
	missing := func(pattern string) bool { return !regexp.MustCompile(pattern).MatchString(f.out.String()) }
	deadline := time.After(4 * patience)
	for slices.ContainsFunc(patterns, missing) {
		select {
		case <-f.out.wrote:
		case err := <-f.ended:
			f.t.Fatalf("the sample fleet ended: %v\n%s", err, f.out.String())
		case <-deadline:
			f.t.Fatalf("the sample fleet has not printed all of %q:\n%s", patterns, f.out.String())
		}
	}
}

// stop ends the fleet and returns what it printed.
func (f *fleetRun) stop() string {
	f.t.Helper()
	if err := f.cmd.Process.Signal(syscall.SIGINT); err != nil {
		f.t.Error(err)
	}
	if err := <-f.ended; err != nil {
		f.t.Errorf("the sample fleet ended: %v", err)
	}
	return f.out.String()
}

// watched is a writer that keeps what it is given and tells of it.
type watched struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.wrote <- struct{}{}:
	default:
	}
	return w.text.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// sameEachTime replaces what is otherwise each time, and the data folder.
func sameEachTime(text, data string) string {
	text = strings.ReplaceAll(text, data, "DATA")
	for _, varies := range []struct{ pattern, by string }{
		{`\d\d\d\d-\d\d-\d\d`, "DATE"}, {`\d\d:\d\d:\d\d`, "TIME"}, {`#\d+ *`, "#N "},
		{`127\.0\.0\.1:\d+`, "ADDRESS"}, {`token=\S+`, "token=TOKEN"},
	} {
		text = regexp.MustCompile(varies.pattern).ReplaceAllString(text, varies.by)
	}
	return text
}
