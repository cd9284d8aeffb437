package simulate

import (
	"time"

	"mcpledger/events"
)

// tool is the tool that is called of every server, with caller as its one caller.
const (
	tool   = "forecast"
	caller = "agent"
)

// call is a tool call under way.
type call struct {
	id    string
	began time.Time
}

// use has a server called at its intervals from now on.
func (s *simulation) use(srv *server) {
	if srv.CalledEvery == 0 {
		return
	}
	s.at(s.now.Add(srv.CalledEvery), func() {
		s.call(srv)
		s.use(srv)
	})
}

// call makes a call, as an agent does that sees the server's tools: not before there
// are any, and not of a server that does not run.
func (s *simulation) call(srv *server) {
	known, _ := s.state.Catalogue(srv.Name)
	if known == nil || srv.call != nil || breakageAt(srv.Broken, s.now) != nil {
		return
	}
	if gate := s.state.Opportunity(source, srv.Name, srv.key, s.now).Gate; gate != nil {
		s.aboutCall(srv, s.newID("call"), events.ToolCallRefused{Tool: tool, Reason: "blocked", Caller: caller, Since: gate.Since})
		return
	}
	c := &call{id: s.newID("call"), began: s.now}
	srv.call = c
	s.aboutCall(srv, c.id, events.ToolCallStarted{Tool: tool, ArgumentsHash: c.id, ArgumentsSize: 24, Caller: caller})
	took := 180 * time.Millisecond
	broken := breakageAt(srv.CallsBroken, s.now)
	if broken != nil {
		took = broken.Failure.Took
	}
	s.at(s.now.Add(took), func() {
		if srv.call != c {
			return // a restart cut it short
		}
		srv.call = nil
		if broken == nil {
			s.aboutCall(srv, c.id, events.ToolCallSucceeded{Tool: tool, ElapsedMS: took.Milliseconds(), ResultSize: 512})
			return
		}
		s.aboutCall(srv, c.id, events.ToolCallFailed{
			Tool: tool, ElapsedMS: took.Milliseconds(), Dispatched: true, Evidence: broken.Failure.Evidence,
		})
		s.plan(srv)
	})
}

// abandon closes the call that a restart cut short, if there is one.
func (s *simulation) abandon(srv *server) {
	if srv.call != nil {
		s.aboutCall(srv, srv.call.id, events.ToolCallAbandoned{Tool: tool})
		srv.call = nil
	}
}

func (s *simulation) aboutCall(srv *server, id string, d events.Data) {
	s.append(events.Event{Subject: srv.Name, ConfigKey: srv.key, CallID: id, Data: d})
}
