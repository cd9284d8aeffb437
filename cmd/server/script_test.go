package main

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"mcpledger/discovery/mcptest"
)

// programs are those that tests can start by name; each is this test binary.
var programs = map[string]func(){"server": patientMain, "mcpledger": patientMain}

// patientMain is main for tests, which run beside many others.
func patientMain() {
	p := &program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, lookupEnv: os.LookupEnv,
		now: time.Now, completionPatience: patience,
	}
	os.Exit(p.run(os.Args[1:]))
}

func TestMain(m *testing.M) {
	mcptest.ServeIfFake()
	testscript.Main(m, programs)
}

// patience is how long a script waits for what it says must come about.
const patience = 2 * time.Minute

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/home/.config")
			return os.MkdirAll(env.WorkDir+"/home", 0o700)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"await":  await,
			"code":   code,
			"gone":   gone,
			"report": report,
			"signal": signalService,
		},
	})
}

// await runs a command again and again until its output matches a pattern, or with !
// until it does not: await PATTERN PROGRAM ARG...
func await(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: await PATTERN PROGRAM ARG...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ts.Exec(args[1], args[2:]...)
		output := ts.ReadFile("stdout")
		if pattern.MatchString(output) != neg && (err == nil || !neg) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("waited %s in vain for %q; last output:\n%s%s", patience, args[0], output, ts.ReadFile("stderr"))
		}
	}
}

// code checks a program's exit code: code 2 PROGRAM ARG...
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARG...")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s\n%s%s", got, args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// gone waits until no process runs that has its id in one of the files: gone FILE...
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: gone FILE...")
	}
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, file := range args {
		pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(file)))
		ts.Check(err)
		for processState(pid) != "" {
			select {
			case <-tick.C:
			case <-deadline:
				ts.Fatalf("process %d of %s is still there", pid, file)
			}
		}
	}
}

// report tells the service that holds a data folder what a host saw: report FOLDER
// TOKENFILE ID TYPE SERVER DATAFILE
func report(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 6 {
		ts.Fatalf("usage: report FOLDER TOKENFILE ID TYPE SERVER DATAFILE")
	}
	host := asOperator(ts.MkAbs(args[0]))
	host.tokenFile = ts.MkAbs(args[1])
	c, err := host.openClient(context.Background())
	ts.Check(err)
	ts.Check(closing(c, func(c *client) error {
		event := map[string]any{"id": args[2], "type": args[3], "subject": args[4], "data": json.RawMessage(ts.ReadFile(args[5]))}
		return c.post(context.Background(), "/api/events", nil, event, nil)
	}))
}

// signalService sends a signal to the service that holds a data folder: signal HUP
// data
func signalService(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal NAME FOLDER")
	}
	service, running, err := readServiceFile(ts.MkAbs(args[1]))
	ts.Check(err)
	if !running {
		ts.Fatalf("no service holds %s", args[1])
	}
	process, err := os.FindProcess(service.PID)
	ts.Check(err)
	ts.Check(process.Signal(unix.SignalNum("SIG" + args[0])))
}
