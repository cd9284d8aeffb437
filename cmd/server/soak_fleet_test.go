//go:build soak

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"mcpledger/discovery/mcptest"
)

// soakFleet is a config of servers of every kind, and what makes them change.
type soakFleet struct {
	t          *testing.T
	configFile string
	callable   []soakTool // of whatever mood
	flapping   []*moody
	gated      []*moody
	script     string // of the server whose program is replaced

	mu      sync.Mutex
	entries map[string]any
	edits   int
	works   bool // the script is that of a server
}

// soakTool is a tool with arguments that it takes.
type soakTool struct {
	server, tool string
	arguments    map[string]any
}

// moody is a server over HTTP that can be made to fail.
type moody struct {
	url    string
	status atomic.Int64 // what it answers instead; 0: it works
}

func newMoody(t *testing.T, spec mcptest.HTTP) *moody {
	backend, err := url.Parse(mcptest.NewHTTP(t, spec).URL)
	if err != nil {
		t.Fatal(err)
	}
	m := &moody{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: backend.Scheme, Host: backend.Host})
	proxy.FlushInterval = -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := int(m.status.Load()); status != 0 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="soak"`)
			http.Error(w, "not now", status)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	m.url = front.URL + backend.Path
	return m
}

// swap makes the server fail with a status, or work again if it does.
func (m *moody) swap(status int64) {
	if !m.status.CompareAndSwap(0, status) {
		m.status.Store(0)
	}
}

func newSoakFleet(t *testing.T, configFile string) *soakFleet {
	f := &soakFleet{t: t, configFile: configFile, entries: map[string]any{}, script: filepath.Join(t.TempDir(), "server.sh")}
	type entry = map[string]any
	echo := func(name string) { f.callable = append(f.callable, soakTool{name, "echo", entry{"text": "hello"}}) }
	words := func(name string) {
		f.callable = append(f.callable, soakTool{name, "count_words", entry{"text": "one two three"}})
	}
	remote := func(name string, spec mcptest.HTTP, settings entry) {
		e := entry{"url": mcptest.NewHTTP(t, spec).URL, "mcpledger": settings}
		if spec.SSE {
			e["type"] = "sse"
		}
		f.entries[name] = e
		echo(name)
	}
	shell := func(name, script string) {
		f.entries[name] = entry{"command": "sh", "args": []string{"-c", script}, "mcpledger": entry{"timeouts": entry{"start": "3s"}}}
	}
	for i := range 6 {
		remote(fmt.Sprintf("http-%d", i), mcptest.HTTP{Events: i%2 == 0}, entry{})
		name := fmt.Sprintf("stdio-%d", i)
		f.entries[name] = entry{"command": "server", "args": []string{"sample-server", "toolbox"}}
		words(name)
	}
	for i := range 3 {
		remote(fmt.Sprintf("sse-%d", i), mcptest.HTTP{SSE: true}, entry{})
		shell(fmt.Sprintf("dead-%d", i), fmt.Sprintf(`echo "ModuleNotFoundError: No module named 'acme%d'" >&2; exit 1`, i))
	}
	remote("modern", mcptest.HTTP{Era: mcptest.Modern}, entry{"era": "modern"})
	remote("per-client", mcptest.HTTP{}, entry{"session": "per_client"})
	remote("hanging-call", mcptest.HTTP{Mishap: mcptest.HangHeaders, At: "tools/call"}, entry{"timeouts": entry{"call": "1s"}})
	remote("cut-off", mcptest.HTTP{Mishap: mcptest.CutBody, At: "tools/call"}, entry{})
	f.entries["hanging-http"] = entry{
		"url":       mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.HangHeaders}).URL,
		"mcpledger": entry{"timeouts": entry{"start": "3s"}},
	}
	shell("hanging-program", "cat > /dev/null")
	shell("short-lived", "timeout 5 server sample-server toolbox")
	words("short-lived")
	f.entries["refused"] = entry{"url": "http://" + mcptest.FreeAddress(t) + "/mcp"}
	f.entries["not-installed"] = entry{"command": "mcp-server-that-is-not-installed"}
	for i := range 2 {
		flapping, gated := newMoody(t, mcptest.HTTP{}), newMoody(t, mcptest.HTTP{Events: true})
		f.flapping, f.gated = append(f.flapping, flapping), append(f.gated, gated)
		for name, m := range map[string]*moody{fmt.Sprintf("flapping-%d", i): flapping, fmt.Sprintf("gated-%d", i): gated} {
			f.entries[name] = entry{"url": m.url}
			echo(name)
		}
	}
	f.entries["replaced"] = entry{"command": "sh", "args": []string{f.script}}
	words("replaced")
	f.replaceProgram()
	f.editConfig()
	return f
}

// replaceProgram makes the program of a server one that works, or one that does not.
func (f *soakFleet) replaceProgram() {
	f.mu.Lock()
	defer f.mu.Unlock()
	script := "echo \"ModuleNotFoundError: No module named 'acme'\" >&2\nexit 1\n"
	if f.works = !f.works; f.works {
		script = "exec server sample-server toolbox\n"
	}
	f.replace(f.script, []byte(script))
}

// editConfig changes the config file in one of several ways, the last of which makes
// it one that cannot be read.
func (f *soakFleet) editConfig() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.edits++
	toolbox := func(args ...string) map[string]any {
		return map[string]any{"command": "server", "args": append([]string{"sample-server", "toolbox"}, args...)}
	}
	f.entries["edited"] = toolbox()
	delete(f.entries, "comes-and-goes")
	switch f.edits % 4 {
	case 1:
		f.entries["comes-and-goes"] = toolbox()
	case 2:
		f.entries["edited"] = map[string]any{"command": "sh", "args": []string{"-c", "exit 3"}}
	case 3:
		f.replace(f.configFile, []byte(`{"mcpServers": {`))
		return
	}
	body, err := json.Marshal(map[string]any{"mcpServers": f.entries})
	if err != nil {
		f.t.Error(err)
	}
	f.replace(f.configFile, body)
}

// replace replaces a file as a whole, as editors do.
func (f *soakFleet) replace(path string, body []byte) {
	err := os.WriteFile(path+".new", body, 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		f.t.Error(err)
	}
}
