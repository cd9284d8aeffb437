package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/events"
	"mcpledger/projections"
)

// listTools answers tools/list: the tools of all servers of the view that are ready,
// each as its server sent it, in one page.
func (g *Gateway) listTools(ctx context.Context, x *exchange) answer {
	if x.request.params.Cursor != "" {
		return errorOf(mcp.INVALID_PARAMS, "the list has one page, and no cursor")
	}
	if x.first {
		g.awaitFirst(ctx, x.view)
	}
	standing, err := g.fleet.now()
	if err != nil {
		return errorOf(mcp.INTERNAL_ERROR, "the service is still reading its log, try again in a moment")
	}
	x.view.noteRead(standing)
	pieces := [][]byte{[]byte(`{"tools":[`)}
	add := func(fragment []byte) {
		if len(fragment) == 0 {
			return
		}
		if len(pieces) > 1 {
			pieces = append(pieces, []byte(","))
		}
		pieces = append(pieces, fragment)
	}
	for _, one := range x.view.servers(standing) {
		if !one.Offered() || one.Catalogue == nil {
			continue
		}
		fragment, err := g.fragment(ctx, x.view, one)
		if err != nil {
			g.logger.ErrorContext(ctx, "catalogue not offered", slog.String("server", string(one.Name)), slog.Any("err", err))
			continue
		}
		add(fragment)
	}
	if !x.view.single {
		add(ownTools())
	}
	return answer{result: append(pieces, []byte("]"), x.listEnd())}
}

// listEnd returns what follows the array in the result of a list: 2026-07-28 wants
// to know that the result is complete, and how long it may be kept.
func (x *exchange) listEnd() []byte {
	if !x.modern {
		return []byte("}")
	}
	return []byte(`,"resultType":"complete","ttlMs":0,"cacheScope":"private"}`)
}

// awaitFirst waits a little for servers that have no outcome yet, so that a client
// which is started together with the service finds their tools at once.
func (g *Gateway) awaitFirst(ctx context.Context, v *view) {
	ctx, cancel := context.WithTimeout(ctx, max(g.firstWait, 0))
	defer cancel()
	for {
		changed := g.fleet.changed()
		standing, err := g.fleet.now()
		if err == nil && !anyDiscovering(v.servers(standing)) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-g.life.Done():
			return
		}
	}
}

func anyDiscovering(servers []projections.Server) bool {
	for _, one := range servers {
		if one.State == projections.StateDiscovering {
			return true
		}
	}
	return false
}

// fragments holds servers' parts of the list, since clients ask for the same one.
type fragments struct {
	mu    sync.Mutex
	bytes int
	parts map[string][]byte
}

// maxFragments bounds what is held, in bytes; past that it is made anew.
const maxFragments = 32 << 20

// fragment returns a server's part of the view's list: its tools, separated by
// commas.
func (g *Gateway) fragment(ctx context.Context, v *view, one projections.Server) ([]byte, error) {
	key := contentKey(one)
	if v.single {
		key += "/own"
	}
	g.fragments.mu.Lock()
	part, known := g.fragments.parts[key]
	g.fragments.mu.Unlock()
	if known {
		return part, nil
	}
	catalogue, err := g.log.Content(ctx, one.Catalogue.Content)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue of %s: %w", one.Name, err)
	}
	if part, err = v.render(one, catalogue); err != nil {
		return nil, fmt.Errorf("read the catalogue of %s: %w", one.Name, err)
	}
	g.fragments.mu.Lock()
	defer g.fragments.mu.Unlock()
	if g.fragments.parts == nil || g.fragments.bytes+len(part) > maxFragments {
		g.fragments.parts, g.fragments.bytes = map[string][]byte{}, 0
	}
	g.fragments.parts[key] = part
	g.fragments.bytes += len(part)
	return part, nil
}

// render names the tools of a catalogue for the view. What a tool is called by its
// server is in its _meta.
func (v *view) render(one projections.Server, catalogue []byte) ([]byte, error) {
	var tools []json.RawMessage
	if err := json.Unmarshal(catalogue, &tools); err != nil {
		return nil, err
	}
	part := make([]byte, 0, len(catalogue)+64*len(tools))
	listed := map[string]bool{}
	var odd []string
	for _, tool := range tools {
		var head struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(tool, &head); err != nil {
			return nil, err
		}
		if !one.Offers(head.Name) {
			continue
		}
		named, err := v.tool(one.Name, head.Name, tool)
		if err == nil && listed[head.Name] && !v.single {
			err = errors.New("another tool has its name, for which clients refuse the list of all")
		}
		if err != nil {
			odd = append(odd, oddItem(head.Name, err))
			continue
		}
		listed[head.Name] = true
		if len(part) > 0 {
			part = append(part, ',')
		}
		part = append(part, oneLine(named)...)
	}
	if !v.single { // where all is listed as it is
		v.gateway.leftOut(one, methodToolsList, odd)
	}
	return part, nil
}

// tool returns a tool's definition as the view lists it.
func (v *view) tool(server events.ServerName, own string, definition json.RawMessage) (json.RawMessage, error) {
	if v.single {
		return definition, nil
	}
	definition, err := itemShapes[methodToolsList].fit(definition)
	if err != nil {
		return nil, err
	}
	return v.rename(server, own, definition)
}

// leftOut says which items of a server's list are not offered, and why: each once, until
// that changes.
func (g *Gateway) leftOut(v projections.Server, method string, odd []string) {
	for _, one := range g.oddItems.news(listKey{connection: v.ConfigKey, method: method}, odd) {
		g.logger.Warn("item of a list left out", slog.String("server", string(v.Name)), slog.String("method", method), slog.String("err", one))
	}
}

// oddItem says in a few words why an item of that name, which may be empty, is not offered.
func oddItem(name string, err error) string {
	if name == "" {
		return "one without a name: " + err.Error()
	}
	return fmt.Sprintf("%q: %s", untrusted(name), err)
}

// The members of _meta that say where a tool, prompt or resource comes from.
const (
	metaServer = "mcpledger/server"
	metaName   = "mcpledger/name"
)

// rename returns the definition of a tool or prompt with its name in a view of several
// servers.
func (v *view) rename(server events.ServerName, own string, definition json.RawMessage) (json.RawMessage, error) {
	origin, err := withOrigin(member(definition, "_meta"), server, own)
	if err != nil {
		return nil, err
	}
	return splice(definition, map[string][]byte{"name": quoted(v.name(server, own)), "_meta": origin}, "_meta")
}

// withOrigin returns a _meta, nil for none, with where its owner comes from.
func withOrigin(meta json.RawMessage, server events.ServerName, own string) (json.RawMessage, error) {
	if len(meta) == 0 || meta[0] != '{' {
		meta = json.RawMessage("{}")
	}
	origin := map[string][]byte{metaServer: quoted(string(server)), metaName: quoted(own)}
	return splice(meta, origin, metaServer, metaName)
}
