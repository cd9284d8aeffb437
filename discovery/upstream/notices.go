package upstream

import (
	"encoding/json"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// Progress is what a server reports of a call under way.
type Progress struct {
	Progress float64
	Total    float64 // 0: unknown
	Message  string
}

// notified sorts the server's notifications. It runs where messages are read, so it
// only leaves word.
func (s *Session) notified(n mcp.JSONRPCNotification) {
	switch mcp.MCPMethod(n.Method) {
	case mcp.MethodNotificationToolsListChanged:
		select {
		case s.changed <- struct{}{}:
		default: // one is waiting already
		}
	case mcp.MethodNotificationProgress:
		fields := n.Params.AdditionalFields
		// A number out of JSON; another kind of token is none of ours.
		token, _ := fields["progressToken"].(float64)
		var p Progress
		p.Progress, _ = fields["progress"].(float64)
		p.Total, _ = fields["total"].(float64)
		p.Message, _ = fields["message"].(string)
		s.progress.deliver(int64(token), p)
	case mcp.MethodNotificationSubscriptionsAcknowledged:
		s.watches.acknowledged(n.Params.AdditionalFields)
	default:
		s.passOn(n)
	}
}

// announce calls OnToolsChanged for the notices that came, until the session ends.
func (s *Session) announce() {
	for {
		select {
		case <-s.changed:
			s.target.OnToolsChanged()
		case <-s.alive.Done():
			return
		}
	}
}

// subscribe asks a server of 2026-07-28 for its notices, if it says that it gives
// any. The request lasts as long as the session.
func (s *Session) subscribe() {
	type list struct {
		ListChanged bool `json:"listChanged"`
	}
	var capabilities struct{ Tools, Resources, Prompts list }
	if json.Unmarshal(s.info.Capabilities, &capabilities) != nil {
		return
	}
	wanted := mcp.SubscriptionFilter{
		ToolsListChanged:     capabilities.Tools.ListChanged,
		ResourcesListChanged: capabilities.Resources.ListChanged,
		PromptsListChanged:   capabilities.Prompts.ListChanged,
	}
	if wanted.IsEmpty() {
		return
	}
	// A server that ends it is not asked again: notices are a help, not a need.
	_, _ = s.request(s.alive, "", string(mcp.MethodSubscriptionsListen), map[string]json.RawMessage{
		"notifications": encoded(wanted),
	}, nil)
}

// progressSinks finds the call a progress token belongs to.
type progressSinks struct {
	mu    sync.Mutex
	last  int64
	sinks map[int64]func(Progress)
}

// add returns a new token whose progress goes to sink, which must not block, until
// remove is called.
func (p *progressSinks) add(sink func(Progress)) (token int64, remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sinks == nil {
		p.sinks = map[int64]func(Progress){}
	}
	p.last++
	token = p.last
	p.sinks[token] = sink
	return token, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.sinks, token)
	}
}

// deliver holds the lock meanwhile, so that nothing reaches a sink once its remove
// has returned.
func (p *progressSinks) deliver(token int64, progress Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sink := p.sinks[token]; sink != nil {
		sink(progress)
	}
}
