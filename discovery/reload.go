package discovery

import (
	"context"
	"log/slog"

	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/projections"
)

// Reloaded is what a reload of the config found.
type Reloaded struct {
	// Changes has every configured server with what changed of it, "" for nothing.
	Changes map[events.ServerName]events.Change
	Removed []events.ServerName    // those no longer configured
	Faults  []events.ConfigProblem // of single entries
}

// Reload reads the config and puts it in force: what changed is recorded in one
// batch, and only servers that changed are touched. A config that cannot be used is
// recorded as rejected, the last good one stays in force, and the error is config's.
func (s *Service) Reload(ctx context.Context, actor string) (Reloaded, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	loaded, err := s.load()
	if err != nil {
		return Reloaded{}, s.reject(ctx, err, actor)
	}
	known, err := s.applied()
	if err != nil {
		return Reloaded{}, err
	}
	diff := config.Diff(known, loaded)
	if err := s.record(ctx, config.LoadedEvents(loaded, diff), actor); err != nil {
		return Reloaded{}, err
	}
	s.adopt(loaded, diff)
	r := Reloaded{Changes: map[events.ServerName]events.Change{}, Faults: loaded.Faults}
	for _, name := range diff.Unchanged {
		r.Changes[name] = ""
	}
	for _, c := range diff.Changed {
		r.Changes[c.Server.Name] = c.Change
	}
	for _, gone := range diff.Removed {
		r.Removed = append(r.Removed, gone.Name)
	}
	for _, p := range loaded.Warnings {
		s.logger.LogAttrs(ctx, slog.LevelWarn, "config warning", place(p)...)
	}
	for _, p := range loaded.Faults {
		if p.Server == "" { // else the server's state says it
			s.logger.LogAttrs(ctx, slog.LevelWarn, "config entry left out", place(p)...)
		}
	}
	s.announceAll(ctx)
	s.wake()
	return r, nil
}

// place gives a problem's place and words as a log has them.
func place(p events.ConfigProblem) []slog.Attr {
	return []slog.Attr{
		slog.String("file", p.File), slog.Int("line", p.Line),
		slog.String("server", string(p.Server)), slog.String("detail", p.Detail),
	}
}

// reject records why a config was refused, unless the last one was refused for the
// same, and returns that error.
func (s *Service) reject(ctx context.Context, bad error, actor string) error {
	batch := config.RejectedEvents(bad)
	last := batch[len(batch)-1].Data.(events.ConfigRejected).ConfigProblem
	told := false
	if err := s.engine.View(func(st *projections.State) {
		rejected := st.Config().Rejected
		told = rejected != nil && *rejected == last
	}); err != nil {
		return err
	}
	if told {
		return bad
	}
	if err := s.record(ctx, batch, actor); err != nil {
		return err
	}
	return bad
}

// record completes events and appends them as one batch.
func (s *Service) record(ctx context.Context, batch []events.Event, actor string) error {
	for i, e := range batch {
		batch[i] = s.event(about{server: e.Subject, key: e.ConfigKey, actor: actor}, e.Data)
	}
	_, err := s.log.Append(ctx, batch)
	return err
}

// applied returns the entries that the log says are in force.
func (s *Service) applied() (map[events.ServerName]config.Applied, error) {
	all := map[events.ServerName]config.Applied{}
	now := s.now()
	err := s.engine.View(func(st *projections.State) {
		for _, v := range st.Servers(now) {
			all[v.Name] = config.Applied{Key: v.ConfigKey, Configured: v.Entry}
		}
	})
	return all, err
}

// adopt makes a config the one in force and ends runs of connections that are gone.
func (s *Service) adopt(c *config.Config, d config.Difference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, s.redactor = c, c.Redactor()
	s.servers = make(map[events.ServerName]*config.Server, len(c.Servers))
	for _, srv := range c.Servers {
		s.servers[srv.Name] = srv
	}
	stop := func(name events.ServerName) {
		if f := s.flights[name]; f != nil {
			f.cancel(errConfigChanged)
		}
	}
	for _, changed := range d.Changed {
		if changed.Change != events.ChangeSettings || changed.Server.Disabled {
			stop(changed.Server.Name)
		}
	}
	for _, r := range d.Removed {
		stop(r.Name)
	}
	inForce := map[events.ConfigKey]bool{}
	for _, srv := range c.Servers {
		if !srv.Disabled && srv.Problem == nil {
			inForce[srv.Key] = true
		}
	}
	s.sessions.keep(inForce)
}

// Redactor returns what masks the secrets of all servers now configured.
func (s *Service) Redactor() *config.Redactor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redactor
}

// Watched returns the files whose change calls for a reload.
func (s *Service) Watched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config == nil {
		return nil
	}
	return s.config.Watched
}
