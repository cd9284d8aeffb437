package simulate

import (
	"fmt"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
)

// begin starts a run of one server.
func (s *simulation) begin(srv *server, trigger events.Trigger) {
	srv.flight = &flight{runID: s.newID("run"), probe: s.state.Opportunity(source, srv.Name, srv.key, s.now).Probe}
	s.append(events.Event{RunID: srv.flight.runID, Data: events.DiscoveryRunStarted{Trigger: trigger, Servers: []events.ServerName{srv.Name}}})
	s.attempt(srv, trigger)
}

// attempt starts an attempt of the run under way.
func (s *simulation) attempt(srv *server, trigger events.Trigger) {
	f := srv.flight
	f.attempt++
	f.attemptID, f.began = s.newID("attempt"), s.now
	s.about(srv, events.DiscoveryStarted{Attempt: f.attempt, Trigger: trigger})
	srv.result.Attempts++
	failure, broken := s.meet(srv)
	took := failure.Took
	if !broken {
		took = 300*time.Millisecond + time.Duration(s.chance.Int64N(int64(2*time.Second)))
	}
	s.at(s.now.Add(took), func() {
		switch {
		case srv.flight != f || f.began != s.now.Add(-took):
			// A restart or a change of the config ended it before.
		case broken:
			s.failed(srv, trigger, failure)
		default:
			s.succeeded(srv, took)
		}
	})
}

// meet returns how the attempt that starts now fails, false if it does not.
func (s *simulation) meet(srv *server) (Failure, bool) {
	srv.starts++
	if b := breakageAt(srv.Broken, s.now); b != nil {
		if srv.down != nil && srv.down != b {
			srv.result.Missed++
		}
		srv.down, srv.promise = b, time.Time{}
		return b.Failure, true
	}
	if srv.starts <= srv.SlowStarts {
		f := stillDownloading()
		srv.down, srv.promise = &Breakage{From: s.now, To: s.now.Add(f.Took), Failure: f}, time.Time{}
		return f, true
	}
	return Failure{}, false
}

func (s *simulation) failed(srv *server, trigger events.Trigger, failure Failure) {
	s.about(srv, events.DiscoveryFailed{Evidence: failure.Evidence})
	srv.result.Wasted++
	srv.result.WastedTime += failure.Took
	f := srv.flight
	if projections.InRunRetry(s.set.Classify(failure.Evidence), f.attempt, f.probe) {
		s.at(s.now.Add(500*time.Millisecond<<(f.attempt-1)), func() {
			if srv.flight == f {
				s.attempt(srv, trigger)
			}
		})
		return
	}
	s.complete(srv, events.DiscoveryRunCompleted{Failed: 1})
	// A failure may show that others failed for the same reason, and so change when
	// they are due.
	for _, other := range s.servers {
		if other == srv || other.down != nil {
			s.plan(other)
		}
	}
}

func (s *simulation) succeeded(srv *server, took time.Duration) {
	version := passed(srv.Released, s.now)
	hash := fmt.Sprintf("%s-%d", srv.Name, version)
	known, _ := s.state.Catalogue(srv.Name)
	if srv.down != nil {
		s.recovered(srv, s.now.Add(-took))
	}
	s.about(srv, events.DiscoverySucceeded{
		ProtocolVersion: "2025-11-25", CatalogueHash: hash, ToolCount: 2, ElapsedMS: took.Milliseconds(),
		ServerInfo: events.ServerInfo{Name: string(srv.Name), Version: fmt.Sprintf("1.%d.0", version)},
	})
	if known == nil || known.Hash != hash {
		s.about(srv, events.CatalogueChanged{Hash: hash, Added: []string{"forecast", "now"}, Tools: []byte(`[{"name":"forecast"},{"name":"now"}]`)})
	}
	s.complete(srv, events.DiscoveryRunCompleted{Succeeded: 1})
	s.plan(srv)
}

// recovered measures a recovery, before it is folded, that an attempt begun at a
// time found.
func (s *simulation) recovered(srv *server, began time.Time) {
	srv.result.Recoveries = append(srv.result.Recoveries, began.Sub(srv.down.To))
	if !srv.promise.IsZero() && began.After(srv.promise.Add(launchSlack)) {
		srv.result.Late++
	}
	if v, ok := s.state.Server(srv.Name, s.now); ok && v.Streak != nil {
		srv.result.Counted += v.Streak.Count
	}
	srv.down, srv.promise = nil, time.Time{}
}

// launchSlack is how much later than due an attempt may begin: one that a restart cut
// short is made again.
const launchSlack = 5 * time.Second
