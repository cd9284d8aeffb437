package upstream

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mcpledger/events"
)

// How long each step of a process's end may take.
const (
	drainGrace  = 250 * time.Millisecond // exit seen, till its pipes are cut
	stdinGrace  = 500 * time.Millisecond // stdin closed, till SIGTERM
	termGrace   = 500 * time.Millisecond // SIGTERM, till SIGKILL
	killGrace   = 2 * time.Second        // SIGKILL, till we wait no more
	stdoutGrace = 2 * time.Second        // stdout closed, till SIGKILL
)

// fate is what first ended a process or its stdout. It is decided once.
type fate string

const (
	fateExit      fate = "exit"      // it ended by itself
	fateMute      fate = "mute"      // it closed stdout and went on
	fateOversized fate = "oversized" // it wrote a line over the limit
	fateDeaf      fate = "deaf"      // it read no more of stdin
	fateClosed    fate = "closed"    // we ended it
)

// process is a running server and its three pipes. Its group dies with it: what it
// leaves behind in there is killed once it has ended.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *lineReader
	stderr *capture
	junk   *junk
	now    func() time.Time

	started time.Time

	fateMu sync.Mutex
	fate   fate // empty while it runs
	fateAt time.Time

	reapMu sync.Mutex
	reaped bool
	// ended is closed once the process was reaped and nothing more comes of it. fate
	// is decided by then.
	ended chan struct{}
}

// startProcess starts the program of t. active is called whenever it wrote
// something, lastID tells which replies are ours.
func startProcess(t Target, lastID *atomic.Int64, active func()) (*process, error) {
	cmd, err := t.command()
	if err != nil {
		return nil, err
	}
	var theirs, ours [3]*os.File
	defer closeAll(theirs[:])
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours[:])
			return nil, fmt.Errorf("pipe: %w", err)
		}
		if i == 0 {
			theirs[i], ours[i] = r, w
		} else {
			theirs[i], ours[i] = w, r
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	started := t.Now()
	if err := spawn(cmd); err != nil {
		closeAll(ours[:])
		return nil, err
	}

	p := &process{
		cmd: cmd, stdin: ours[0], stderr: newCapture(t), junk: newJunk(t), now: t.Now, started: started,
		ended: make(chan struct{}),
	}
	stdoutDone, stderrDone := make(chan struct{}), make(chan struct{})
	p.stdout = newLineReader(
		&watched{file: ours[1], active: active, ended: stdoutDone},
		t.maxMessage(), p.junk, lastID,
		func() { p.kill(fateOversized) },
	)
	go func() {
		defer close(stderrDone)
		drain(&watched{file: ours[2], active: active}, p.stderr)
	}()
	go p.stdout.asked.answer(p.stdin, p.ended)
	go p.watchStdout(stdoutDone)
	go p.watch(stdoutDone, stderrDone, ours[1:])
	return p, nil
}

// watch sees the process end and cleans up after it.
func (p *process) watch(stdoutDone, stderrDone <-chan struct{}, outputs []*os.File) {
	awaitExit(p.cmd)
	p.decide(fateExit)
	grace := time.NewTimer(drainGrace)
	defer grace.Stop()
	drained := waitFor(grace.C, stdoutDone) && waitFor(grace.C, stderrDone)

	p.reapMu.Lock()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
	p.reaped = true
	p.reapMu.Unlock()

	if !drained {
		// What was in the group let go of the pipes just now. A program that left the
		// group may hold them still; it is not waited for.
		grace.Reset(drainGrace)
		_ = waitFor(grace.C, stdoutDone) && waitFor(grace.C, stderrDone)
	}
	closeAll(outputs)
	<-stderrDone
	_ = p.stdin.Close()
	p.stderr.finish()
	close(p.ended)
}

// watchStdout ends a process that can answer no more.
func (p *process) watchStdout(stdoutDone <-chan struct{}) {
	select {
	case <-stdoutDone:
	case <-p.ended:
		return
	}
	grace := time.NewTimer(stdoutGrace)
	defer grace.Stop()
	select {
	case <-grace.C:
		p.kill(fateMute)
	case <-p.ended:
	}
}

// decide settles what ended the process, if nothing did before.
func (p *process) decide(f fate) {
	p.fateMu.Lock()
	defer p.fateMu.Unlock()
	if p.fate == "" {
		p.fate, p.fateAt = f, p.now()
	}
}

// decided returns what ended the process and when, if something did.
func (p *process) decided() (fate, time.Time) {
	p.fateMu.Lock()
	defer p.fateMu.Unlock()
	return p.fate, p.fateAt
}

func (p *process) kill(f fate) {
	p.decide(f)
	p.signal(syscall.SIGKILL)
}

// signal sends sig to the group, unless the process is gone and its id may be
// another's.
func (p *process) signal(sig syscall.Signal) {
	p.reapMu.Lock()
	defer p.reapMu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

// close ends the process: it closes stdin, then sends SIGTERM, then SIGKILL to the
// group, each when the step before did not help in time, and SIGKILL at once when
// ctx ends. The error is that of a process that even outlives that.
func (p *process) close(ctx context.Context) error {
	p.decide(fateClosed)
	_ = p.stdin.Close()
	if p.wait(ctx, stdinGrace) {
		return nil
	}
	p.signal(syscall.SIGTERM)
	if p.wait(ctx, termGrace) {
		return nil
	}
	p.signal(syscall.SIGKILL)
	if p.wait(context.WithoutCancel(ctx), killGrace) {
		return nil
	}
	return fmt.Errorf("process %d outlives SIGKILL", p.cmd.Process.Pid)
}

// wait reports whether the process ended within limit.
func (p *process) wait(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// describe says in ev how the process ended. It is called once something ended it.
func (p *process) describe(ev *events.Evidence) {
	ev.EndedBy = events.EndedByServer
	switch f, _ := p.decided(); f {
	case fateClosed:
		ev.EndedBy = events.EndedByUs
		ev.ErrorKind = events.KindCancelled
		ev.Error = ErrClosed.Error()
	case fateOversized:
		ev.ErrorKind = events.KindOversized
		ev.Error = errOversized.Error()
	case fateDeaf:
		ev.ErrorKind = events.KindEOF
		ev.Error = "stopped reading stdin"
	case fateMute, "": // without a fate it is about to be ended for this
		ev.ErrorKind = events.KindEOF
		ev.Error = "closed stdout and went on running"
	case fateExit:
		<-p.ended // the status is there once it was reaped, in a moment
		status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			ev.ErrorKind = events.KindSignal
			ev.Signal = signalName(status.Signal())
			ev.Error = "process ended by " + ev.Signal
			return
		}
		code := status.ExitStatus()
		ev.ErrorKind = events.KindExit
		ev.ExitCode = &code
		ev.Error = fmt.Sprintf("process exited with code %d", code)
	}
}

// describeOutput adds to ev what the process wrote beside its messages.
func (p *process) describeOutput(ev *events.Evidence, at time.Time) {
	p.stderr.describe(ev, at)
	ev.StdoutJunk = p.junk.seen()
}

// signalName is the name as in kill(1), such as "SIGKILL".
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return strings.ToUpper(sig.String())
}
