package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
)

// Public gateways that the endpoint is measured against, each in front of the same
// server. They are installed for the benchmark alone.
const (
	publicMCPProxy     = "mcp-proxy@6.7.19"
	publicSupergateway = "supergateway@4.0.0"
)

// contender is a way to reach the server's tools that is measured.
type contender struct {
	name string
	pid  int                          // of the process that is in the way
	dial func() (*benchClient, error) // one client, ready to call
	open []*benchClient
	took []time.Duration // of each call
	busy time.Duration   // of all rounds
	done int             // calls
}

// benchClient is one client with a connection of its own.
type benchClient struct {
	http    *http.Client
	url     string
	session string
	call    string // what is sent
	want    string // in the answer
}

// newBenchClient returns a client that sends call and wants its answer to hold want.
func newBenchClient(url, call, want string) *benchClient {
	return &benchClient{http: &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}, url: url, call: call, want: want}
}

// dialMCP begins a session.
func dialMCP(url, call, want string) (*benchClient, error) {
	c := newBenchClient(url, call, want)
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		if _, err := c.send(message); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// once makes the call.
func (c *benchClient) once() error {
	body, err := c.send(c.call)
	if err == nil && !bytes.Contains(body, []byte(c.want)) {
		err = fmt.Errorf("answered %.200s", body)
	}
	return err
}

func (c *benchClient) send(message string) ([]byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, c.url, strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %.200s", res.Status, body)
	}
	if begun := res.Header.Get("Mcp-Session-Id"); begun != "" {
		c.session = begun
	}
	return body, err
}

// round has the contender's clients make so many calls in all.
func (c *contender) round(calls int) error {
	var next atomic.Int64
	failed := make([]error, len(c.open))
	took := make([][]time.Duration, len(c.open))
	var calling sync.WaitGroup
	began := time.Now()
	for i, client := range c.open {
		calling.Go(func() {
			for next.Add(1) <= int64(calls) && failed[i] == nil {
				at := time.Now()
				failed[i] = client.once()
				took[i] = append(took[i], time.Since(at))
			}
		})
	}
	calling.Wait()
	c.busy += time.Since(began)
	c.took = append(c.took, slices.Concat(took...)...)
	c.done += calls
	return errors.Join(failed...)
}

func (c *contender) rate() float64 { return float64(c.done) / c.busy.Seconds() }

// report shows how the contender did.
func (c *contender) report(b *testing.B) {
	slices.Sort(c.took)
	b.ReportMetric(c.rate(), c.name+"/s")
	b.ReportMetric(float64(c.took[len(c.took)/2].Microseconds()), c.name+"-p50-µs")
	b.ReportMetric(float64(c.took[len(c.took)*99/100].Microseconds()), c.name+"-p99-µs")
	b.ReportMetric(residentMiB(b, c.pid, "VmRSS"), c.name+"-MiB")
}

// BenchmarkGateway is a call of a tool, and a list of 1,000 tools, through the MCP
// endpoint, through the REST path of the same service, and through public gateways, all
// in front of one stdio server. The rounds of all contenders take turns, so that what
// else the machine does falls on each alike. The bar is 0.8 of the REST path's calls
// for the endpoint (x-rest), and more calls with 16 clients than each public gateway.
func BenchmarkGateway(b *testing.B) {
	const (
		call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`
		list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	)
	fake := mcptest.Fake{Tools: 1000 - mcptest.StandingTools}.Command()
	service, pid := startBenchService(b, fake)
	public := startPublicGateways(b, fake)
	mcp := func(call, want string) *contender {
		return &contender{name: "mcpledger", pid: pid, dial: func() (*benchClient, error) { return dialMCP(service+"/mcp/fake", call, want) }}
	}
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("call/clients=%d", clients), func(b *testing.B) {
			endpoint := mcp(call, `\"hello\"`)
			rest := &contender{name: "rest", pid: pid, dial: func() (*benchClient, error) {
				return newBenchClient(service+"/api/servers/fake/tools/echo/call", `{"arguments":{"text":"hello"}}`, `\"hello\"`), nil
			}}
			race(b, 500, clients, append([]*contender{endpoint, rest}, public(call, `\"hello\"`)...))
			b.ReportMetric(endpoint.rate()/rest.rate(), "x-rest")
		})
	}
	b.Run("list-1000", func(b *testing.B) {
		const last = `"tool-0988"`
		race(b, 50, 1, append([]*contender{mcp(list, last)}, public(list, last)...))
	})
}

