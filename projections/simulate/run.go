package simulate

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// source names the simulated service in its events.
const source = "simulation"

// Run lets the fleet's time pass under a rule set and returns what came of it. Each
// event is given to record, in order, with its sequence; record may be nil.
func (f Fleet) Run(set *rules.Set, record func(events.Event)) Result {
	s := &simulation{
		fleet: f, set: set, state: projections.New(set), record: record, now: f.Start,
		chance: rand.New(rand.NewPCG(f.Seed, 1)), end: f.Start.Add(f.Span),
	}
	s.append(events.Event{Data: events.ServiceStarted{Version: "simulation", Instance: source}})
	for i := range f.Servers {
		srv := &server{Server: &f.Servers[i], result: ServerResult{Name: f.Servers[i].Name, Kind: f.Servers[i].Kind}}
		s.servers = append(s.servers, srv)
		s.configure(srv, events.ChangeAdded)
		for _, at := range srv.Rotated {
			s.at(at, func() { s.rotate(srv) })
		}
		for _, b := range srv.Broken {
			s.at(b.To, func() { s.plan(srv) })
		}
	}
	for i, at := range f.Restarts {
		s.at(at, func() { s.restart(i%10 == 9) })
	}
	s.planAll()
	for _, srv := range s.servers {
		s.use(srv)
	}
	for s.queue.Len() > 0 {
		next := heap.Pop(&s.queue).(step)
		if !next.at.Before(s.end) {
			break
		}
		s.now = next.at
		next.do()
	}
	s.now = s.end
	return s.result()
}

// simulation is one passage of time.
type simulation struct {
	fleet  Fleet
	set    *rules.Set
	state  *projections.State
	record func(events.Event)
	chance *rand.Rand
	now    time.Time
	end    time.Time
	queue  queue
	order  int // of steps at the same time
	ids    int
	last   events.Sequence
	size   int64 // bytes of the payloads measured so far
	sized  int64 // how many those are

	servers []*server
}

// server is a server under way.
type server struct {
	*Server
	key    events.ConfigKey
	flight *flight
	call   *call
	turn   int // of the planned attempt; an older one is void
	starts int
	result ServerResult
	// down is the breakage that was last met and from which no recovery was seen; nil
	// for none. promise is when, at its end, the next attempt was due; zero while a run
	// was under way then.
	down    *Breakage
	promise time.Time
}

// flight is an attempt that was started.
type flight struct {
	runID, attemptID string
	attempt          int
	probe            bool
	began            time.Time
}

// at has do called at a time.
func (s *simulation) at(t time.Time, do func()) {
	s.order++
	heap.Push(&s.queue, step{at: t, order: s.order, do: do})
}

func (s *simulation) newID(kind string) string {
	s.ids++
	return fmt.Sprintf("%s-%d", kind, s.ids)
}

// append records an event and folds it.
func (s *simulation) append(e events.Event) {
	s.last++
	e.Sequence, e.ID, e.Source = s.last, fmt.Sprintf("event-%d", s.last), source
	e.Type, e.DataVersion, e.Time, e.RecordedAt = e.Data.EventType(), 1, s.now, s.now
	s.state.Apply(e)
	s.measure(e)
	if s.record != nil {
		s.record(e)
	}
}

// about records something about a server, as part of the attempt under way if there
// is one.
func (s *simulation) about(srv *server, d events.Data) {
	e := events.Event{Subject: srv.Name, ConfigKey: srv.key, Data: d}
	if f := srv.flight; f != nil {
		e.RunID, e.AttemptID = f.runID, f.attemptID
	}
	s.append(e)
}

func (s *simulation) configure(srv *server, change events.Change) {
	srv.key = events.ConfigKey(fmt.Sprintf("k1_%s.v%d", srv.Name, passed(srv.Rotated, s.now)))
	s.about(srv, events.ServerConfigured{Change: change, Transport: srv.Transport})
}

// rotate has the values of a server's variables changed.
func (s *simulation) rotate(srv *server) {
	s.cancel(srv, "config_changed")
	s.configure(srv, events.ChangeValues)
	s.plan(srv)
}

// restart ends the service, in order or in the midst of what it does, and starts it
// again.
func (s *simulation) restart(killed bool) {
	if !killed {
		for _, srv := range s.servers {
			s.cancel(srv, "shutdown")
		}
		s.append(events.Event{Data: events.ServiceStopped{Reason: "SIGTERM"}})
	}
	s.append(events.Event{Data: events.ServiceStarted{Version: "simulation", Instance: source}})
	for _, srv := range s.servers {
		s.abandon(srv)
		if srv.flight != nil {
			s.about(srv, events.DiscoveryAbandoned{})
			srv.flight = nil
		}
	}
	s.planAll()
}

// cancel ends the attempt under way, if there is one.
func (s *simulation) cancel(srv *server, reason string) {
	if srv.flight == nil {
		return
	}
	s.about(srv, events.DiscoveryCancelled{Reason: reason, ElapsedMS: s.now.Sub(srv.flight.began).Milliseconds()})
	s.complete(srv, events.DiscoveryRunCompleted{Cancelled: 1})
}

func (s *simulation) complete(srv *server, d events.DiscoveryRunCompleted) {
	id := srv.flight.runID
	srv.flight = nil
	s.append(events.Event{RunID: id, Data: d})
}

func (s *simulation) planAll() {
	for _, srv := range s.servers {
		s.plan(srv)
	}
}

// plan asks the fold when a server is due, and notes the skip that keeps it from
// being so.
func (s *simulation) plan(srv *server) {
	if srv.flight != nil {
		return
	}
	if skipped, ok := s.state.SkipNote(srv.Name, s.now); ok {
		srv.result.Skips++
		s.about(srv, skipped)
	}
	due, ok := s.state.Due(srv.Name, s.now)
	srv.turn++
	if srv.down != nil && !srv.down.To.After(s.now) && srv.promise.IsZero() {
		srv.promise = due.At
	}
	if !ok || !due.At.Before(s.end) {
		return
	}
	if !due.At.After(s.now) {
		s.begin(srv, due.Trigger)
		return
	}
	turn := srv.turn
	s.at(due.At, func() {
		if turn == srv.turn {
			s.plan(srv)
		}
	})
}
