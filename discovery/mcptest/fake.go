package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// envFake holds the Fake, as JSON, that the test binary shall be, or after an "@" the
// name of a file with it.
const envFake = "MCPTEST_FAKE"

// Main is a TestMain: it is the fake server if the test binary was started as one,
// and otherwise runs the tests.
func Main(m *testing.M) {
	ServeIfFake()
	os.Exit(m.Run())
}

// ServeIfFake returns at once, unless the program was started as a fake server:
// then it is that server and never returns. It is for a TestMain that does more.
func ServeIfFake() {
	if spec, ok := os.LookupEnv(envFake); ok {
		if file, named := strings.CutPrefix(spec, "@"); named {
			b, err := os.ReadFile(file)
			if err != nil {
				fmt.Fprintln(os.Stderr, "mcptest:", err)
				os.Exit(2)
			}
			spec = string(b)
		}
		os.Exit(serveStdio(spec))
	}
}

// Fault is something a program does wrong.
type Fault string

// The faults. At says when they happen.
const (
	None        Fault = ""
	Exit        Fault = "exit"         // ends with ExitCode
	Kill        Fault = "kill"         // ends itself by Signal
	Silent      Fault = "silent"       // answers nothing from there on
	Slow        Fault = "slow"         // answers after DelayMS
	HalfLine    Fault = "half_line"    // sends half of the answer, then ends with ExitCode
	NoNewline   Fault = "no_newline"   // sends the answer without a newline, then ends with ExitCode
	HugeLine    Fault = "huge_line"    // sends a line of Bytes bytes
	Error       Fault = "error"        // answers the JSON-RPC error Code, Message, Data
	WrongID     Fault = "wrong_id"     // answers with another id
	NoResult    Fault = "no_result"    // answers with neither result nor error
	CloseStdout Fault = "close_stdout" // closes stdout and goes on
	Deaf        Fault = "deaf"         // reads no more of stdin
	Chatter     Fault = "chatter"      // prints to stdout and stderr for ever, and answers nothing
)

// Era says which revisions of the protocol a fake speaks.
type Era string

// The eras.
const (
	Legacy Era = ""       // initialize; server/discover is refused
	Modern Era = "modern" // server/discover; initialize is refused
	Both   Era = "both"
	// Spoilt is legacy, and refuses initialize once it was asked server/discover.
	Spoilt Era = "spoilt"
)

// Fake describes a server that is a program. The zero Fake is healthy.
type Fake struct {
	Era Era `json:"era,omitempty"`

	// Fault happens when the method At is received, such as "tools/list", or at the
	// start if At is empty.
	Fault Fault  `json:"fault,omitempty"`
	At    string `json:"at,omitempty"`
	// FailFirst limits the fault to that many launches, counted in Launches; 0 does
	// not limit it.
	FailFirst int `json:"fail_first,omitempty"`

	ExitCode int             `json:"exit_code,omitempty"`
	Signal   string          `json:"signal,omitempty"` // such as "SIGSEGV"
	DelayMS  int             `json:"delay_ms,omitempty"`
	Bytes    int             `json:"bytes,omitempty"`
	Code     int             `json:"code,omitempty"`
	Message  string          `json:"message,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`

	// Launches names a file that gets a line with the process id at each start.
	Launches string `json:"launches,omitempty"`
	// Gate names a pipe in the file system (see mkfifo). The program does nothing until
	// somebody opens it to write.
	Gate string `json:"gate,omitempty"`
	// Stderr is written at the fault, or at the start if there is none. ${NAME} in it
	// stands for the environment variable, and a "|" for a pause between two writes.
	Stderr string `json:"stderr,omitempty"`
	// Banner is written to stdout at the start.
	Banner string `json:"banner,omitempty"`
	// Grandchild starts a process that holds the pipes and outlives the server; its id
	// is written to the file that is named here.
	Grandchild string `json:"grandchild,omitempty"`
	// Stubborn ignores SIGTERM and the end of stdin.
	Stubborn bool `json:"stubborn,omitempty"`

	// Tools is how many tools there are beside the standing ones (see the package's
	// tools.go), PageSize how many are listed at a time; 0 lists all at once.
	Tools    int `json:"tools,omitempty"`
	PageSize int `json:"page_size,omitempty"`
}

// Command is how a fake program is started.
type Command struct {
	Path string
	Args []string
	Env  map[string]string
}

// Command returns how to start the fake. The test binary must use Main or
// ServeIfFake.
func (f Fake) Command() Command {
	spec, err := json.Marshal(f)
	if err != nil {
		panic(err) // Data is no JSON
	}
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Command{Path: path, Env: map[string]string{envFake: string(spec)}}
}

// CommandIn is Command with the description in a file in dir, for servers whose whole
// environment is taken for secret.
func (f Fake) CommandIn(dir string) (Command, error) {
	c := f.Command()
	file, err := os.CreateTemp(dir, "fake-*.json")
	if err != nil {
		return Command{}, err
	}
	if _, err := file.WriteString(c.Env[envFake]); err != nil {
		return Command{}, err
	}
	c.Env[envFake] = "@" + file.Name()
	return c, file.Close()
}

// Environ returns the environment of the command in the form of os.Environ.
func (c Command) Environ() []string {
	env := []string{}
	for name, value := range c.Env {
		env = append(env, name+"="+value)
	}
	return env
}
