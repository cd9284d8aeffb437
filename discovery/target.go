package discovery

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

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
	b := startBudget(srv.Transport, fetching)
	if srv.Timeouts.Start > 0 {
		b.Total, b.Silence, b.List = srv.Timeouts.Start, 0, srv.Timeouts.Start
	}
	if srv.Timeouts.Silence > 0 {
		b.Silence = srv.Timeouts.Silence
	}
	return b
}

// The time that an attempt has where the entry sets none; a package runner that may have
// to fetch its package has projections.PackageRunnerBudget.
const (
	programBudget = time.Minute
	networkBudget = 15 * time.Second
)

// startBudget returns the budget of an attempt over a transport. fetching says that a
// package runner may have to fetch its package.
func startBudget(t events.Transport, fetching bool) upstream.Budget {
	switch {
	case t != events.TransportStdio:
		return upstream.Budget{Total: networkBudget, List: networkBudget}
	case fetching:
		return upstream.Budget{
			Total: projections.PackageRunnerBudget, Silence: projections.PackageRunnerSilence, List: programBudget,
		}
	}
	return upstream.Budget{Total: programBudget, List: programBudget}
}

// era returns the protocol era to begin with: the one that the server spoke last under
// this entry, as the log remembers it, else the entry's own.
func (s *Service) era(srv *config.Server) upstream.Era {
	version := ""
	_ = s.engine.View(func(st *projections.State) { version = st.ProtocolVersion(srv.Name) })
	return cmp.Or(upstream.EraOf(version), upstream.Era(srv.Era))
}

// noteAnswered remembers that a server answered under this key: a package runner
// has its package now, and the short budget does from here on.
func (s *Service) noteAnswered(key events.ConfigKey) {
	s.mu.Lock()
	s.answered[key] = true
	s.mu.Unlock()
	s.sessions.answered(key)
}
