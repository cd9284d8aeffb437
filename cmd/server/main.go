// Command server is mcpledger: the service and the command line that asks it.
//
// It wires the packages together and holds what belongs to no library: flags,
// signals, exit codes, words for people. What is recorded, judged or done is decided
// below it.
package main

import (
	"io"
	"os"
	"time"
)

// version is the program's version; a release build sets it by -ldflags.
var version = "0.1.0-dev"

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}

// program is one run of the command line: where it reads and writes, the environment
// it was given, and the flags that all commands share.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)
	now            func() time.Time
	lookEvery      time.Duration // of the schedule at now; 0 for as often as a real clock needs
	// completionPatience is how long a shell that completes waits for the service; 0 for
	// the constant of that name.
	completionPatience time.Duration

	dataDir   string // --data
	url       string // --url; empty: found by the data folder
	tokenFile string // --token-file
	json      bool   // --json

	// aim is what the line gave of --data, --url and --token-file, after a blank: what a
	// person is told to type next ends with it, to reach the same log or service.
	aim string
}

// run carries out one command line and returns the exit code. It writes nothing but
// to stdout, stderr and what the command is about.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, lookupEnv func(string) (string, bool)) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr, lookupEnv: lookupEnv, now: time.Now}
	return p.run(args)
}

// run carries out one command line and returns the exit code.
func (p *program) run(args []string) int {
	out := &output{w: p.stdout}
	p.stdout = out
	root := p.rootCommand()
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.Execute()
	if lost := out.lost(); lost != nil && (err == nil || err.Error() == "") {
		err = lost
	}
	return p.report(err)
}
