package upstream_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

const traceback = "Traceback (most recent call last):\n  File \"server.py\", line 1, in <module>\nModuleNotFoundError: No module named 'weather'\n"

func TestAProcessThatCannotBeOpenedLeavesEvidence(t *testing.T) {
	tests := []struct {
		name string
		fake mcptest.Fake // limits end once it was launched, where it counts that
		set  func(*upstream.Target)
		want events.Evidence
	}{
		{
			name: "it exits at the start with a traceback",
			fake: mcptest.Fake{Fault: mcptest.Exit, ExitCode: 1, Stderr: traceback},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "process exited with code 1", ErrorKind: events.KindExit,
				ExitCode: ptr(1), EndedBy: events.EndedByServer,
				StderrTail: traceback[:len(traceback)-1], StderrBytes: int64(len(traceback)), StderrLastMS: ptr(int64(0)),
			},
		},
		{
			name: "it exits in silence, even with code 0",
			fake: mcptest.Fake{Fault: mcptest.Exit, At: "initialize"},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "process exited with code 0", ErrorKind: events.KindExit,
				ExitCode: ptr(0), EndedBy: events.EndedByServer,
			},
		},
		{
			name: "it is ended by a signal",
			fake: mcptest.Fake{Fault: mcptest.Kill, Signal: "SIGKILL", At: "initialize", Stderr: "allocating\n"},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "process ended by SIGKILL", ErrorKind: events.KindSignal,
				Signal: "SIGKILL", EndedBy: events.EndedByServer,
				StderrTail: "allocating", StderrBytes: 11, StderrLastMS: ptr(int64(0)),
			},
		},
		{
			name: "it sends half a line and exits",
			fake: mcptest.Fake{Fault: mcptest.HalfLine, At: "initialize", ExitCode: 3},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "process exited with code 3", ErrorKind: events.KindExit,
				ExitCode: ptr(3), EndedBy: events.EndedByServer,
				StdoutJunk: &events.Junk{Count: 1, Excerpt: `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged`},
			},
		},
		{
			name: "it prints its help and exits",
			fake: mcptest.Fake{Fault: mcptest.Exit, ExitCode: 2, Banner: "usage: weather KEY\n\n  KEY  from the site\n"},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "process exited with code 2", ErrorKind: events.KindExit,
				ExitCode: ptr(2), EndedBy: events.EndedByServer,
				StdoutJunk: &events.Junk{Count: 2, Excerpt: "usage: weather KEY\n  KEY  from the site"},
			},
		},
		{
			name: "it exits while something it started holds its pipes",
			fake: mcptest.Fake{Fault: mcptest.Exit, ExitCode: 1, Grandchild: filepath.Join(t.TempDir(), "pid")},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "process exited with code 1", ErrorKind: events.KindExit,
				ExitCode: ptr(1), EndedBy: events.EndedByServer,
			},
		},
		{
			name: "it stays silent",
			fake: mcptest.Fake{Fault: mcptest.Silent, Launches: filepath.Join(t.TempDir(), "launches"), Stderr: "open https://example.com/login to go on\n"},
			set:  func(t *upstream.Target) { t.Budget.Total = 1500 * time.Millisecond },
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "did not answer the handshake within 1.5s", ErrorKind: events.KindTimeoutStart,
				LimitMS:    1500,
				StderrTail: "open https://example.com/login to go on", StderrBytes: 40, StderrLastMS: ptr(int64(0)),
			},
		},
		{
			name: "it says nothing at all for too long",
			fake: mcptest.Fake{Fault: mcptest.Silent},
			set:  func(t *upstream.Target) { t.Budget.Silence = 300 * time.Millisecond },
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "did not write anything within 300ms", ErrorKind: events.KindTimeoutStart,
				LimitMS: 300,
			},
		},
		{
			name: "it writes a line without end",
			fake: mcptest.Fake{Fault: mcptest.HugeLine, At: "initialize", Bytes: 1 << 20},
			set:  func(t *upstream.Target) { t.MaxMessageBytes = 100_000 },
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "message exceeds the limit", ErrorKind: events.KindOversized,
				EndedBy: events.EndedByServer,
			},
		},
		{
			name: "it closes stdout and goes on",
			fake: mcptest.Fake{Fault: mcptest.CloseStdout, At: "initialize"},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "closed stdout and went on running", ErrorKind: events.KindEOF,
				EndedBy: events.EndedByServer,
			},
		},
		{
			name: "it answers with a JSON-RPC error",
			fake: mcptest.Fake{Fault: mcptest.Error, At: "initialize", Code: -32603, Message: "no key", Data: []byte(`{"n":1}`), Stderr: "giving up\n"},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "no key", ErrorKind: events.KindJSONRPC,
				JSONRPCCode: ptr(-32603), JSONRPCMessage: "no key", JSONRPCData: `{"n":1}`,
				StderrTail: "giving up", StderrBytes: 10, StderrLastMS: ptr(int64(0)),
			},
		},
		{
			name: "it answers with neither result nor error",
			fake: mcptest.Fake{Fault: mcptest.NoResult, At: "initialize"},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "the reply has neither a result nor an error", ErrorKind: events.KindMalformed,
			},
		},
		{
			name: "it answers another request than ours",
			fake: mcptest.Fake{Fault: mcptest.WrongID, Launches: filepath.Join(t.TempDir(), "launches"), At: "initialize"},
			set:  func(t *upstream.Target) { t.Budget.Total = 1500 * time.Millisecond },
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "did not answer the handshake within 1.5s", ErrorKind: events.KindTimeoutStart,
				LimitMS:    1500,
				StdoutJunk: &events.Junk{Count: 1, Excerpt: `{"jsonrpc":"2.0","id":424242,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1.2.3","title":"A fake"},"instructions":"Ask kindly."}}`},
			},
		},
		{
			name: "it prints its key in two parts",
			fake: mcptest.Fake{Fault: mcptest.Exit, ExitCode: 1, Stderr: "bad key " + secret[:7] + "|" + secret[7:] + " ${API_KEY}\n"},
			want: events.Evidence{
				Phase: events.PhaseHandshake, Error: "process exited with code 1", ErrorKind: events.KindExit,
				ExitCode: ptr(1), EndedBy: events.EndedByServer,
				StderrTail: "bad key «API_KEY» «API_KEY»", StderrBytes: int64(len("bad key  \n") + 2*len(secret)), StderrLastMS: ptr(int64(0)),
			},
		},
		{
			name: "there is no such program",
			set:  func(t *upstream.Target) { t.Command = "no-such-program-here" },
			want: events.Evidence{
				Phase: events.PhaseSpawn, Error: `exec: "no-such-program-here": executable file not found in $PATH`,
				ErrorKind: events.KindExecNotFound,
			},
		},
		{
			name: "the program may not be run",
			set:  func(target *upstream.Target) { target.Command = writeFile(t, "plain.txt", "hello", 0o600) },
			want: events.Evidence{Phase: events.PhaseSpawn, ErrorKind: events.KindPermission},
		},
		{
			name: "the program's interpreter is missing",
			set: func(target *upstream.Target) {
				target.Command = writeFile(t, "script", "#!/no/such/interpreter\n", 0o700)
			},
			want: events.Evidence{Phase: events.PhaseSpawn, ErrorKind: events.KindExecNotFound},
		},
		{
			name: "the working directory is missing",
			set:  func(t *upstream.Target) { t.Dir = "/no/such/folder" },
			want: events.Evidence{Phase: events.PhaseSpawn, Error: "working directory: stat /no/such/folder: no such file or directory"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkLeaks(t)
			server := target(tt.fake)
			if tt.set != nil {
				tt.set(&server)
			}
			if tt.fake.Launches != "" {
				server.At = once(launched(tt.fake.Launches))
			}
			got := openFails(t, server)
			tt.want.Transport, tt.want.Command = events.TransportStdio, "fake"
			if tt.want.Error == "" {
				got.Error = "" // names a file in a temporary folder
			}
			wantEvidence(t, got, tt.want)
			if tt.fake.Grandchild != "" {
				awaitDeath(t, tt.fake.Grandchild)
			}
		})
	}
}

