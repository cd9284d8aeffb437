package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/mark3labs/mcp-go/server"
)

// sampleFleet is a set of MCP servers that this program brings along: some healthy,
// some broken in the ways servers break, for a first look at what the service does
// about them. The stdio ones are this program itself, started like any other server;
// the HTTP ones answer in this process.
type sampleFleet struct {
	configFile string
	http       *http.Server
}

// startSampleFleet writes the fleet's config into dir and starts its HTTP servers.
func startSampleFleet(dir string) (*sampleFleet, error) {
	// What the entries name is absolute, for they are the same connections wherever the
	// program is started.
	dir, err := filepath.Abs(filepath.Join(dir, "sample"))
	if err != nil {
		return nil, fmt.Errorf("start the sample fleet: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start the sample fleet: %w", err)
	}
	f := &sampleFleet{configFile: filepath.Join(dir, "mcp.json")}
	listener, err := f.listen()
	if err != nil {
		return nil, fmt.Errorf("start the sample fleet: %w", err)
	}
	routes := http.NewServeMux()
	routes.Handle("/calendar", server.NewStreamableHTTPServer(newCalendar(), server.WithStateful(true)))
	routes.HandleFunc("/tickets", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="sample", error="invalid_token"`)
		http.Error(w, "log in first", http.StatusUnauthorized)
	})
	f.http = &http.Server{Handler: routes}
	go func() { _ = f.http.Serve(listener) }() // ends with Close

	program, err := linkProgram(dir)
	var config []byte
	if err == nil {
		config, err = sampleConfig(dir, program, "http://"+listener.Addr().String())
	}
	if err == nil {
		err = os.WriteFile(f.configFile, config, 0o600)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("start the sample fleet: %w", err)
	}
	return f, nil
}

// Close ends the HTTP servers; the others end with whoever started them.
func (f *sampleFleet) Close() { _ = f.http.Close() }

// listen takes the address that an earlier start wrote into the config, so that the
// HTTP servers are the same connections as then, and any other if that is taken.
func (f *sampleFleet) listen() (net.Listener, error) {
	var written struct {
		Servers map[string]struct {
			URL string `json:"url"`
		} `json:"mcpServers"`
	}
	if body, err := os.ReadFile(f.configFile); err == nil && json.Unmarshal(body, &written) == nil {
		if u, err := url.Parse(written.Servers["calendar"].URL); err == nil && u.Host != "" {
			if l, err := net.Listen("tcp", u.Host); err == nil {
				return l, nil
			}
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// linkProgram has dir/server lead to this program and returns that path. The program
// itself lies somewhere else at each "go run", so an entry that named it would be a new
// connection at each start.
func linkProgram(dir string) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	link := filepath.Join(dir, "server")
	if err := os.Remove(link + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.Symlink(program, link+".new"); err != nil {
		return "", err
	}
	return link, os.Rename(link+".new", link)
}

// sampleConfig writes the fleet as an mcp.json such as people have.
func sampleConfig(dir, program, httpBase string) ([]byte, error) {
	sample := func(args ...string) []string { return append([]string{"sample-server"}, args...) }
	type entry map[string]any
	return json.MarshalIndent(map[string]any{"mcpServers": map[string]entry{
		"toolbox": {
			"description": "Healthy: a clock, a unit converter and a word counter",
			"command":     program, "args": sample("toolbox"),
		},
		"calendar": {
			"description": "Healthy, over streamable HTTP",
			"type":        "http", "url": httpBase + "/calendar",
		},
		"slow-start": {
			"description": "Healthy, but takes " + sampleSlowStart.String() + " to start",
			"command":     program, "args": sample("slow"),
		},
		"flaky": {
			"description": "Fails twice, then works",
			"command":     program, "args": sample("flaky", filepath.Join(dir, "flaky-starts")),
		},
		"broken-import": {
			"description": "Dies at start since a Python module is missing; skipped after two failures instead of three, to show it sooner",
			"command":     program, "args": sample("import-error"),
			"mcpledger": entry{"skip": entry{"after": 2}},
		},
		"not-installed": {
			"description": "Its program does not exist; install one of that name and it is tried again",
			"command":     "mcp-server-that-is-not-installed",
		},
		"missing-key": {
			"description": "Wants SAMPLE_API_KEY in the environment of the service",
			"command":     program, "args": sample("toolbox"),
			"env": map[string]string{"API_KEY": "${SAMPLE_API_KEY}"},
		},
		"needs-login": {
			"description": "Answers 401 to everybody",
			"type":        "http", "url": httpBase + "/tickets",
		},
		"silent": {
			"description": "Starts and never answers; given up on after 3 s instead of a minute, to show it sooner",
			"command":     program, "args": sample("silent"),
			"mcpledger": entry{"timeouts": entry{"start": "3s"}},
		},
	}}, "", "  ")
}