// race measures contenders in turns of so many calls.
func race(b *testing.B, calls, clients int, all []*contender) {
	b.Helper()
	for _, c := range all {
		for range clients {
			client, err := c.dial()
			if err != nil {
				b.Fatalf("%s: %v", c.name, err)
			}
			c.open = append(c.open, client)
		}
		if err := c.round(4 * clients); err != nil { // what is done first is slower
			b.Fatalf("%s: %v", c.name, err)
		}
		c.took, c.busy, c.done = nil, 0, 0
	}
	for b.Loop() {
		for _, c := range all {
			if err := c.round(calls); err != nil {
				b.Fatalf("%s: %v", c.name, err)
			}
		}
	}
	for _, c := range all {
		c.report(b)
		for _, client := range c.open {
			client.http.CloseIdleConnections()
		}
	}
}

// startBenchService runs the program in front of a server and returns its address.
func startBenchService(b *testing.B, fake mcptest.Command) (address string, pid int) {
	b.Helper()
	dir := b.TempDir()
	file, data := filepath.Join(dir, "mcp.json"), filepath.Join(dir, "data")
	writeJSON(b, file, map[string]any{"mcpServers": map[string]any{
		"fake": map[string]any{"command": fake.Path, "args": fake.Args, "env": fake.Env},
	}})
	ready := func(rows []toolsRow) bool { return len(rows) == 1 && rows[0].State == "ready" }
	b.Cleanup(serving(b, buildProgram(b), file, data, ready).stop)
	service, running, err := readServiceFile(data)
	if err != nil || !running {
		b.Fatalf("service.json: %v %v", running, err)
	}
	return service.Address, service.PID
}

// startPublicGateways runs the public gateways and returns them as contenders; none,
// with the reason on the log, where they cannot be had.
func startPublicGateways(b *testing.B, fake mcptest.Command) func(call, want string) []*contender {
	b.Helper()
	dir := b.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", dir, publicMCPProxy, publicSupergateway)
	if out, err := install.CombinedOutput(); err != nil {
		b.Logf("public gateways are not measured: npm install: %v\n%s", err, out)
		return func(string, string) []*contender { return nil }
	}
	type running struct {
		name, url string
		pid       int
	}
	var all []running
	for name, args := range map[string]func(port string) []string{
		"mcp-proxy": func(port string) []string {
			return []string{"--host", "127.0.0.1", "--port", port, "--server", "stream", "--", fake.Path}
		},
		"supergateway": func(port string) []string {
			return []string{"--stdio", fake.Path, "--outputTransport", "streamableHttp", "--stateful", "--port", port, "--logLevel", "none"}
		},
	} {
		address := mcptest.FreeAddress(b)
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(dir, "node_modules", ".bin", name), args(port)...)
		cmd.Env = append(os.Environ(), fake.Environ()...)
		if err := cmd.Start(); err != nil {
			b.Logf("%s is not measured: %v", name, err)
			continue
		}
		b.Cleanup(func() {
			_ = cmd.Process.Signal(os.Interrupt)
			kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait()
			kill.Stop()
		})
		all = append(all, running{name, "http://" + address + "/mcp", cmd.Process.Pid})
		awaitMCP(b, name, all[len(all)-1].url)
	}
	slices.SortFunc(all, func(x, y running) int { return strings.Compare(x.name, y.name) })
	return func(call, want string) (contenders []*contender) {
		for _, one := range all {
			contenders = append(contenders, &contender{name: one.name, pid: one.pid, dial: func() (*benchClient, error) { return dialMCP(one.url, call, want) }})
		}
		return contenders
	}
}

// awaitMCP waits until a gateway begins sessions.
func awaitMCP(b *testing.B, name, url string) {
	b.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		_, err := dialMCP(url, "", "")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s: %v", name, err)
		}
	}
}
