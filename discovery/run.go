package discovery

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/projections"
)

// request asks for one run.
type request struct {
	trigger events.Trigger
	servers []events.ServerName
	reason  string
	actor   string
}

// run is one pass over servers.
type run struct {
	id      string
	request request
	started time.Time
	done    chan struct{}
}

// begin records a run and starts its work in the background. Servers that have a
// run under way are left to it. A run without servers is not begun: run is nil.
func (s *Service) begin(ctx context.Context, req request) (*run, error) {
	r := &run{id: newID(), request: req, started: s.now(), done: make(chan struct{})}
	planned := s.claim(r)
	if len(planned) == 0 {
		return nil, nil // nothing to do is no error
	}
	names := make([]events.ServerName, len(planned))
	for i, p := range planned {
		names[i] = p.server.Name
	}
	data := events.DiscoveryRunStarted{Trigger: req.trigger, Servers: names, Reason: req.reason}
	if err := s.append(ctx, about{runID: r.id, actor: req.actor}, data); err != nil {
		for _, p := range planned {
			s.release(p)
		}
		s.work.Done()
		return nil, err
	}
	go func() {
		defer s.work.Done()
		s.carryOut(r, planned)
	}()
	return r, nil
}

// claimed is one server of a run, with the flight that keeps others off it.
type claimed struct {
	server *config.Server
	flight *flight
	ctx    context.Context
	ends   int // of the service, in a row, during the last attempts on it
}

// claim takes the run's servers that nobody is at, and counts the run among the
// work to wait for unless it has none.
func (s *Service) claim(r *run) []claimed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil
	}
	var planned []claimed
	for _, name := range r.request.servers {
		srv, known := s.servers[name]
		if !known || s.flights[name] != nil {
			continue
		}
		ctx, cancel := context.WithCancelCause(s.ctx)
		f := &flight{runID: r.id, cancel: cancel, done: make(chan struct{})}
		s.flights[name] = f
		planned = append(planned, claimed{server: srv, flight: f, ctx: ctx})
	}
	if len(planned) > 0 {
		s.work.Add(1)
	}
	return planned
}

func (s *Service) release(c claimed) {
	s.mu.Lock()
	delete(s.flights, c.server.Name)
	s.mu.Unlock()
	c.flight.cancel(nil)
	close(c.flight.done)
}

// carryOut attempts the planned servers, as many at the same time as have
// their turn, and records the run's end.
func (s *Service) carryOut(r *run, planned []claimed) {
	defer close(r.done)
	var mu sync.Mutex
	var total events.DiscoveryRunCompleted
	var all sync.WaitGroup
	begin := func(c claimed) {
		all.Go(func() {
			defer s.wake()
			defer s.release(c)
			outcome := s.attemptServer(c.ctx, r, c.server)
			mu.Lock()
			defer mu.Unlock()
			switch outcome {
			case projections.OutcomeSucceeded:
				total.Succeeded++
			case projections.OutcomeFailed:
				total.Failed++
			case projections.OutcomeCancelled, projections.OutcomeAbandoned, projections.OutcomeSkipped:
				total.Cancelled++
			}
		})
	}
	// When the service ends once more, it shall be known which server it was: from the
	// first end on they are tried one after another, from the second on each alone.
	for _, c := range s.leastSuspectFirst(planned) {
		if c.ends > 1 {
			all.Wait()
		}
		begin(c)
		if c.ends == 1 {
			s.await(c.flight, suspectLead)
		}
	}
	all.Wait()
	total.ElapsedMS = s.now().Sub(r.started).Milliseconds()
	if err := s.store(s.event(about{runID: r.id, actor: r.request.actor}, total)); err != nil {
		s.logger.WarnContext(s.ctx, "end of run not recorded", slog.Any("err", err))
	}
}

// suspectLead is the most that others wait for a server during whose last attempt the
// service ended. What takes the service down mostly does so at once.
const suspectLead = 10 * time.Second

// leastSuspectFirst orders the servers by how often in a row the service ended during
// the last attempts on them.
func (s *Service) leastSuspectFirst(planned []claimed) []claimed {
	// Where the engine has no answer there is no suspicion either.
	_ = s.engine.View(func(st *projections.State) {
		for i := range planned {
			planned[i].ends = st.Abandoned(planned[i].server.Name)
		}
	})
	slices.SortStableFunc(planned, func(a, b claimed) int { return cmp.Compare(a.ends, b.ends) })
	return planned
}

// await waits until the flight is over, for limit at most.
func (s *Service) await(f *flight, limit time.Duration) {
	enough := make(chan struct{})
	defer s.at(s.now().Add(limit), func() { close(enough) }).Stop()
	select {
	case <-f.done:
	case <-enough:
	}
}

// attemptServer makes a run's attempts on one server: one, or more where the rules
// say that trying again inside the run can help.
func (s *Service) attemptServer(ctx context.Context, r *run, srv *config.Server) projections.Outcome {
	if ctx.Err() != nil { // it waited for others, and the service stops
		return projections.OutcomeCancelled
	}
	take := s.turns.take
	if s.lastedLong(srv.Name) && !r.request.isAwaited() {
		take = s.turns.takeBeside
	}
	end, err := take(ctx)
	if err != nil {
		return projections.OutcomeCancelled
	}
	defer end()
	probe := s.probing(srv)
	for n := 1; ; n++ {
		if scheduled(r.request.trigger) {
			if s.launches.wait(ctx) != nil {
				return projections.OutcomeCancelled
			}
		}
		outcome, evidence := s.attempt(ctx, r, srv, n)
		again := outcome == projections.OutcomeFailed && projections.InRunRetry(s.engine.Rules().Classify(evidence), n, probe)
		if !again || s.pause(ctx, retryWait(s.backoff, n)) != nil {
			s.announce(ctx, srv.Name)
			return outcome
		}
	}
}

// isAwaited reports whether somebody waits for the one server that is asked for.
func (r request) isAwaited() bool {
	return len(r.servers) == 1 && (r.trigger == events.TriggerManual || r.trigger == events.TriggerOnUse)
}

// lastedLong reports whether attempts on a server lasted in vain for so long, since it
// last answered, that a turn is given away.
func (s *Service) lastedLong(name events.ServerName) bool {
	var v projections.Server
	now := s.now()
	err := s.engine.View(func(st *projections.State) { v, _ = st.Server(name, now) })
	return err == nil && v.InVain >= s.turns.giveWay
}

// probing reports whether an attempt on the server now goes past a skip.
func (s *Service) probing(srv *config.Server) bool {
	var o projections.Opportunity
	now := s.now()
	err := s.engine.View(func(st *projections.State) { o = st.Opportunity(s.source, srv.Name, srv.Key, now) })
	return err == nil && o.Probe
}

// scheduled reports whether an attempt comes from the schedule of a running
// service, and so is paced.
func scheduled(t events.Trigger) bool {
	switch t {
	case events.TriggerRetry, events.TriggerSkipExpired, events.TriggerRequalified, events.TriggerCheck:
		return true
	case events.TriggerStartup, events.TriggerConfigChanged, events.TriggerVerify, events.TriggerRefresh,
		events.TriggerManual, events.TriggerOnUse:
	}
	return false
}

// retryWait is the wait after the n-th attempt of a run: first, doubled for each
// attempt, give or take a quarter.
func retryWait(first time.Duration, n int) time.Duration {
	wait := first << (n - 1)
	return wait*3/4 + rand.N(wait/2)
}
