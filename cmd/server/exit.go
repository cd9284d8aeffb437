package main

import (
	"errors"
	"fmt"

	"mcpledger/events"
)

// The exit codes that all commands share. preflight adds its own.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // wrong usage or config
)

// exitError is an error that ends the program with a code of its own. An empty
// message prints nothing.
type exitError struct {
	code    int
	message string
}

func (e *exitError) Error() string { return e.message }

// usagef reports wrong usage. The message is one sentence that says what to do.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, message: fmt.Sprintf(format, args...)}
}

// report prints err, if there is one, as one sentence and returns the exit code.
func (p *program) report(err error) int {
	if err == nil {
		return exitOK
	}
	code := exitFailed
	if exit, ok := errors.AsType[*exitError](err); ok {
		code = exit.code
	}
	if refused, ok := errors.AsType[*problem](err); ok && refused.wrongUsage() {
		code = exitUsage
	}
	message := err.Error()
	if errors.Is(err, events.ErrCorrupt) {
		message += "; run \"" + self + " verify" + p.aim + "\" to see what is damaged, then restore a backup"
	}
	if message != "" {
		fmt.Fprintf(p.stderr, "mcpledger: %s\n", printable(message))
	}
	return code
}
