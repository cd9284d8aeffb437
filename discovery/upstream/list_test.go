package upstream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
)

func TestAListThatIsNoneIsRefused(t *testing.T) {
	tests := []struct {
		name   string
		result func(page int) string
		want   events.ErrorKind
	}{
		{"it repeats a cursor", func(int) string { return `{"tools":[],"nextCursor":"again"}` }, events.KindMalformed},
		{"it has no last page", func(page int) string { return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, page) }, events.KindOversized},
		{"its pages add up to too much", func(page int) string {
			return fmt.Sprintf(`{"tools":[{"name":"a","description":%q}],"nextCursor":"%d"}`, strings.Repeat("x", 4<<20), page)
		}, events.KindOversized},
		{"it holds a tool without a name", func(int) string { return `{"tools":[{"name":"a"},{}]}` }, events.KindMalformed},
		{"it is no list", func(int) string { return `{"tools":{}}` }, events.KindMalformed},
		{"there is none", func(int) string { return `{}` }, events.KindMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkLeaks(t)
			fake := mcptest.NewHTTP(t, mcptest.HTTP{Sessionless: true})
			page := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var req struct {
					ID     json.RawMessage `json:"id"`
					Method string          `json:"method"`
				}
				_ = json.Unmarshal(body, &req)
				if req.Method != "tools/list" {
					r.Body = io.NopCloser(bytes.NewReader(body))
					fake.ServeHTTP(w, r)
					return
				}
				page++
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, tt.result(page))
			}))
			t.Cleanup(server.Close)
			target := remote(fake)
			target.URL = server.URL
			_, err := open(t, target).ListTools(t.Context())
			if ev := evidenceOf(t, err); ev.ErrorKind != tt.want || ev.Phase != events.PhaseListTools {
				t.Errorf("evidence %+v, want %s", ev, tt.want)
			}
			if page > 1000 {
				t.Errorf("%d pages read", page)
			}
		})
	}
}

func TestAServerWithoutToolsMayRefuseToListThem(t *testing.T) {
	checkLeaks(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		answer := `"error":{"code":-32601,"message":"Method not found"}`
		if req.Method == "initialize" {
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"prompts":{}},"serverInfo":{"name":"x","version":"1"}}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, req.ID, answer)
	}))
	t.Cleanup(server.Close)
	target := remote(mcptest.NewHTTP(t, mcptest.HTTP{}))
	target.URL = server.URL
	catalogue, err := open(t, target).ListTools(t.Context())
	if err != nil || catalogue.Len() != 0 || string(catalogue.Tools) != "[]" || catalogue.Hash == "" {
		t.Errorf("catalogue %+v, %v", catalogue, err)
	}
}
