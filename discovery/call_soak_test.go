package discovery_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// Two hundred callers over twenty servers, of which most misbehave now and then.
func TestManyCallersLeaveNothingBehindAndEveryCallIsAccountedFor(t *testing.T) {
	const callers, rounds = 200, 12
	before := leftovers(t)
	w := newWorld(t)
	var at atomic.Int64
	moods := []func(http.ResponseWriter, *http.Request, rpcRequest){
		says(good), says(good), severs(true), status(500, "oops"), status(404, ""), says("oops"), says(good),
		then(says(`{"jsonrpc":`), flush, hangs), says(expired), says(`{"jsonrpc":"2.0","id":%id,"result":{"isError":true}}`),
	}
	var names []events.ServerName
	for i := range 15 {
		server := newBadServer(t, mcptest.HTTP{Events: i%3 == 0}, "tools/call", func(w http.ResponseWriter, r *http.Request, req rpcRequest) {
			moods[int(at.Add(1))%len(moods)](w, r, req)
		})
		server.armed.Store(true)
		name := fmt.Sprintf("remote-%d", i)
		names = append(names, events.ServerName(name))
		w.entries[name] = map[string]any{"url": server.url}
	}
	for i := range 5 {
		name := fmt.Sprintf("program-%d", i)
		names = append(names, events.ServerName(name))
		w.program(name, mcptest.Fake{Tools: 1})
	}
	r := w.start()
	for _, name := range names {
		r.awaitState(name, projections.StateReady)
	}
	var dispatched atomic.Int64
	crowd := func() {
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for n := range rounds {
					name, tool := names[(caller+n)%len(names)], victim
					if caller%7 == 0 && strings.HasPrefix(string(name), "program") {
						tool = "exit"
					}
					out, err := r.Call(context.Background(), discovery.Call{
						Server: name, Tool: tool, Timeout: brief,
						Arguments: fmt.Appendf(nil, `{"n":%d}`, caller*rounds+n), Caller: fmt.Sprint(caller),
					})
					if err != nil {
						t.Errorf("call: %v", err)
					}
					if out.Dispatched {
						dispatched.Add(1)
					}
				}
			})
		}
		all.Wait()
	}
	crowd()
	half := heap()
	crowd()
	if grown := heap() - half; grown > 8<<20 {
		t.Errorf("the heap grew by %d MiB over as many calls again", grown>>20)
	}
	starts, outcomes := map[string]bool{}, map[string]int{}
	sent := int64(0)
	for _, e := range r.recorded("", events.TypeToolCallStarted, events.TypeToolCallSucceeded, events.TypeToolCallFailed, events.TypeToolCallAbandoned) {
		switch d := e.Data.(type) {
		case events.ToolCallStarted:
			if starts[e.CallID] {
				t.Errorf("call %s started twice", e.CallID)
			}
			starts[e.CallID] = true
			continue
		case events.ToolCallSucceeded:
			sent++
		case events.ToolCallFailed:
			if d.Dispatched {
				sent++
			}
		}
		outcomes[e.CallID]++
	}
	for id := range starts {
		if outcomes[id] != 1 {
			t.Errorf("call %s has %d outcomes", id, outcomes[id])
		}
	}
	if len(outcomes) != len(starts) || sent != dispatched.Load() || sent < callers {
		t.Errorf("%d starts, %d outcomes; callers saw %d dispatched, the log has %d", len(starts), len(outcomes), dispatched.Load(), sent)
	}
	r.stop()
	var left string
	eventually(t, "goroutines, descriptors and processes gone", func() bool {
		left = leftovers(t).beyond(before)
		return left == ""
	})
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// remains is what a service could leave behind in its process.
type remains struct {
	descriptors int
	children    []string
	goroutines  []string // of the packages under test
}

