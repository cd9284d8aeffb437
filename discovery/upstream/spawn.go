package upstream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"mcpledger/events"
)

// spawner starts all processes from one thread that never ends. The kernel's
// promise to kill a child when its parent dies is tied to the thread that started
// the child, and the runtime ends threads when it likes.
var spawner = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go runOnOneThread(jobs)
	return jobs
})

func runOnOneThread(jobs <-chan func()) {
	runtime.LockOSThread()
	sealDescriptors()
	for job := range jobs {
		job()
	}
}

// spawn starts cmd in a process group of its own.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = groupAttr()
	started := make(chan error, 1)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}

// command prepares the program of t. The error says what is missing or not allowed.
func (t Target) command() (*exec.Cmd, error) {
	if t.Dir != "" {
		// Asked here, since the error of a start does not tell a missing directory from
		// a missing program.
		if _, err := os.Stat(t.Dir); err != nil {
			return nil, fmt.Errorf("working directory: %w", err)
		}
	}
	path, err := LookPath(t.Command, t.Dir, t.Env)
	if err != nil {
		return nil, err
	}
	env := t.Env
	if env == nil {
		env = []string{} // nil would give the program our own
	}
	return &exec.Cmd{Path: path, Args: append([]string{t.Command}, t.Args...), Env: env, Dir: t.Dir}, nil
}

// spawnFailure is the failure of a program that could not be started.
func (t Target) spawnFailure(err error) *Failure {
	ev := events.Evidence{
		Phase: events.PhaseSpawn, Transport: events.TransportStdio, Command: t.Label,
		Error: t.errorText(err),
	}
	// A failed look-up and a failed start are about the program; what else can fail
	// before it runs is not.
	var lookup *exec.Error
	var start *fs.PathError
	ofProgram := errors.As(err, &lookup) || errors.As(err, &start) && start.Op == "fork/exec"
	switch {
	case !ofProgram:
	case errors.Is(err, fs.ErrPermission):
		ev.ErrorKind = events.KindPermission
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		// The latter is a script whose first line names a missing interpreter.
		ev.ErrorKind = events.KindExecNotFound
	}
	return &Failure{Evidence: ev, cause: err}
}
