package discovery

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/projections"
)

const (
	factsInterval = 5 * time.Minute       // at which local facts of skipped servers are looked at
	leastLookWait = 10 * time.Millisecond // between two looks at what is due
)

// schedule starts a run for whatever is due, until ctx ends.
func (s *Service) schedule(ctx context.Context) {
	nextFacts := s.now()
	timer := s.at(nextFacts, s.wake)
	defer timer.Stop()
	first := true
	var held, unsaved failing // a full disk stays full, and is looked at every second: it is told of once
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		}
		now := s.now()
		if !now.Before(nextFacts) {
			s.requalify(ctx)
			nextFacts = now.Add(factsInterval)
		}
		s.sessions.closeIdle(now)
		next, err := s.startDue(ctx, now, first)
		first = first && err != nil
		if held.begins(err) && ctx.Err() == nil {
			s.logger.WarnContext(ctx, "what is due has to wait", slog.Any("err", err))
		}
		if next.After(nextFacts) {
			next = nextFacts
		}
		timer.Reset(now.Add(min(max(next.Sub(now), leastLookWait), s.lookEvery)))
		if err := s.engine.SaveSnapshot(ctx, false); unsaved.begins(err) && ctx.Err() == nil {
			s.logger.WarnContext(ctx, "snapshot not saved", slog.Any("err", err))
		}
	}
}

// failing says whether what is done again and again failed the last time.
type failing bool

// begins notes how it went, and reports whether err is the first error in a row.
func (f *failing) begins(err error) bool {
	before := *f
	*f = err != nil
	return bool(*f && !before)
}

// startDue begins runs for the servers due at now, one run per trigger, and returns
// when to look again, also with an error, after which something due has not begun. At
// the first time ready servers are due too, if they are to be verified.
func (s *Service) startDue(ctx context.Context, now time.Time, first bool) (next time.Time, err error) {
	next = now.Add(s.lookEvery)
	due := map[events.Trigger][]events.ServerName{}
	var notes []events.Event
	idle := s.idle()
	err = s.engine.View(func(st *projections.State) {
		for _, srv := range idle {
			if skipped, ok := st.SkipNote(srv.Name, now); ok {
				notes = append(notes, s.event(about{server: srv.Name, key: srv.Key}, skipped))
			}
			d, ok := st.Due(srv.Name, now)
			switch {
			case first && s.verify && isReady(st, srv.Name, now):
				due[events.TriggerVerify] = append(due[events.TriggerVerify], srv.Name)
			case !ok:
			case d.At.After(now):
				next = earlier(next, d.At)
			default:
				due[d.Trigger] = append(due[d.Trigger], srv.Name)
			}
		}
	})
	if err != nil {
		return next, err
	}
	if len(notes) > 0 {
		if _, err := s.log.Append(ctx, notes); err != nil {
			return now.Add(recordAgain), fmt.Errorf("record skips: %w", err)
		}
	}
	for _, trigger := range triggersInOrder(due) {
		if _, err := s.begin(ctx, request{trigger: trigger, servers: due[trigger]}); err != nil {
			return now.Add(recordAgain), fmt.Errorf("start a run, trigger %s: %w", trigger, err)
		}
	}
	for _, note := range notes {
		s.announce(ctx, note.Subject)
	}
	return next, nil
}

// idle returns the servers that no run is under way for, by name.
func (s *Service) idle() []*config.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := make([]*config.Server, 0, len(s.servers))
	for name, srv := range s.servers {
		if s.flights[name] == nil {
			idle = append(idle, srv)
		}
	}
	slices.SortFunc(idle, func(a, b *config.Server) int { return cmp.Compare(a.Name, b.Name) })
	return idle
}

func isReady(st *projections.State, name events.ServerName, now time.Time) bool {
	v, ok := st.Server(name, now)
	return ok && v.State == projections.StateReady
}

func triggersInOrder(due map[events.Trigger][]events.ServerName) []events.Trigger {
	var triggers []events.Trigger
	for t := range due {
		triggers = append(triggers, t)
	}
	slices.Sort(triggers)
	return triggers
}

// requalify ends the skips whose local facts changed.
func (s *Service) requalify(ctx context.Context) {
	type look struct {
		name   events.ServerName
		before []events.LocalFact
	}
	var looks []look
	now := s.now()
	err := s.engine.View(func(st *projections.State) {
		for _, v := range st.Servers(now) {
			if facts, ok := st.RequalifyFacts(v.Name, now); ok {
				looks = append(looks, look{v.Name, facts})
			}
		}
	})
	if err != nil {
		return
	}
	for _, l := range looks {
		s.mu.Lock()
		srv, known := s.servers[l.name]
		s.mu.Unlock()
		if !known {
			continue
		}
		was, is, changed := changedFact(l.before, localFacts(srv))
		if !changed {
			continue
		}
		reason := "changed on disk: " + factName(was, is)
		if is.Found && !was.Found {
			reason = "found now: " + is.Path
		}
		if err := s.append(ctx, about{server: srv.Name, key: srv.Key}, events.SkipRequalified{Reason: reason, Before: was, After: is}); err != nil {
			s.logger.WarnContext(ctx, "requalification not recorded", slog.String("server", string(srv.Name)), slog.Any("err", err))
		}
	}
}

func factName(was, is events.LocalFact) string {
	if is.Path != "" {
		return is.Path
	}
	return was.Path
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
