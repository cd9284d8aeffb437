package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/projections"
)

// place is what a request's address names.
type place struct {
	only   []events.ServerName // sorted; empty: all servers
	single bool                // one server under its own names
}

// placeOf reads a request's address.
func placeOf(r *http.Request) place {
	if name := serverInPath(r); name != "" {
		return place{only: []events.ServerName{events.ServerName(name)}, single: true}
	}
	var p place
	query := r.URL.Query()
	if !query.Has("servers") {
		return p
	}
	for name := range strings.SplitSeq(query.Get("servers"), ",") {
		p.only = append(p.only, events.ServerName(name))
	}
	slices.Sort(p.only)
	p.only = slices.Compact(p.only)
	if len(p.only) > 1 && p.only[0] == "" {
		p.only = p.only[1:] // a comma too many; alone it names no server
	}
	return p
}

// serverInPath returns the server that the address names, empty for none.
func serverInPath(r *http.Request) string {
	_, rest, found := strings.Cut(r.URL.EscapedPath(), "/mcp/")
	if !found {
		return ""
	}
	name, err := url.PathUnescape(strings.TrimSuffix(rest, "/"))
	if err != nil {
		return ""
	}
	return name
}

// key is equal for addresses that name the same.
func (p place) key() string {
	separator := "?"
	if p.single {
		separator = "/"
	}
	var key strings.Builder
	for _, name := range p.only {
		key.WriteString(separator + strconv.Quote(string(name)))
	}
	return key.String()
}

// includes reports whether a server is one of those that the address names.
func (p place) includes(name events.ServerName) bool {
	if len(p.only) == 0 {
		return true
	}
	_, found := slices.BinarySearch(p.only, name)
	return found
}

// missing returns which of the servers that the address names are not configured.
func (p place) missing(s *standing) []events.ServerName {
	return slices.DeleteFunc(slices.Clone(p.only), func(name events.ServerName) bool {
		_, configured := s.server(name)
		return configured
	})
}

// notConfigured reports an address of which no server is configured.
type notConfigured struct{ detail string }

func (e *notConfigured) Error() string { return e.detail }
func (e *notConfigured) Unwrap() error { return discovery.ErrUnknownServer }

// check returns an error for an address that names servers of which none is
// configured: what would be offered there is nothing, and nobody would know why. While
// the config is still being read it waits, and then gives the error of folds which have
// not caught up.
func (g *Gateway) check(ctx context.Context, p place) error {
	if len(p.only) == 0 {
		return nil
	}
	standing, err := g.fleet.now()
	if err == nil && len(p.missing(standing)) < len(p.only) {
		return nil
	}
	if !g.awaitStart(ctx) {
		return projections.ErrCatchingUp
	}
	if standing, err = g.fleet.now(); err != nil || len(p.missing(standing)) < len(p.only) {
		return err
	}
	const instead = "; /api/servers lists those that are, and one that is added to the config is offered at once"
	if len(p.only) > 1 {
		return &notConfigured{fmt.Sprintf("none of the servers %q is configured", p.only) + instead}
	}
	detail := fmt.Sprintf("no server named %q is configured", p.only[0])
	if at := g.removed(ctx, p.only[0]); !at.IsZero() {
		detail += " any more, it was removed from the config at " + at.UTC().Format(time.RFC3339)
	}
	return &notConfigured{detail + instead}
}

// removed returns when a server's entry was removed, zero if it had none or the log
// cannot tell.
func (g *Gateway) removed(ctx context.Context, name events.ServerName) time.Time {
	if name == "" {
		return time.Time{} // which the log would take for any
	}
	q := events.Query{Subject: name, Types: []events.Type{events.TypeServerRemoved}, Desc: true, Limit: 1}
	for e, err := range g.log.Read(ctx, q) {
		if err == nil {
			return e.HappenedAt()
		}
	}
	return time.Time{}
}