func leftovers(t testing.TB) remains {
	t.Helper()
	var r remains
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	for _, d := range open {
		// The fakes run in this process, too, with sockets of their own.
		if target, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil && !strings.HasPrefix(target, "socket:") {
			r.descriptors++
		}
	}
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		r.children = append(r.children, strings.Fields(string(b))...)
	}
	stacks := make([]byte, 4<<20)
	for stack := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
		ours := bytes.Contains(stack, []byte("mcpledger/discovery.")) || bytes.Contains(stack, []byte("mcpledger/discovery/upstream.")) ||
			bytes.Contains(stack, []byte("mcp-go/client"))
		if ours && !bytes.Contains(stack, []byte("locked to thread")) {
			r.goroutines = append(r.goroutines, string(stack))
		}
	}
	return r
}

// beyond says what is there beyond what was before; empty if nothing is.
func (r remains) beyond(before remains) string {
	var more []string
	if r.descriptors > before.descriptors {
		more = append(more, fmt.Sprintf("%d descriptors, %d before", r.descriptors, before.descriptors))
	}
	more = append(more, r.children...)
	return strings.Join(append(more, r.goroutines...), "\n")
}

// Servers that do all they can to stay, or to take the service's memory.
func TestHostileServersLeaveNothingBehindAndTakeNoMemory(t *testing.T) {
	before := leftovers(t)
	w := newWorld(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	w.program("flood", mcptest.Fake{Stderr: strings.Repeat("flood ", 1<<20), Tools: 1})
	w.program("huge-line", mcptest.Fake{Fault: mcptest.HugeLine, Bytes: 64 << 20, At: "tools/call", Tools: 1})
	w.program("deaf", mcptest.Fake{Stubborn: true, Tools: 1})
	w.program("parent", mcptest.Fake{Stubborn: true, Grandchild: file("grandchild"), Tools: 1})
	forking := mcptest.Fake{Tools: 1}.Command()
	w.entries["forking"] = map[string]any{
		"command": "/bin/sh", "env": forking.Env,
		"args": []string{"-c", `trap 'sleep 300 & echo $! > "$0"' EXIT; "$1"`, file("forked"), forking.Path},
	}
	vast := newBadServer(t, mcptest.HTTP{}, "tools/call", pours("application/json", `{"jsonrpc":"2.0","id":%id,"result":"`, 64<<20, `"}`))
	vast.armed.Store(true)
	w.entries["vast"] = map[string]any{"url": vast.url}
	r := w.start()
	peak := watchMemory(t)
	for name := range w.entries {
		r.awaitState(events.ServerName(name), projections.StateReady)
	}
	for _, name := range []events.ServerName{"huge-line", "vast"} {
		if out := r.call(name, victim, `{}`); out.Failure == nil || out.Failure.Code != discovery.CodeTooLarge {
			t.Errorf("%s: %s", name, told(out))
		}
	}
	var inFlight []<-chan discovery.CallOutcome
	for _, name := range []events.ServerName{"flood", "deaf", "parent", "forking"} {
		if out := r.call(name, "echo", `{}`); out.Failure != nil {
			t.Fatalf("%s: %s", name, told(out))
		}
		inFlight = append(inFlight, r.background(discovery.Call{Server: name, Tool: "wait"}))
	}
	eventually(t, "the calls are under way", func() bool {
		return len(r.recorded("", events.TypeToolCallStarted)) == 2+2*len(inFlight)
	})
	began := time.Now()
	r.stop()
	if took := time.Since(began); took > patience {
		t.Errorf("the stop took %s", took)
	}
	for _, call := range inFlight {
		if out := <-call; out.Failure == nil || out.Failure.Code != discovery.CodeCancelled {
			t.Errorf("in flight at the stop: %s", told(out))
		}
	}
	var left string
	eventually(t, "goroutines, descriptors and processes gone", func() bool {
		left = leftovers(t).beyond(before)
		return left == ""
	})
	for _, name := range []string{"grandchild", "forked"} {
		if pid, err := os.ReadFile(file(name)); err == nil && alive(strings.TrimSpace(string(pid))) {
			t.Errorf("%s %s lives on", name, pid)
		}
	}
	if mib := peak() >> 20; mib > 150 && !raced {
		t.Errorf("%d MiB resident at most, want 150", mib)
	} else {
		t.Logf("%d MiB resident at most", mib)
	}
}

// alive reports whether a process runs, and is not merely waiting to be reaped.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}
