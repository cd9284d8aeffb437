package upstream

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/events"
)

// Capability is something a server may say it offers, besides tools.
type Capability string

// The capabilities that are looked at.
const (
	CapabilityResources Capability = "resources"
	CapabilityPrompts   Capability = "prompts"
	CapabilityLogging   Capability = "logging"
)

// Offers reports whether capabilities, as a server sent them, name c.
func Offers(capabilities json.RawMessage, c Capability) bool {
	var named map[Capability]json.RawMessage
	if json.Unmarshal(capabilities, &named) != nil {
		return false
	}
	_, offered := named[c]
	return offered
}

// OffersUpdates reports whether capabilities, as a server sent them, say that it tells
// of the updates of single resources.
func OffersUpdates(capabilities json.RawMessage) bool {
	var named struct {
		Resources struct {
			Subscribe bool `json:"subscribe"`
		} `json:"resources"`
	}
	return json.Unmarshal(capabilities, &named) == nil && named.Resources.Subscribe
}

// Ask sends a request that calls no tool, such as resources/read, and returns the
// result as the server sent it. params is an object, passed on as it is; nil leaves
// it out. Nothing is sent twice. The error is a *Failure; RPC in it holds a JSON-RPC
// error.
//
// resources/subscribe and resources/unsubscribe are answered here where they change
// nothing. A server of 2026-07-28 knows neither: a stream of its own stands for each
// subscription there.
func (s *Session) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	began := s.target.Now()
	fields := map[string]json.RawMessage{}
	if len(params) > 0 {
		if err := json.Unmarshal(params, &fields); err != nil {
			f := &Failure{cause: err, Evidence: events.Evidence{Error: "params is no object"}}
			return nil, s.complete(f, "", began, s.target.Now())
		}
	}
	result, f := s.ask(ctx, method, fields)
	if f != nil {
		return nil, s.complete(f, "", began, s.target.Now())
	}
	return result, nil
}

func (s *Session) ask(ctx context.Context, method string, params map[string]json.RawMessage) (json.RawMessage, *Failure) {
	var uri string
	_ = json.Unmarshal(params["uri"], &uri) // empty: it is the server's to refuse
	switch m := mcp.MCPMethod(method); {
	case m == mcp.MethodResourcesSubscribe && uri != "":
		return s.watchResource(ctx, uri, params)
	case m == mcp.MethodResourcesUnsubscribe && uri != "":
		return s.unwatchResource(ctx, uri, params)
	}
	return s.request(ctx, "", method, params, nil)
}

// Notice is a notification from a server that belongs to no request of ours. Params
// is an object.
type Notice struct {
	Method string
	Params json.RawMessage
}

// passedOn are the notifications that OnNotice gets.
var passedOn = []string{
	"notifications/message",
	mcp.MethodNotificationResourcesListChanged,
	mcp.MethodNotificationPromptsListChanged,
	mcp.MethodNotificationResourceUpdated,
}

// passOn hands a notification to OnNotice, if it is one of those.
func (s *Session) passOn(n mcp.JSONRPCNotification) {
	if s.target.OnNotice == nil || !slices.Contains(passedOn, n.Method) {
		return
	}
	s.target.OnNotice(Notice{Method: n.Method, Params: encoded(n.Params)})
}
