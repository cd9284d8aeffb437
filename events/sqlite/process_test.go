package sqlite_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/events/sqlite"
)

// These tests need processes of their own: to be killed, or to run out of space. The
// test binary runs itself again as one of these.
const childVariable = "LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case "append":
		appendUntilKilled(os.Args[1])
	case "fill":
		fillUpAndGoOn(os.Args[1])
	case "bequeath":
		bequeathTheLock(os.Args[1])
	case "linger":
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// child starts the test binary as a child on the folder dir.
func child(t *testing.T, role, dir string) (*exec.Cmd, io.ReadCloser) {
	t.Helper()
	return startChild(t, role, dir, nil)
}

func startChild(t *testing.T, role, dir string, stdin *os.File) (*exec.Cmd, io.ReadCloser) {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.Env = append(os.Environ(), childVariable+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, out
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// appendUntilKilled appends with several callers and says each event's id and place
// once it was told that the event is stored.
func appendUntilKilled(dir string) {
	l, err := sqlite.Open(ctx, dir, options)
	fatal(err)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				batch := []events.Event{failure(i), failure(i + 1)}
				for j := range batch {
					batch[j].ID = fmt.Sprintf("%d-%s", os.Getpid(), batch[j].ID)
				}
				r, err := l.Append(ctx, batch)
				fatal(err)
				mu.Lock()
				for j, e := range batch {
					fmt.Println(e.ID, r.Sequences[j])
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[string]events.Sequence{}
	for round := range 3 {
		cmd, out := child(t, "append", dir)
		lines := bufio.NewScanner(out)
		for n := 0; n < 300 && lines.Scan(); n++ {
			note(t, acknowledged, lines.Text())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what was said before the end counts too
			note(t, acknowledged, lines.Text())
		}
		_ = cmd.Wait()

		if r := verify(t, dir, nil); !r.OK() {
			t.Fatalf("after kill %d: %s", round+1, r.Problem)
		}
		found := map[string]events.Sequence{}
		all := readAll(t, open2(t, dir))
		for _, e := range all {
			found[e.ID] = e.Sequence
		}
		for id, want := range acknowledged {
			if found[id] != want {
				t.Errorf("after kill %d: %s is at %d, its appender was told %d", round+1, id, found[id], want)
			}
		}
		if len(all)%2 != 0 {
			t.Errorf("after kill %d: %d events, a batch of two was stored in half", round+1, len(all))
		}
	}
	if len(acknowledged) < 900 {
		t.Errorf("only %d events were acknowledged", len(acknowledged))
	}
}

// open2 opens the log for writing and closes it, which recovers it, then for
// reading.
func open2(t *testing.T, dir string) *sqlite.Log {
	t.Helper()
	closeLog(t, open(t, dir))
	return openReader(t, dir)
}

func note(t *testing.T, acknowledged map[string]events.Sequence, line string) {
	t.Helper()
	var id string
	var place events.Sequence
	if _, err := fmt.Sscan(line, &id, &place); err != nil {
		return // the line the kill cut
	}
	acknowledged[id] = place
}

func TestAReaderAndAWriterInTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	cmd, out := child(t, "append", dir)
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the writer said nothing")
	}
	go func() {
		for lines.Scan() {
		}
	}()
	if _, err := sqlite.Open(ctx, dir, options); !errors.Is(err, events.ErrInUse) ||
		!strings.Contains(err.Error(), fmt.Sprintf("process %d", cmd.Process.Pid)) {
		t.Errorf("a second writer: got %v, want ErrInUse and process %d", err, cmd.Process.Pid)
	}
	r := openReader(t, dir)
	next := events.Sequence(1)
	for e, err := range r.Follow(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Sequence != next {
			t.Fatalf("followed %d, want %d", e.Sequence, next)
		}
		if next++; next > 2000 {
			break
		}
	}
	if report := verify(t, dir, nil); !report.OK() || report.Events < 1999 {
		t.Errorf("verify beside a writer: %+v", report)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := sqlite.Backup(ctx, dir, copied, true); err != nil {
		t.Fatalf("backup beside a writer: %v", err)
	}
	if report := verify(t, copied, nil); !report.OK() || report.Events < 1999 || !report.Signed {
		t.Errorf("verify of the backup: %+v", report)
	}
}

// bequeathTheLock opens the log, gives its lock to a process of its own, as every
// process has it between its fork and its exec, and waits to be killed. That process
// ends with stdin.
func bequeathTheLock(dir string) {
	_, err := sqlite.Open(ctx, dir, options)
	fatal(err)
	locked, err := os.Stat(filepath.Join(dir, "ledger.lock"))
	fatal(err)
	for fd := uintptr(3); fd < 256; fd++ {
		f := os.NewFile(fd, "inherited")
		if at, err := f.Stat(); err != nil || !os.SameFile(at, locked) {
			continue
		}
		heir := exec.Command(os.Args[0], dir)
		heir.Env = append(os.Environ(), childVariable+"=linger")
		heir.Stdin = os.Stdin
		heir.ExtraFiles = []*os.File{f}
		fatal(heir.Start())
		fmt.Println("bequeathed")
		select {}
	}
	fatal(errors.New("the lock is none of the open files"))
}

func TestAStartWaitsForWhatAKilledWriterLeftBehind(t *testing.T) {
	dir := t.TempDir()
	heirs, letGo, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = heirs.Close(), letGo.Close() })
	cmd, out := startChild(t, "bequeath", dir, heirs)
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the writer said %q: %v", said, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	time.AfterFunc(100*time.Millisecond, func() { _ = letGo.Close() })
	l, err := sqlite.Open(ctx, dir, options)
	if err != nil {
		t.Fatalf("the lock's last holder ends in a moment: %v", err)
	}
	closeLog(t, l)
}

