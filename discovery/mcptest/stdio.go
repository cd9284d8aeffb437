package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program is a fake while it runs.
type program struct {
	Fake
	mind  mind
	in    *bufio.Reader
	mute  bool // Silent struck
	fresh bool // this launch is past FailFirst
}

// serveStdio is the fake server that spec describes. It returns the exit code.
func serveStdio(spec string) int {
	p := &program{in: bufio.NewReaderSize(os.Stdin, 1<<20)}
	if err := json.Unmarshal([]byte(spec), &p.Fake); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest:", err)
		return 2
	}
	p.mind = mind{era: p.Era, tools: p.Tools, pageSize: p.PageSize, send: p.write, ask: p.ask}
	if p.Stubborn {
		signal.Ignore(syscall.SIGTERM)
	}
	p.fresh = p.FailFirst > 0 && p.launch() > p.FailFirst
	if p.FailFirst == 0 && p.Launches != "" {
		p.launch()
	}
	if p.Grandchild != "" {
		p.startGrandchild()
	}
	if p.Gate != "" {
		p.awaitGate()
	}
	_, _ = io.WriteString(os.Stdout, p.Banner)
	if p.At == "" || p.Fault == None {
		p.speak()
		if p.At == "" {
			p.strike(message{}, message{})
		}
	}
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			if p.Stubborn {
				hang()
			}
			return 0
		}
		var req message
		if json.Unmarshal(line, &req) != nil {
			continue
		}
		p.serve(req)
	}
}

func (p *program) serve(req message) {
	reply, ok := p.mind.answer(req)
	if p.At != "" && req.Method == p.At && p.Fault != None && !p.fresh {
		p.speak()
		if p.strike(req, reply) {
			return
		}
	}
	if ok && !p.mute {
		p.write(reply)
	}
}

// strike does what is wrong; it reports whether the request is thereby done with.
func (p *program) strike(req, reply message) bool {
	if p.fresh {
		return false
	}
	switch p.Fault {
	case Exit:
		os.Exit(p.ExitCode)
	case Kill:
		_ = syscall.Kill(os.Getpid(), unix.SignalNum(p.Signal))
		hang()
	case Silent:
		p.mute = true
	case Chatter:
		p.mute = true
		go chatter()
	case Slow:
		pause(time.Duration(p.DelayMS) * time.Millisecond)
	case HalfLine:
		line := marshal(reply)
		_, _ = os.Stdout.Write(line[:len(line)/2])
		os.Exit(p.ExitCode)
	case NoNewline:
		_, _ = os.Stdout.Write(marshal(reply))
		os.Exit(p.ExitCode)
	case HugeLine:
		_, _ = os.Stdout.Write(append([]byte(`{"jsonrpc":"2.0","id":1,"result":"`), bytes.Repeat([]byte("x"), p.Bytes)...))
		_, _ = io.WriteString(os.Stdout, "\"}\n")
	case Error:
		p.write(message{JSONRPC: "2.0", ID: req.ID, Error: &rpcError{Code: p.Code, Message: p.Message, Data: p.Data}})
		return true
	case WrongID:
		reply.ID = json.RawMessage(`424242`)
		p.write(reply)
		return true
	case NoResult:
		p.write(message{JSONRPC: "2.0", ID: req.ID})
		return true
	case CloseStdout:
		_ = os.Stdout.Close()
		return true
	case Deaf:
		hang()
	}
	return false
}

// speak writes Stderr.
func (p *program) speak() {
	said := os.Expand(p.Stderr, os.Getenv)
	for i, part := range strings.Split(said, "|") {
		if i > 0 {
			pause(20 * time.Millisecond)
		}
		_, _ = io.WriteString(os.Stderr, part)
	}
}

// launch adds a line to Launches and returns how many there are.
func (p *program) launch() int {
	f, err := os.OpenFile(p.Launches, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, os.Getpid())
	_ = f.Close()
	return Launches(p.Launches)
}

// Launches returns how many times fakes with that Launches file were started.
func Launches(file string) int {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

func (p *program) awaitGate() {
	gate, err := os.Open(p.Gate)
	if err != nil {
		panic(err)
	}
	_ = gate.Close()
}

// chatter prints what a web server does that was started by mistake.
func chatter() {
	for {
		fmt.Fprintln(os.Stdout, "GET / 200 in 3 ms")
		fmt.Fprintln(os.Stderr, "watching for file changes")
		pause(20 * time.Millisecond)
	}
}

func (p *program) startGrandchild() {
	cmd := exec.Command("sleep", "300")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	if err := os.WriteFile(p.Grandchild, fmt.Append(nil, cmd.Process.Pid), 0o600); err != nil {
		panic(err)
	}
}

func (p *program) write(m message) {
	_, _ = os.Stdout.Write(append(marshal(m), '\n'))
}

// ask waits for the client's answer; whatever comes before it is dropped.
func (p *program) ask(req message) message {
	p.write(req)
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			return message{}
		}
		var m message
		if json.Unmarshal(line, &m) == nil && m.Method == "" && bytes.Equal(m.ID, req.ID) {
			return m
		}
	}
}

// hang stays until the process is killed. A bare select would be a deadlock.
func hang() { pause(24 * time.Hour) }

func pause(d time.Duration) {
	<-time.NewTimer(d).C
}
