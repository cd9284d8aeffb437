package upstream_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
)

const npmDebugLog = `0 verbose cli /usr/bin/node /usr/bin/npm
6 verbose title npm exec weather-server@1.0.0
7 verbose argv "exec" "--yes" "--" "weather-server@1.0.0"
21 info run weather-server@1.0.0 install node_modules/weather-server node-gyp rebuild
22 info run libfoo@2.0.0 install { code: 0, signal: null }
23 info run weather-server@1.0.0 install { code: 3, signal: null }
24 error code ELIFECYCLE for ` + secret + `
25 verbose exit 3
`

func TestTheReasonNpxKeepsToItselfIsFound(t *testing.T) {
	found := events.Evidence{
		Phase: events.PhaseHandshake, Transport: events.TransportStdio, Command: "fake",
		Error: "process exited with code 3", ErrorKind: events.KindExit, ExitCode: ptr(3), EndedBy: events.EndedByServer,
		StderrTail: "[from npm's debug log]\nnpm error run weather-server@1.0.0 install { code: 3, signal: null }\nnpm error code ELIFECYCLE for «API_KEY»",
	}
	nothing := found
	nothing.StderrTail = ""
	tests := []struct {
		name    string
		program string
		log     string
		written time.Duration // after the start
		want    events.Evidence
	}{
		{"written by this command", "npx", npmDebugLog, time.Minute, found},
		{"written before it", "npx", npmDebugLog, -time.Minute, nothing},
		{"written by another", "npx", "7 verbose argv \"exec\" \"other\"\n8 error code E404\n", time.Minute, nothing},
		{"of a program that is not npm's", "uvx", npmDebugLog, time.Minute, nothing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkLeaks(t)
			home := t.TempDir()
			logs := filepath.Join(home, ".npm", "_logs")
			if err := os.MkdirAll(logs, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(logs, "2026-01-01T00_00_00_000Z-debug-0.log")
			if err := os.WriteFile(path, []byte(tt.log), 0o600); err != nil {
				t.Fatal(err)
			}
			written := time.Now().Add(tt.written)
			if err := os.Chtimes(path, written, written); err != nil {
				t.Fatal(err)
			}
			server := target(mcptest.Fake{Fault: mcptest.Exit, ExitCode: 3})
			link := filepath.Join(home, tt.program)
			if err := os.Symlink(server.Command, link); err != nil {
				t.Fatal(err)
			}
			server.Command = link
			server.Args = []string{"-y", "weather-server@1.0.0"}
			server.Env = append(server.Env, "HOME="+home)
			wantEvidence(t, openFails(t, server), tt.want)
		})
	}
}
