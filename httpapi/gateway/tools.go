package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/projections"
)

// exchange is one request that is answered here, and what its handler needs to know.
type exchange struct {
	view    *view
	request *request
	out     *reply
	modern  bool // of 2026-07-28 or later
	first   bool // the client's first list of tools
	caller  string
	client  string // equal for requests of the same client
}

// method returns what answers a method, nil for those of the library.
func (g *Gateway) method(name string) func(context.Context, *exchange) answer {
	switch name {
	case methodToolsList:
		return g.listTools
	case methodToolsCall:
		return g.callTool
	case methodResources, methodTemplates, methodPrompts:
		return g.listOthers
	case methodResourcesRead:
		return g.readResource
	case methodPromptsGet:
		return g.getPrompt
	case methodComplete:
		return g.complete
	}
	return nil
}

// answer answers a request here. One that comes while the service starts waits for it:
// who asks then is mostly a client whose last service has just ended.
func (g *Gateway) answer(ctx context.Context, x *exchange, handle func(context.Context, *exchange) answer) answer {
	starting := time.NewTimer(startLimit)
	defer starting.Stop()
	select {
	case <-g.started:
	case <-starting.C:
	case <-ctx.Done():
	}
	return handle(ctx, x)
}

// startLimit is how long a request waits for the service to start.
const startLimit = 10 * time.Second

// callerName names a caller for the record: who they are, and their program.
func callerName(who, program string) string {
	program = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '/' {
			return '_'
		}
		return r
	}, program)
	program = program[:min(len(program), 64)]
	if who == "" || program == "" {
		return who + program
	}
	return who + "/" + program
}

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
		named, err := v.rename(one.Name, head.Name, tool)
		if err != nil {
			return nil, err
		}
		if len(part) > 0 {
			part = append(part, ',')
		}
		part = append(part, oneLine(named)...)
	}
	return part, nil
}

// The members of _meta that say where a tool, prompt or resource comes from.
const (
	metaServer = "mcpledger/server"
	metaName   = "mcpledger/name"
)

// rename returns the definition of a tool or prompt with its name in the view. In
// the view of a single server that is its own, and nothing is changed.
func (v *view) rename(server events.ServerName, own string, definition json.RawMessage) (json.RawMessage, error) {
	if v.single {
		return definition, nil
	}
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

// callTool answers tools/call with what the server answered, or with what kept it
// from answering.
func (g *Gateway) callTool(ctx context.Context, x *exchange) answer {
	name := x.request.params.Name
	if own := ownTool(name); own != nil && !x.view.single {
		return g.callOwn(ctx, x, own)
	}
	standing, err := g.fleet.now()
	if err != nil {
		return x.failed(unrecorded("", discovery.CallOutcome{}, err))
	}
	to, found := x.view.resolve(name, standing.named)
	if !found {
		return x.failed(failure{Code: discovery.CodeToolNotFound, Sentence: "No server here has a tool of that name. " + x.view.remedy()})
	}
	done := g.calls.listen(to.server, x.client, x.out)
	defer done()
	call := discovery.Call{
		Server: to.server, Tool: to.name, Arguments: x.request.params.Arguments, Meta: x.request.passedMeta(),
		Caller: x.caller, Client: x.client,
	}
	if len(x.request.meta.ProgressToken) > 0 {
		call.Progress = x.out.progress
	}
	out, err := g.discovery.Call(ctx, call)
	if err != nil {
		return x.failed(unrecorded(to.server, out, err))
	}
	return x.outcome(to.server, out)
}

// remedy says where to look for a tool that is not there.
func (v *view) remedy() string {
	if v.single {
		return "It may have been removed; list the tools anew."
	}
	return "It may have been removed; list the tools anew, or ask " + OwnPrefix + "list_servers which servers there are."
}

// outcome is the answer that a call's outcome makes: what the server answered, or
// in our words why there is nothing of it.
func (x *exchange) outcome(server events.ServerName, out discovery.CallOutcome) answer {
	switch {
	case len(out.Result) > 0:
		return x.result(out.Result)
	case out.RPC != nil && !gates(out.Failure):
		return answer{err: (*rpcError)(out.RPC)}
	}
	return x.failed(explain(server, out))
}

// result passes a tool's result on. Clients of 2026-07-28 want it to say that it is
// complete, which servers of earlier revisions do not.
func (x *exchange) result(raw json.RawMessage) answer {
	if string(member(raw, "resultType")) == `"input_required"` {
		return x.failed(inputRequired)
	}
	if x.modern {
		raw = withMembers(raw, map[string][]byte{"resultType": quoted("complete")}, "resultType")
	}
	return resultOf(oneLine(raw))
}

// inputRequired is the failure of a call in which the server wants something of the
// client.
var inputRequired = failure{
	Code: codeInputRequired, Dispatched: true,
	Sentence: "The server wants something from the client before it goes on (sampling, elicitation or roots), " +
		"which mcpledger does not pass on. The call has ended without a result.",
}

// unrecorded is the failure of a call that Call has an error for.
func unrecorded(server events.ServerName, out discovery.CallOutcome, err error) failure {
	f := failure{Server: server, CallID: out.CallID}
	switch {
	case errors.Is(err, discovery.ErrUnknownServer):
		f.Code, f.Sentence = discovery.CodeToolNotFound, "No server of that name is configured. Nothing was sent."
	case errors.Is(err, discovery.ErrOutcomeUnrecorded):
		f.Code, f.Dispatched = codeUnrecorded, true
		f.Sentence = "The call was sent, but its outcome could not be written down, so it is not given. Do not repeat it without looking at what it did."
	case errors.Is(err, projections.ErrCatchingUp):
		f.Code, f.RetryAfterMS = codeCatchingUp, time.Second.Milliseconds()
		f.Sentence = "The service is still reading its log. Nothing was sent; try again in a moment."
	case errors.Is(err, events.ErrUnavailable):
		f.Code, f.Sentence = codeLogUnavailable, "Calls cannot be written down now, so nothing was sent. Try again later."
	default:
		f.Code, f.Sentence = discovery.CodeCancelled, "The service is stopping, or the call was cancelled. Nothing was sent."
	}
	return f
}
