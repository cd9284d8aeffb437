package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
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
	asker   string  // the caller without their program
	client  string  // equal for requests of the same client
	session *client // nil for those that have none
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

// sessionMethod is method for clients that have a session, which have more of them.
func (g *Gateway) sessionMethod(name string) func(context.Context, *exchange) answer {
	switch name {
	case methodPing:
		return g.ping
	case methodSetLevel:
		return g.setLevel
	case methodSubscribe:
		return g.subscribe
	case methodUnsubscribe:
		return g.unsubscribe
	}
	return g.method(name)
}

// answer answers a request here. One that comes while the service starts waits for it:
// who asks then is mostly a client whose last service has just ended.
func (g *Gateway) answer(ctx context.Context, x *exchange, handle func(context.Context, *exchange) answer) answer {
	g.awaitStart(ctx)
	return handle(ctx, x)
}

// awaitStart waits for the service to start; false if that takes longer than a request
// may wait.
func (g *Gateway) awaitStart(ctx context.Context) bool {
	starting := time.NewTimer(startLimit)
	defer starting.Stop()
	select {
	case <-g.started:
		return true
	case <-starting.C:
	case <-ctx.Done():
	}
	return false
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

// callTool answers tools/call with what the server answered, or with what kept it
// from answering.
func (g *Gateway) callTool(ctx context.Context, x *exchange) answer {
	if wrong := x.request.wrongCall(); wrong != nil {
		return answer{err: wrong}
	}
	name := x.request.params.Name
	if strings.HasPrefix(name, OwnPrefix) && !x.view.single {
		return g.callOwn(ctx, x, name)
	}
	standing, err := g.fleet.now()
	if err != nil {
		return x.failed(unrecorded("", discovery.CallOutcome{}, err))
	}
	to, found := x.view.resolve(name, standing.named)
	if !found {
		return x.failed(failure{Code: discovery.CodeToolNotFound, Sentence: "No server here has a tool of that name. " + x.view.elsewhere()})
	}
	if one, configured := standing.server(to.server); configured {
		g.wantLogs(ctx, one, x)
	}
	done := g.calls.listen(to.server, x.client, x.out)
	defer done()
	call := discovery.Call{
		Server: to.server, Tool: to.name, Arguments: x.request.params.Arguments, Meta: x.request.passedMeta(x.out.level),
		Caller: x.caller, Client: x.client,
	}
	if !isAbsent(x.request.meta.ProgressToken) {
		call.Progress = x.out.progress
	}
	out, err := g.discovery.Call(ctx, call)
	if err != nil {
		return x.failed(unrecorded(to.server, out, err))
	}
	return x.outcome(to.server, out)
}

// wrongCall says what of a tools/call is not as the protocol has it, nil if all is.
func (r *request) wrongCall() *rpcError {
	switch arguments := bytes.TrimSpace(r.params.Arguments); {
	case r.params.Name == "":
		return &rpcError{Code: mcp.INVALID_PARAMS, Message: "tools/call wants the name of a tool, a string"}
	case len(arguments) > 0 && arguments[0] != '{' && string(arguments) != "null":
		return &rpcError{Code: mcp.INVALID_PARAMS, Message: "the arguments of tools/call are to be an object"}
	}
	return nil
}

// elsewhere says where to look for a tool that is not there.
func (v *view) elsewhere() string {
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
	return x.failed(x.explain(server, out))
}

// result passes a tool's result on. Clients of 2026-07-28 want it to say that it is
// complete, which servers of earlier revisions do not.
func (x *exchange) result(raw json.RawMessage) answer {
	raw = oneLine(raw)
	// A result may be large, so it is taken apart only if it can hold the word.
	if bytes.Contains(raw, []byte(`"resultType"`)) {
		switch kind := member(raw, "resultType"); {
		case string(kind) == `"input_required"`:
			return x.failed(inputRequired)
		case kind != nil:
			return resultOf(raw)
		}
	}
	if !x.modern {
		return resultOf(raw)
	}
	rest := bytes.TrimLeft(bytes.TrimLeft(raw, " \t")[1:], " \t")
	if rest[0] == '}' {
		return resultOf([]byte(`{"resultType":"complete"`), rest)
	}
	return resultOf([]byte(`{"resultType":"complete",`), rest)
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
