package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpledger/discovery/upstream"
)

// captured is an answer of the library, before anybody gets it.
type captured struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (c *captured) Header() http.Header         { return c.header }
func (c *captured) WriteHeader(status int)      { c.status = status }
func (c *captured) Write(p []byte) (int, error) { return c.body.Write(p) }

// library has the library answer a message. The id in the answer is the client's own
// again: the library rounds one that is a large integer.
func (v *view) library(r *http.Request, req *request) *captured {
	c := &captured{header: http.Header{}, status: http.StatusOK}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(req.body))
	v.http.ServeHTTP(c, r)
	if req.ID != nil {
		c.replace(map[string][]byte{"id": req.ID})
	}
	return c
}

// replace sets members of the answer, if that is a message which has them.
func (c *captured) replace(set map[string][]byte) {
	body := bytes.TrimSpace(c.body.Bytes())
	if replaced, err := splice(body, set); err == nil {
		c.body.Reset()
		c.body.Write(replaced)
	}
}

// writeTo passes the answer on.
func (c *captured) writeTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), c.header)
	w.Header().Del("Content-Length")
	w.WriteHeader(c.status)
	_, _ = w.Write(c.body.Bytes())
}

// introduce answers initialize and server/discover: by the library, but for what it
// cannot know of the servers behind. A server that is offered alone is waited for as by a
// first list, since what is said of it stays with the client: it would be told, for as
// long as it runs, that there is nothing.
func (v *view) introduce(r *http.Request, req *request) *captured {
	if v.single {
		v.gateway.awaitFirst(r.Context(), v)
	}
	c := v.library(r, req)
	result := member(c.body.Bytes(), "result")
	capabilities := member(result, "capabilities")
	if capabilities == nil {
		return c
	}
	set, add := map[string][]byte{}, []string{}
	if said := v.describe(); said != "" {
		set["instructions"], add = quoted(said), append(add, "instructions")
	}
	if resources := member(capabilities, "resources"); resources != nil && v.offersUpdates(r.Context()) {
		set["capabilities"] = withSubscribe(capabilities, resources)
	}
	if result, err := splice(result, set, add...); err == nil {
		c.replace(map[string][]byte{"result": result})
	}
	return c
}

// withSubscribe returns the capabilities with resources that can be subscribed to.
func withSubscribe(capabilities, resources []byte) []byte {
	resources, err := splice(resources, map[string][]byte{"subscribe": []byte("true")}, "subscribe")
	if err != nil {
		return capabilities
	}
	with, err := splice(capabilities, map[string][]byte{"resources": resources})
	if err != nil {
		return capabilities
	}
	return with
}

// offersUpdates reports whether a server of the view says that it tells of updates of
// single resources.
func (v *view) offersUpdates(ctx context.Context) bool {
	standing, err := v.gateway.fleet.now()
	if err != nil {
		return false
	}
	for _, one := range v.servers(standing) {
		if one.Offered() && upstream.OffersUpdates(v.gateway.lists.capabilities(ctx, one)) {
			return true
		}
	}
	return false
}

// initialize has the library begin a session and notes who it is for.
func (g *Gateway) initialize(w http.ResponseWriter, r *http.Request, v *view, req *request) error {
	oldest, ok := g.clients.oldest()
	if !ok {
		return busy("too many sessions are open")
	}
	if oldest != nil {
		// Programs that begin a session for each request and end none would keep all others
		// out. Whose session it was begins another.
		g.drop(oldest)
	}
	c := v.introduce(r, req)
	if session, err := g.clients.find(c.header.Get(server.HeaderKeySessionID), v); err == nil {
		var version string
		_ = json.Unmarshal(member(member(c.body.Bytes(), "result"), "protocolVersion"), &version)
		session.introduce(g.caller(r), req.params.Client.Name, version)
	}
	c.writeTo(w)
	return nil
}

// ping answers ping.
func (g *Gateway) ping(context.Context, *exchange) answer { return resultOf([]byte("{}")) }

// setLevel answers logging/setLevel: from now on the client hears what servers log
// during its calls, from that level on.
func (g *Gateway) setLevel(_ context.Context, x *exchange) answer {
	if severity(x.request.params.Level) < 0 {
		return errorOf(mcp.INVALID_PARAMS, "level is none of %q", levelNames)
	}
	x.session.setLogLevel(x.request.params.Level)
	return resultOf([]byte("{}"))
}
