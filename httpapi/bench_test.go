package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi"
)

// fleetOf returns a world with n servers of 20 tools each.
func fleetOf(b *testing.B, n int, change ...func(*httpapi.Config)) *world {
	w := newWorld(b, change...)
	for i := range n {
		name := events.ServerName(fmt.Sprintf("server-%04d", i))
		var tools []map[string]any
		var names []string
		for j := range 20 {
			tool := fmt.Sprintf("tool_%02d", j)
			names = append(names, tool)
			tools = append(tools, map[string]any{
				"name": tool, "description": fmt.Sprintf("Reads part %d of %s and returns it with its metadata", j, name),
				"inputSchema": map[string]any{
					"type": "object", "required": []string{"path"},
					"properties": map[string]any{
						"path":  map[string]any{"type": "string", "description": "Where to read"},
						"limit": map[string]any{"type": "integer", "minimum": 1, "maximum": 1000},
					},
				},
			})
		}
		raw, err := json.Marshal(tools)
		w.must(err)
		hash := events.ContentHash(raw)
		w.append(name,
			events.ServerConfigured{Change: events.ChangeAdded, Transport: events.TransportStdio, Config: json.RawMessage(`{"command":"x"}`)},
			events.DiscoverySucceeded{ProtocolVersion: "2025-11-25", CatalogueHash: hash, ToolCount: len(names)},
			events.CatalogueChanged{Hash: hash, Added: names, Tools: raw})
	}
	return w
}

// rate returns how many requests a second one client gets answered.
func rate(b *testing.B, url, tag string, status int) float64 {
	began := time.Now()
	for b.Loop() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("If-None-Match", tag)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != status {
			b.Fatal(resp.Status, err)
		}
	}
	return float64(b.N) / time.Since(began).Seconds()
}

// BenchmarkTools shows GET /api/tools for 1,000 servers against a handler that does
// nothing but write the same bytes, with a clock that runs.
func BenchmarkTools(b *testing.B) {
	w := fleetOf(b, 1000, func(c *httpapi.Config) { c.Now = time.Now })
	url, _ := w.serve()
	answer := w.get("/api/tools").is(http.StatusOK)
	bare := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(answer.body)
	}))
	defer bare.Close()
	var floor float64
	b.Run("bare", func(b *testing.B) { floor = rate(b, bare.URL, "", http.StatusOK) })
	b.Run("whole", func(b *testing.B) {
		got := rate(b, url+"/api/tools", "", http.StatusOK)
		b.ReportMetric(got/floor, "of-bare")
		b.SetBytes(int64(len(answer.body)))
	})
	b.Run("unchanged", func(b *testing.B) {
		b.ReportMetric(rate(b, url+"/api/tools", answer.header.Get("ETag"), http.StatusNotModified), "answers/s")
	})
	b.Run("after-an-event", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			w.append("server-0000", events.SkipCleared{})
			b.StartTimer()
			w.get("/api/tools", header("If-None-Match", answer.header.Get("ETag")))
		}
	})
}
