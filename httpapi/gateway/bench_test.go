package gateway_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/events/eventstest"
	"mcpledger/httpapi/gateway"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// instant is a Discovery whose servers answer at once.
type instant struct{}

func (instant) Call(context.Context, discovery.Call) (discovery.CallOutcome, error) {
	return discovery.CallOutcome{Outcome: projections.OutcomeSucceeded, Result: json.RawMessage(`{"content":[{"type":"text","text":"hello"}]}`)}, nil
}
func (instant) Ask(context.Context, discovery.Question) (discovery.Answer, error) {
	return discovery.Answer{}, nil
}
func (instant) Retry(context.Context, events.ServerName) (*discovery.CallFailure, error) {
	return nil, nil
}
func (instant) Forget(string)                                             {}
func (instant) OnNotice(func(events.ServerName, string, upstream.Notice)) {}

// newInstant returns the handler of a gateway in front of one.
func newInstant(b *testing.B) http.Handler {
	b.Helper()
	log := eventstest.NewLog(time.Now)
	engine := projections.NewEngine(log, rules.Default(), nil)
	if err := engine.CatchUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{
		Log: log, Engine: engine, Discovery: instant{}, Version: "test", Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		g.Run(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-over
	})
	return front(g)
}

// BenchmarkCall is what the gateway itself adds to a call, without the network and
// without what discovery does.
func BenchmarkCall(b *testing.B) {
	handler := newInstant(b)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"weather__get-forecast","arguments":{"city":"Bern","days":3},` + modernMeta + `}}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(call))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", "weather__get-forecast")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "hello") {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}
