package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/discovery"
	"mcpledger/events"
)

// scheme begins the addresses of resources in views of several servers: it is
// followed by the server's name and the server's own address, which stays readable,
// so that templates can be filled in as they are.
const scheme = "mcpledger://"

// addressOf returns the address in the view of a resource of a server.
func addressOf(server events.ServerName, own string) string {
	return scheme + url.PathEscape(string(server)) + "/" + own
}

// parseAddress returns whose resource an address is, and its own.
func parseAddress(address string) (server events.ServerName, own string, ok bool) {
	rest, found := strings.CutPrefix(address, scheme)
	name, own, cut := strings.Cut(rest, "/")
	decoded, err := url.PathUnescape(name)
	return events.ServerName(decoded), own, found && cut && err == nil
}

// locate returns where the address of a resource leads. One that a server gave in a
// tool's result is its own; it leads to the server that lists it.
func (g *Gateway) locate(ctx context.Context, x *exchange, address string) (route, bool) {
	if x.view.single {
		return route{x.view.only[0], address}, true
	}
	if server, own, ok := parseAddress(address); ok {
		return route{server, own}, x.view.includes(server)
	}
	standing, err := g.fleet.now()
	if err != nil {
		return route{}, false
	}
	servers := x.view.servers(standing)
	for i, listed := range g.lists.all(ctx, servers, kinds[methodResources], x.client) {
		named := func(item json.RawMessage) bool {
			uri, ok := textOf(item, "uri")
			return ok && uri == address
		}
		if slices.ContainsFunc(listed, named) {
			return route{servers[i].Name, address}, true
		}
	}
	return route{}, false
}

// readResource answers resources/read.
func (g *Gateway) readResource(ctx context.Context, x *exchange) answer {
	to, found := g.locate(ctx, x, x.request.params.URI)
	if !found {
		return noResource(x.request.params.URI)
	}
	a := g.pass(ctx, x, to.server, map[string]json.RawMessage{"uri": quoted(to.name)})
	if a.err != nil || x.view.single {
		return a
	}
	return readdress(a, to.server)
}

// noResource is the answer about an address that leads nowhere.
func noResource(uri string) answer {
	return answer{err: &rpcError{
		Code: mcp.RESOURCE_NOT_FOUND, Message: "no server here has a resource of that address",
		Data: encoded(map[string]string{"uri": uri}),
	}}
}

// readdress gives the contents of a resource the addresses they have in the view.
func readdress(a answer, server events.ServerName) answer {
	result := slices.Concat(a.result...)
	var contents []json.RawMessage
	if json.Unmarshal(member(result, "contents"), &contents) != nil {
		return a
	}
	for i, content := range contents {
		own, ok := textOf(content, "uri")
		if !ok {
			continue
		}
		if named, err := splice(content, map[string][]byte{"uri": quoted(addressOf(server, own))}); err == nil {
			contents[i] = named
		}
	}
	named, err := splice(result, map[string][]byte{"contents": encoded(contents)})
	if err != nil {
		return a
	}
	return resultOf(named)
}

// getPrompt answers prompts/get.
func (g *Gateway) getPrompt(ctx context.Context, x *exchange) answer {
	to, found := g.findPrompt(ctx, x, x.request.params.Name)
	if !found {
		return errorOf(mcp.INVALID_PARAMS, "no server here has a prompt of that name; list the prompts anew")
	}
	return g.pass(ctx, x, to.server, map[string]json.RawMessage{"name": quoted(to.name)})
}

// findPrompt returns where a prompt's name leads. Names that hold a hash are looked
// up in the lists.
func (g *Gateway) findPrompt(ctx context.Context, x *exchange, name string) (route, bool) {
	if to, found := x.view.resolve(name, nil); found || x.view.single {
		return to, found
	}
	standing, err := g.fleet.now()
	if err != nil {
		return route{}, false
	}
	servers := x.view.servers(standing)
	for i, listed := range g.lists.all(ctx, servers, kinds[methodPrompts], x.client) {
		for _, item := range listed {
			if own, ok := textOf(item, "name"); ok && x.view.name(servers[i].Name, own) == name {
				return route{servers[i].Name, own}, true
			}
		}
	}
	return route{}, false
}