// fillUpAndGoOn limits the size of the files this process may write, as a full disk
// would, appends until that hurts, and gets space again.
func fillUpAndGoOn(dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	l, err := sqlite.Open(ctx, dir, sqlite.Options{Now: time.Now, RetryEvery: 10 * time.Millisecond})
	fatal(err)
	limit := func(bytes uint64) {
		var was syscall.Rlimit
		fatal(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
		fatal(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: was.Max}))
	}
	stored := 0
	appendUntil := func(done func(error) bool) {
		for range 5000 {
			r, err := l.Append(ctx, []events.Event{failure(stored), failure(stored + 1)})
			stored += len(r.Sequences)
			if done(err) {
				return
			}
			if err != nil && !errors.Is(err, events.ErrUnavailable) {
				fatal(err)
			}
		}
		fatal(errors.New("appended 5000 batches to no end"))
	}
	count := func() (n int) {
		for _, err := range l.Read(ctx, events.Query{}) {
			fatal(err)
			n++
		}
		return n
	}

	limit(1 << 20)
	appendUntil(func(err error) bool { return errors.Is(err, events.ErrUnavailable) })
	fmt.Println("full: unavailable is", errors.Is(l.Unavailable(), events.ErrUnavailable))
	fmt.Println("full: events missing or half written:", count()-stored)
	_, err = l.Append(ctx, []events.Event{failure(0)})
	fmt.Println("full: still refused is", errors.Is(err, events.ErrUnavailable))

	limit(1 << 30)
	appendUntil(func(err error) bool { return err == nil })
	fmt.Println("space again: unavailable is", l.Unavailable() != nil)
	fmt.Println("space again: events missing or half written:", count()-stored)

	limit(1 << 20)
	appendUntil(func(err error) bool { return err != nil })
	limit(1 << 30)
	wait := time.NewTimer(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	for l.Unavailable() != nil {
		select {
		case <-tick.C:
		case <-wait.C:
			fatal(errors.New("without an append it stays unavailable"))
		}
	}
	fmt.Println("space again, without an append: unavailable is", l.Unavailable() != nil)
	fatal(l.Close())
}

func TestAFullDiskStopsAppendsAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	cmd, out := child(t, "fill", dir)
	var said bytes.Buffer
	if _, err := io.Copy(&said, out); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the child: %v, it said:\n%s", err, &said)
	}
	want := `full: unavailable is true
full: events missing or half written: 0
full: still refused is true
space again: unavailable is false
space again: events missing or half written: 0
space again, without an append: unavailable is false
`
	if said.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &said, want)
	}
	if r := verify(t, dir, nil); !r.OK() {
		t.Errorf("verify: %s", r.Problem)
	}
}
