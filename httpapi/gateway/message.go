package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
)

// message is a JSON-RPC message from a client, its parts as sent.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // nil: a notification
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// params are the parameters that the methods answered here have.
type params struct {
	Name      string          `json:"name"`
	URI       string          `json:"uri"`
	Cursor    string          `json:"cursor"`
	Level     string          `json:"level"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      json.RawMessage `json:"_meta"`
	Ref       json.RawMessage `json:"ref"`
	RequestID json.RawMessage `json:"requestId"`
	Client    clientInfo      `json:"clientInfo"`
}

// clientInfo is how a client introduces itself.
type clientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// meta is what is read of a request's _meta. Its protocol version is what tells a
// request of 2026-07-28 or later from one that belongs to a session.
type meta struct {
	ProgressToken json.RawMessage `json:"progressToken"`
	Version       string          `json:"io.modelcontextprotocol/protocolVersion"`
	Client        clientInfo      `json:"io.modelcontextprotocol/clientInfo"`
	Capabilities  json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
	LogLevel      string          `json:"io.modelcontextprotocol/logLevel"`
}

// request is a message with its parameters read.
type request struct {
	message
	params params
	meta   meta
	body   []byte // the whole message
}

// errNoMessage reports what is none, in words for a body as for a line of stdin.
var errNoMessage = errors.New("this is no JSON-RPC message, which is a JSON object")

// errMessageID reports a message whose id is none.
var errMessageID = errors.New("the id of a message is a string or a number")

// parseRequest reads a message. A parameter of another type than the methods here
// have is as good as missing. The error is errMessageID for a message that is one but for
// its id.
func parseRequest(body []byte) (*request, error) {
	r := &request{body: body}
	if err := json.Unmarshal(body, &r.message); err != nil {
		return nil, errNoMessage
	}
	if string(r.ID) == "null" {
		r.ID = nil
	}
	if r.ID != nil && !isString(r.ID) && !isNumber(r.ID) {
		return nil, errMessageID
	}
	if len(r.Params) > 0 {
		_ = json.Unmarshal(r.Params, &r.params)
	}
	if len(r.params.Meta) > 0 {
		_ = json.Unmarshal(r.params.Meta, &r.meta)
	}
	return r, nil
}

// wrongShape says what of a request keeps it from being one of MCP, nil if nothing does.
func (r *request) wrongShape() *rpcError {
	if params := bytes.TrimSpace(r.Params); r.ID != nil && len(params) > 0 && params[0] != '{' && string(params) != "null" {
		return &rpcError{Code: mcp.INVALID_PARAMS, Message: "params is to be an object"}
	}
	return nil
}

// modern reports whether the request is of 2026-07-28 or later, which has no
// sessions: it carries what the handshake used to tell.
func (r *request) modern(h http.Header) bool {
	return mcp.IsModernProtocol(r.meta.Version) || mcp.IsModernProtocol(h.Get(mcp.HeaderProtocolVersion))
}

// checkModern returns what is wrong with a request of 2026-07-28, nil if nothing is.
func (r *request) checkModern(h http.Header) *rpcError {
	version := h.Get(mcp.HeaderProtocolVersion)
	switch {
	case version == "" || r.meta.Version != "" && version != r.meta.Version:
		return &rpcError{Code: mcp.HEADER_MISMATCH, Message: fmt.Sprintf("the header %s is %q, the request's _meta says %q", mcp.HeaderProtocolVersion, version, r.meta.Version)}
	case r.meta.Version == "":
		return &rpcError{Code: mcp.INVALID_PARAMS, Message: "_meta lacks " + mcp.MetaKeyProtocolVersion}
	case !mcp.IsValidProtocolVersion(version):
		refused := mcp.UnsupportedProtocolVersionError{Version: version, Supported: mcp.ValidProtocolVersions}.JSONRPCError()
		return &rpcError{Code: refused.Error.Code, Message: refused.Error.Message, Data: encoded(refused.Error.Data)}
	case len(r.meta.Capabilities) == 0 || r.meta.Capabilities[0] != '{':
		return &rpcError{Code: mcp.INVALID_PARAMS, Message: "_meta lacks " + mcp.MetaKeyClientCapabilities}
	}
	if err := mcp.ValidateStandardHeaders(h.Get, version, mcp.MCPMethod(r.Method), r.Params); err != nil {
		return &rpcError{Code: mcp.HEADER_MISMATCH, Message: err.Error()}
	}
	return nil
}

// hopMeta are the members of _meta that are between a client and us: what we say of
// ourselves to a server is not for the client to decide.
var hopMeta = []string{mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities}

// passedMeta returns the _meta that goes on to the server, nil if nothing is left.
// level is the least level of log messages that the client wants; a server of
// 2026-07-28 is told in each request.
func (r *request) passedMeta(level string) json.RawMessage {
	var members map[string]json.RawMessage
	if len(r.params.Meta) > 0 && json.Unmarshal(r.params.Meta, &members) != nil {
		return nil
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	for _, name := range hopMeta {
		delete(members, name)
	}
	if level != "" {
		members[mcp.MetaKeyLogLevel] = quoted(level)
	}
	if len(members) == 0 {
		return nil
	}
	return encoded(members)
}

// rpcError is a JSON-RPC error. It has no Data where that is nil.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// answer is what a request is answered with: a result or an error.
type answer struct {
	result [][]byte // pieces of an object
	err    *rpcError
}

func resultOf(pieces ...[]byte) answer { return answer{result: pieces} }

func errorOf(code int, format string, args ...any) answer {
	return answer{err: &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}}
}

// reply returns the pieces of the message that answers the request with that id,
// without line breaks.
func (a answer) reply(id json.RawMessage) [][]byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	head := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	if a.err != nil {
		return [][]byte{head, []byte(`,"error":`), oneLine(encoded(a.err)), []byte("}")}
	}
	return slices.Concat([][]byte{head, []byte(`,"result":`)}, a.result, [][]byte{[]byte("}")})
}

// notification returns a notification's message.
func notification(method string, params json.RawMessage) []byte {
	return encoded(struct {
		JSONRPC string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}{"2.0", method, params})
}