// complete answers completion/complete, for an argument of a prompt or of a
// resource's template.
func (g *Gateway) complete(ctx context.Context, x *exchange) answer {
	var ref struct {
		Type string `json:"type"`
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	if json.Unmarshal(x.request.params.Ref, &ref) != nil {
		return errorOf(mcp.INVALID_PARAMS, "ref is no reference to a prompt or a resource")
	}
	var to route
	var found bool
	place := "name"
	if ref.Type == "ref/resource" {
		place = "uri"
		to, found = g.locate(ctx, x, ref.URI)
	} else {
		to, found = g.findPrompt(ctx, x, ref.Name)
	}
	if !found {
		return errorOf(mcp.INVALID_PARAMS, "no server here has what ref names")
	}
	own, err := splice(x.request.params.Ref, map[string][]byte{place: quoted(to.name)})
	if err != nil {
		return errorOf(mcp.INVALID_PARAMS, "ref is no reference to a prompt or a resource")
	}
	return g.pass(ctx, x, to.server, map[string]json.RawMessage{"ref": own})
}

// pass sends the request on to a server with some of its parameters replaced, and
// returns what the server answers.
func (g *Gateway) pass(ctx context.Context, x *exchange, server events.ServerName, replaced map[string]json.RawMessage) answer {
	params := map[string]json.RawMessage{}
	if err := json.Unmarshal(x.request.Params, &params); err != nil {
		return errorOf(mcp.INVALID_PARAMS, "params is no object")
	}
	delete(params, "_meta")
	if meta := x.request.passedMeta(x.out.level); meta != nil {
		params["_meta"] = meta
	}
	for name, value := range replaced {
		params[name] = value
	}
	done := g.calls.listen(server, x.client, x.out)
	defer done()
	said, err := g.discovery.Ask(ctx, discovery.Question{
		Server: server, Method: x.request.Method, Params: encoded(params), Client: x.client,
	})
	return x.asked(server, said, err)
}

// asked is the answer that a server's makes: what it answered, or in our words why
// there is nothing of it.
func (x *exchange) asked(server events.ServerName, said discovery.Answer, err error) answer {
	switch {
	case err != nil:
		return errorOf(mcp.INTERNAL_ERROR, "%s", unrecorded(server, discovery.CallOutcome{}, err).text())
	case said.RPC != nil && !gates(said.Failure):
		return answer{err: (*rpcError)(said.RPC)}
	case said.Failure != nil:
		f := x.explain(server, discovery.CallOutcome{Dispatched: said.Failure.Evidence.Dispatched, Failure: said.Failure})
		return answer{err: &rpcError{Code: mcp.INTERNAL_ERROR, Message: f.text(), Data: encoded(map[string]failure{metaFailure: f})}}
	}
	return x.passedResult(said.Result)
}

// passedResult passes the result of a request that calls no tool on.
func (x *exchange) passedResult(raw json.RawMessage) answer {
	kind := member(raw, "resultType")
	switch {
	case string(kind) == `"input_required"`:
		return errorOf(mcp.INTERNAL_ERROR, "%s", inputRequired.text())
	case !x.modern:
		return resultOf(oneLine(raw))
	}
	add := map[string][]byte{"resultType": quoted("complete"), "ttlMs": []byte("0"), "cacheScope": quoted("private")}
	names := []string{"resultType"}
	if x.request.Method == methodResourcesRead {
		names = append(names, "ttlMs", "cacheScope")
	}
	return resultOf(oneLine(withMembers(raw, add, names...)))
}

// withMembers returns the object with the members it lacks; as it is, if it is no
// object.
func withMembers(object json.RawMessage, values map[string][]byte, names ...string) json.RawMessage {
	missing := map[string][]byte{}
	for _, name := range names {
		if member(object, name) == nil {
			missing[name] = values[name]
		}
	}
	whole, err := splice(object, missing, slices.Sorted(maps.Keys(missing))...)
	if err != nil {
		return object
	}
	return whole
}
