package upstream_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"mcpledger/discovery/upstream"
)

func TestStdoutIsSortedIntoMessagesAndStrayLines(t *testing.T) {
	const reply = `{"jsonrpc":"2.0","id":1,"result":{}}`
	tests := []struct {
		name      string
		in        string
		messages  string
		stray     int64
		oversized bool
	}{
		{"a reply", reply + "\n", reply + "\n", 0, false},
		{"a last line without its end", reply, reply + "\n", 0, false},
		{"a notification", `{"jsonrpc":"2.0","method":"x"}` + "\n", `{"jsonrpc":"2.0","method":"x"}` + "\n", 0, false},
		{"a request of the server", `{"jsonrpc":"2.0","id":"a","method":"x"}` + "\n" + reply + "\n", reply + "\n", 0, false},
		{"a request whose id is none", `{"jsonrpc":"2.0","id":[],"method":"x"}` + "\n", "", 0, false},
		{"blank lines", "\n\r\n  \n" + reply + "\r\n", reply + "\n", 0, false},
		{"blanks that JSON does not know", "\f" + reply + "\v\f\u00a0\n", reply + "\n", 0, false},
		{"a banner", "Server ready\n" + reply + "\n", reply + "\n", 1, false},
		{"a log line in JSON", `{"level":"info"}` + "\n", "", 1, false},
		{"a reply to nobody", `{"jsonrpc":"2.0","id":null,"error":{}}` + "\n", "", 1, false},
		{"a reply to a request to come", `{"jsonrpc":"2.0","id":9,"result":{}}` + "\n", "", 1, false},
		{"a reply under a name", `{"jsonrpc":"2.0","id":"1","result":{}}` + "\n", "", 1, false},
		{"several messages in an array", "[" + reply + "]\n", "", 1, false},
		{"a message over several lines", "{\n\"jsonrpc\": \"2.0\"\n}\n", "", 3, false},
		{"a line as long as allowed", strings.Repeat("x", 199) + "\n" + reply + "\n", reply + "\n", 1, false},
		{"a line too long", reply + "\n" + strings.Repeat("x", 200) + "\n" + reply + "\n", reply + "\n", 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			messages, stray, oversized := upstream.ReadLines(iotest.OneByteReader(strings.NewReader(tt.in)), 200, 3)
			var count int64
			if stray != nil {
				count = stray.Count
			}
			if string(messages) != tt.messages || count != tt.stray || oversized != tt.oversized {
				t.Errorf("messages %q, %d stray lines, oversized %t; want %q, %d, %t",
					messages, count, oversized, tt.messages, tt.stray, tt.oversized)
			}
		})
	}
}

func TestALineWithoutEndIsNotHeldInMemory(t *testing.T) {
	const limit = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, oversized := upstream.ReadLines(endless{}, limit, 1)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; !oversized || grown > 8*limit {
		t.Errorf("oversized %t, %d bytes allocated", oversized, grown)
	}
}

// endless never ends its line.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func FuzzStdout(f *testing.F) {
	f.Add([]byte("Server ready\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\r\n[]\n\n{"))
	f.Add(bytes.Repeat([]byte("x"), 300))
	f.Fuzz(func(t *testing.T, in []byte) {
		messages, stray, oversized := upstream.ReadLines(bytes.NewReader(in), 200, 3)
		lines := 0
		for line := range bytes.Lines(messages) {
			lines++
			if !json.Valid(line) || line[len(line)-1] != '\n' || len(line) > 201 {
				t.Errorf("handed on %q", line)
			}
		}
		if stray != nil {
			lines += int(stray.Count)
		}
		want := 0
		for line := range bytes.Lines(in) {
			if len(line) > 200 {
				break
			}
			if len(bytes.TrimSpace(line)) > 0 {
				want++
			}
		}
		if lines != want {
			t.Errorf("%d lines of %d, oversized %t", lines, want, oversized)
		}
	})
}
