package discovery

import (
	"os"
	"slices"
	"strings"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
)

// clientName is how we introduce ourselves to servers.
const clientName = "mcpledger"

// target says what to start or dial for an entry, and within which limits.
func (s *Service) target(srv *config.Server) upstream.Target {
	label := srv.Command
	if srv.Package != "" {
		label = srv.Runner + " " + srv.Package
	}
	return upstream.Target{
		Name: srv.Name, Transport: srv.Transport,
		Command: srv.Command, Args: srv.Args, Env: s.marked(environ(srv)), Dir: srv.Cwd,
		Label: srv.Redactor.String(label),
		URL:   srv.URL, Headers: srv.Headers,
		MaxMessageBytes: srv.Settings.MaxResult,
		Era:             s.era(srv), Budget: s.budget(srv), Redactor: srv.Redactor,
		Client: upstream.ClientInfo{Name: clientName, Version: s.version}, Now: s.now, At: s.at,
	}
}

// environ returns the whole environment of a server's process.
func environ(srv *config.Server) []string {
	if slices.Contains(srv.InheritEnv, config.InheritAll) {
		return upstream.Environ(os.Environ(), srv.Env, true)
	}
	own := map[string]string{}
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); slices.Contains(srv.InheritEnv, name) {
			own[name] = value
		}
	}
	for name, value := range srv.Env {
		own[name] = value
	}
	return upstream.Environ(os.Environ(), own, false)
}

// budget returns the time an attempt may take. A package runner may have to fetch
// its package until the server has answered once since the service started.
func (s *Service) budget(srv *config.Server) upstream.Budget {
	s.mu.Lock()
	fetching := srv.Runner != "" && !s.answered[srv.Key]
	s.mu.Unlock()
	b := upstream.StartBudget(srv.Transport, fetching)
	if srv.Timeouts.Start > 0 {
		b.Total, b.Silence, b.List = srv.Timeouts.Start, 0, srv.Timeouts.Start
	}
	if srv.Timeouts.Silence > 0 {
		b.Silence = srv.Timeouts.Silence
	}
	return b
}

// era returns the protocol era to begin with: the entry's own, or the one the server's
// connection settled on, as the log remembers it.
func (s *Service) era(srv *config.Server) upstream.Era {
	if srv.Era != "" {
		return upstream.Era(srv.Era)
	}
	version := ""
	_ = s.engine.View(func(st *projections.State) { version = st.ProtocolVersion(srv.Name) })
	switch {
	case version == "":
		return upstream.EraAuto
	case version >= firstModern:
		return upstream.EraModern
	}
	return upstream.EraLegacy
}

// firstModern is the first protocol revision without initialize. Revisions are
// dates, so they compare as text.
const firstModern = "2026-07-28"

// noteAnswered remembers that a server answered under this key: a package runner
// has its package now, and the short budget does from here on.
func (s *Service) noteAnswered(key events.ConfigKey) {
	s.mu.Lock()
	s.answered[key] = true
	s.mu.Unlock()
	s.sessions.answered(key)
}