func writeFile(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// However a dying process is noticed first, it is one fact.
func TestADyingProcessGivesOneEvidence(t *testing.T) {
	checkLeaks(t)
	faults := []mcptest.Fake{
		{Fault: mcptest.Exit, ExitCode: 1, Stderr: traceback},                   // perhaps before we write
		{Fault: mcptest.Exit, ExitCode: 1, Stderr: traceback, At: "initialize"}, // after it has read
	}
	for i := range 50 {
		wantEvidence(t, openFails(t, target(faults[i%len(faults)])), events.Evidence{
			Phase: events.PhaseHandshake, Transport: events.TransportStdio, Command: "fake",
			Error: "process exited with code 1", ErrorKind: events.KindExit,
			ExitCode: ptr(1), EndedBy: events.EndedByServer,
			StderrTail: traceback[:len(traceback)-1], StderrBytes: int64(len(traceback)), StderrLastMS: ptr(int64(0)),
		})
	}
}

func TestOfAFloodOnStderrTheFirstAndTheLastAreKept(t *testing.T) {
	checkLeaks(t)
	flood := "started with key " + secret + "\n" + strings.Repeat("noise\n", 15_000) + "gave up with key " + secret + "\n"
	got := openFails(t, target(mcptest.Fake{Fault: mcptest.Exit, ExitCode: 1, Stderr: flood}))
	if got.StderrBytes != int64(len(flood)) {
		t.Errorf("%d bytes, want %d", got.StderrBytes, len(flood))
	}
	const head, tail = "started with key «API_KEY»\nnoise\n", "noise\ngave up with key «API_KEY»"
	if !strings.HasPrefix(got.StderrHead, head) || !strings.HasSuffix(got.StderrHead, "…") || len(got.StderrHead) > events.MaxStderrHeadBytes {
		t.Errorf("head of %d bytes: %q", len(got.StderrHead), got.StderrHead)
	}
	if !strings.HasPrefix(got.StderrTail, "…") || !strings.HasSuffix(got.StderrTail, tail) || len(got.StderrTail) > events.MaxStderrTailBytes {
		t.Errorf("tail of %d bytes: %q", len(got.StderrTail), got.StderrTail)
	}
}

// Wherever the window on stderr begins and ends, no part of a secret shows in it.
func TestNoCutShowsPartOfASecret(t *testing.T) {
	checkLeaks(t)
	for pad := range 12 {
		flood := strings.Repeat("x", pad) + strings.Repeat(secret+" ", 4000)
		got := openFails(t, target(mcptest.Fake{Fault: mcptest.Exit, ExitCode: 1, Stderr: flood}))
		for _, text := range []string{got.StderrHead, got.StderrTail} {
			if strings.Contains(text, secret[:8]) || strings.Contains(text, secret[len(secret)-8:]) {
				t.Fatalf("with a pad of %d: %q", pad, text)
			}
		}
	}
}
