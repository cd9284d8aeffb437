package discovery_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/mcptest"
	"mcpledger/projections"
)

// callRow is one way for a call to end, and what it must lead to.
type callRow struct {
	name string
	// remote is a server over HTTP whose script runs at a method, tools/call unless it
	// is named; fresh has no session open before.
	remote mcptest.HTTP
	method string
	script func(http.ResponseWriter, *http.Request, rpcRequest)
	fresh  bool
	// first has the call come while the server's first attempt is under way, which goes on
	// with the script when the call waits for it.
	first bool
	// program is a server that is a process; its tool is called.
	program *mcptest.Fake
	// entry is a config entry of its own, address that of a server which gives none, and
	// state what the server must be first.
	entry   map[string]any
	address func(t testing.TB) string
	state   projections.ServerState
	// before runs when the server stands as it should.
	before func(r *running, server string)
	tool   string // victim unless it is named
	// timeout limits the call; 0: a limit that is not reached.
	timeout time.Duration
	want    consequence
}

// consequence is what a call leads to.
type consequence struct {
	code    string // of the failure; empty for a result
	gate    string
	session string // kept, discarded, or empty where there is none
	sent    int
	sibling string // what the server's other tool answers then: callable, or why not
}

// brief is a limit that is reached; ample is one for what takes the start of a process
// besides.
const (
	brief = time.Second
	ample = 5 * time.Second
)

const (
	callable  = "callable"
	kept      = "kept"
	discarded = "discarded"
)

// Answers with %id in them.
const (
	good       = `{"jsonrpc":"2.0","id":%id,"result":{"content":[{"type":"text","text":"Grüße 🌍"}]}}`
	notice     = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%token,"progress":1}}`
	foreign    = `{"jsonrpc":"2.0","id":424242,"result":{"content":[]}}`
	expired    = `{"jsonrpc":"2.0","id":%id,"error":{"code":-32001,"message":"Session not found"}}`
	noSession  = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`
	scopeProse = `{"message":"This needs insufficient_scope to be fixed: ask for repo scope"}`
)

func rpcError(code, message, data string) string {
	if data != "" {
		data = `,"data":` + data
	}
	return `{"jsonrpc":"2.0","id":%id,"error":{"code":` + code + `,"message":"` + message + `"` + data + `}}`
}

// failed, lost and gated are the common consequences.
func failed(code string) consequence { return consequence{code, "", kept, 1, callable} }
func broke(code string) consequence  { return consequence{code, "", discarded, 1, callable} }
func gated(kind string) consequence  { return consequence{kind, kind, kept, 1, "refused: " + kind} }

// unopened is the consequence where no session could be opened.
func unopened(code string) consequence {
	return consequence{code, "", "", 0, "refused: " + discovery.CodeNotConnected}
}

const (
	authRequired = discovery.CodeAuthRequired
	scope        = discovery.CodeInsufficientScope
)

var jsonBody = []string{"Content-Type", "application/json"}

// callRows are the rows of docs/reference/call-outcomes.md, by chapter.
var callRows = []struct {
	chapter string
	rows    []callRow
}{
	{"The network", []callRow{
		{name: "connection reset", script: severs(true), want: broke(discovery.CodeNetworkError)},
		{name: "connection closed without an answer", script: severs(false), want: broke(discovery.CodeNetworkError)},
		{name: "answer cut in the middle", script: then(says(`{"jsonrpc":"2.0",`), func(w http.ResponseWriter, _ *http.Request, _ rpcRequest) {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}), want: broke(discovery.CodeNetworkError)},
		{name: "connection refused", entry: map[string]any{"url": "http://127.0.0.1:1/mcp"}, state: projections.StateFailed, want: unopened(discovery.CodeNetworkError)},
		{name: "unknown host", entry: map[string]any{"url": "http://no-such-host.invalid/mcp"}, state: projections.StateFailed, want: unopened(discovery.CodeNetworkError)},
		{name: "TLS spoken to a server without", address: withoutTLS, state: projections.StateFailed, want: unopened(discovery.CodeNetworkError)},
		{name: "a certificate nobody vouches for", address: selfSigned, state: projections.StateFailed, want: unopened(discovery.CodeNetworkError)},
	}},
	{"Deadlines", []callRow{
		{name: "silence before the headers", script: hangs, timeout: brief, want: broke(discovery.CodeToolTimeout)},
		{name: "silence in a JSON body", script: then(says(`{"jsonrpc":`), flush, hangs), timeout: brief, want: broke(discovery.CodeToolTimeout)},
		{name: "silence in a stream of events", script: then(streams("data: {\"jsonrpc\":\n"), hangs), timeout: brief, want: broke(discovery.CodeToolTimeout)},
		{name: "keep-alives without end", script: keepsAlive, timeout: brief, want: broke(discovery.CodeToolTimeout)},
	}},
	{"HTTP statuses", []callRow{
		{name: "400", script: status(400, "bad request"), want: failed(discovery.CodeRemoteStatus)},
		{name: "404 on a session", script: status(404, "not found"), want: broke(discovery.CodeSessionExpired)},
		{name: "404 without session", remote: mcptest.HTTP{Sessionless: true}, script: status(404, "not found"), want: failed(discovery.CodeRemoteStatus)},
		{name: "405", script: status(405, ""), want: failed(discovery.CodeRemoteStatus)},
		{name: "408", script: status(408, ""), want: failed(discovery.CodeRemoteStatus)},
		{name: "409", script: status(409, ""), want: failed(discovery.CodeRemoteStatus)},
		{name: "429 with Retry-After", script: status(429, "slow down", "Retry-After", "7"), want: failed(discovery.CodeRemoteStatus)},
		{name: "500", script: status(500, "oops"), want: failed(discovery.CodeRemoteStatus)},
		{name: "500 with a JSON-RPC error", script: status(500, rpcError("-32603", "boom", ""), jsonBody...), want: failed(discovery.CodeRemoteStatus)},
		{name: "502", script: status(502, "<html>bad gateway</html>"), want: failed(discovery.CodeRemoteStatus)},
		{name: "503", script: status(503, ""), want: failed(discovery.CodeRemoteStatus)},
		{name: "504", script: status(504, ""), want: failed(discovery.CodeRemoteStatus)},
		{name: "302 to another host", script: status(302, "", "Location", "http://198.51.100.7/mcp"), want: failed(discovery.CodeRedirected)},
		{name: "307", script: status(307, "", "Location", "/elsewhere"), want: failed(discovery.CodeRedirected)},
	}},
	{"Answers", []callRow{
		{name: "no JSON", script: says("oops"), want: broke(discovery.CodeMalformed)},
		{name: "a page", script: status(200, "<html>hello</html>", "Content-Type", "text/html"), want: broke(discovery.CodeMalformed)},
		{name: "nothing", script: says(""), want: broke(discovery.CodeNetworkError)},
		{name: "the answer to another request", script: says(foreign), want: broke(discovery.CodeMalformed)},
		{name: "no id", script: says(`{"jsonrpc":"2.0","result":{"content":[]}}`), want: broke(discovery.CodeMalformed)},
		{name: "neither result nor error", script: says(`{"jsonrpc":"2.0","id":%id}`), want: broke(discovery.CodeMalformed)},
		{name: "a result that is no object", script: says(`{"jsonrpc":"2.0","id":%id,"result":"done"}`), want: broke(discovery.CodeMalformed)},
		{name: "content that is no array", script: says(`{"jsonrpc":"2.0","id":%id,"result":{"content":"done"}}`), want: broke(discovery.CodeMalformed)},
		{name: "64 MiB of JSON", script: pours("application/json", `{"jsonrpc":"2.0","id":%id,"result":"`, 64<<20, `"}`), want: broke(discovery.CodeTooLarge)},
		{name: "64 MiB of one event", script: pours("text/event-stream", `data: {"jsonrpc":"2.0","id":%id,"result":"`, 64<<20, "\"}\n\n"), want: broke(discovery.CodeTooLarge)},
		{name: "the same answer five times", script: streams(strings.Repeat("data: "+good+"\n\n", 5)), want: failed("")},
		{name: "events: progress, foreign ids, a stream that stays open", script: then(streams("data: "+notice+"\n\n", "data: "+foreign+"\n\n", "data: "+good+"\n\n"), hangs), want: failed("")},
		{name: "events with CRLF, byte by byte", script: byteByByte(good), want: failed("")},
	}},
	{"JSON-RPC errors and tool errors", []callRow{
		{name: "invalid params", script: says(rpcError("-32602", "Unknown tool", "")), want: failed(discovery.CodeRemoteMCPError)},
		{name: "internal error", script: says(rpcError("-32603", "kaboom", "")), want: failed(discovery.CodeRemoteMCPError)},
		{name: "an error that says \\\"unauthorized\\\"", script: says(rpcError("-32000", "401 Unauthorized: token expired", "")), want: failed(discovery.CodeRemoteMCPError)},
		{name: "the code 401", script: says(rpcError("401", "Unauthorized", "")), want: failed(discovery.CodeRemoteMCPError)},
		{name: "insufficient_scope in a 200", script: says(rpcError("-32000", "forbidden", `{"code":"insufficient_scope"}`)), want: failed(discovery.CodeRemoteMCPError)},
		{name: "a result with isError", script: says(`{"jsonrpc":"2.0","id":%id,"result":{"isError":true,"content":[{"type":"text","text":"no such city"}]}}`), want: failed(discovery.CodeToolError)},
		{name: "isError that says \\\"unauthorized\\\"", script: says(`{"jsonrpc":"2.0","id":%id,"result":{"isError":true,"content":[{"type":"text","text":"401 unauthorized"}]}}`), want: failed(discovery.CodeToolError)},
		{name: "an error about a session of the tool's own", script: says(rpcError("-32603", "browser session expired", "")), want: failed(discovery.CodeRemoteMCPError)},
	}},
	{"Authorization", []callRow{
		{name: "401", script: status(401, "who are you?"), want: gated(authRequired)},
		{name: "401 with WWW-Authenticate", script: status(401, "", "WWW-Authenticate", `Bearer realm="x"`), want: gated(authRequired)},
		{name: "401 with 8 MiB of body", script: func(w http.ResponseWriter, r *http.Request, req rpcRequest) {
			w.WriteHeader(401)
			pours("", "", 8<<20, "")(w, r, req)
		}, want: gated(authRequired)},
		{name: "401 with a body that does not end", script: then(status(401, "wait"), flush, hangs), want: gated(authRequired)},
		{name: "403", script: status(403, "no"), want: gated(authRequired)},
		{name: "403, insufficient_scope in the header", script: status(403, "", "WWW-Authenticate", `Bearer error="insufficient_scope", scope="repo"`), want: gated(scope)},
		{name: "401, insufficient_scope in the header", script: status(401, "", "WWW-Authenticate", `Bearer error="insufficient_scope"`), want: gated(scope)},
		{name: "403, insufficient_scope as error", script: status(403, `{"error":"insufficient_scope"}`, jsonBody...), want: gated(scope)},
		{name: "403, insufficient_scope as error.code", script: status(403, `{"error":{"code":"insufficient_scope"}}`, jsonBody...), want: gated(scope)},
		{name: "403, insufficient_scope as error.data.code", script: status(403, rpcError("-32000", "forbidden", `{"code":"insufficient_scope"}`), jsonBody...), want: gated(scope)},
		{name: "403, insufficient_scope in prose", script: status(403, scopeProse, jsonBody...), want: gated(authRequired)},
		{name: "a variable that is not set", entry: map[string]any{"url": "http://127.0.0.1:1/mcp", "headers": map[string]string{"Authorization": "Bearer ${NOT_SET_ANYWHERE}"}},
			state: projections.StateBlocked, want: consequence{discovery.CodeMissingCredential, "", "", 0, "refused: " + discovery.CodeMissingCredential}},
	}},
	{"While a session is opened", []callRow{
		{name: "404 at the first attempt since it was configured", first: true, method: "initialize", script: status(404, ""),
			want: consequence{discovery.CodeNotConnected, "", "", 0, "failed: " + discovery.CodeRemoteStatus}},
		{name: "silence at the first attempt since it was configured", first: true, method: "initialize", script: hangs, timeout: brief, want: refused(discovery.CodeDiscovering)},
		{name: "401 at initialize", fresh: true, method: "initialize", script: status(401, ""), want: consequence{authRequired, authRequired, "", 0, "refused: " + authRequired}},
		{name: "403 at initialize", fresh: true, method: "initialize", script: status(403, ""), want: consequence{authRequired, authRequired, "", 0, "refused: " + authRequired}},
		{name: "503 at initialize", fresh: true, method: "initialize", script: status(503, ""), want: unopened(discovery.CodeRemoteStatus)},
		{name: "401 at the initialized notification", fresh: true, method: "notifications/initialized", script: status(401, ""), want: consequence{authRequired, authRequired, "", 0, "refused: " + authRequired}},
		{name: "403 with insufficient_scope at the initialized notification", fresh: true, method: "notifications/initialized",
			script: status(403, "", "WWW-Authenticate", `Bearer error="insufficient_scope"`), want: consequence{scope, scope, "", 0, "refused: " + scope}},
		{name: "503 at the initialized notification", fresh: true, method: "notifications/initialized", script: status(503, ""), want: unopened(discovery.CodeRemoteStatus)},
		{name: "silence at initialize", fresh: true, method: "initialize", script: hangs, timeout: brief, want: consequence{discovery.CodeToolTimeout, "", "", 0, "failed: " + discovery.CodeToolTimeout}},
	}},
	{"Sessions the server has lost", []callRow{
		{name: "404 with a JSON-RPC error", script: status(404, expired, jsonBody...), want: broke(discovery.CodeSessionExpired)},
		{name: "400 that speaks of the session", script: status(400, noSession, jsonBody...), want: broke(discovery.CodeSessionExpired)},
		{name: "a JSON-RPC error that speaks of the session", script: says(expired), want: broke(discovery.CodeSessionExpired)},
	}},
	{"Processes", []callRow{
		{name: "exit in the call", program: &mcptest.Fake{}, tool: "exit", want: broke(discovery.CodeProcessExited)},
		{name: "killed in the call", program: &mcptest.Fake{Fault: mcptest.Kill, Signal: "SIGKILL", At: "tools/call", FailFirst: 2}, want: broke(discovery.CodeProcessExited)},
		{name: "half a line, then exit", program: &mcptest.Fake{Fault: mcptest.HalfLine, At: "tools/call", FailFirst: 2}, want: broke(discovery.CodeProcessExited)},
		{name: "closes stdout and goes on", program: &mcptest.Fake{Fault: mcptest.CloseStdout, At: "tools/call", FailFirst: 2}, want: broke(discovery.CodeProcessExited)},
		{name: "plain lines on stdout", program: &mcptest.Fake{Banner: "ready\n{oops\n[]\n"}, tool: "steps", want: failed("")},
		{name: "silence", program: &mcptest.Fake{}, tool: "wait", timeout: ample, want: broke(discovery.CodeToolTimeout)},
		{name: "the answer to another request", program: &mcptest.Fake{Fault: mcptest.WrongID, At: "tools/call", FailFirst: 2}, timeout: ample, want: broke(discovery.CodeToolTimeout)},
		{name: "neither result nor error", program: &mcptest.Fake{Fault: mcptest.NoResult, At: "tools/call", FailFirst: 2}, want: broke(discovery.CodeMalformed)},
		{name: "a line of 64 MiB", program: &mcptest.Fake{Fault: mcptest.HugeLine, Bytes: 64 << 20, At: "tools/call", FailFirst: 2}, want: broke(discovery.CodeTooLarge)},
		{name: "a JSON-RPC error", program: &mcptest.Fake{}, tool: "refuse", want: failed(discovery.CodeRemoteMCPError)},
		{name: "a result with isError", program: &mcptest.Fake{}, tool: "fail", want: failed(discovery.CodeToolError)},
	}},
	{"Refused before anything is sent", []callRow{
		{name: "disabled", entry: map[string]any{"command": "true", "disabled": true}, state: projections.StateDisabled, want: refused(discovery.CodeDisabled)},
		{name: "malformed entry", entry: map[string]any{"type": "carrier-pigeon"}, state: projections.StateFailed, want: refused(discovery.CodeBlocked)},
		{name: "skipped: its program is missing", entry: map[string]any{"command": "acme-no-such-program"}, state: projections.StateSkipped, want: refused(discovery.CodeSkipped)},
		{name: "set aside by a person", program: &mcptest.Fake{}, before: func(r *running, server string) { r.pin(server) }, want: refused(discovery.CodeSkipped)},
		{name: "no such tool", program: &mcptest.Fake{}, tool: "fly", want: consequence{discovery.CodeToolNotFound, "", "", 0, callable}},
		{name: "a tool the entry denies", program: &mcptest.Fake{}, tool: "steps", want: consequence{discovery.CodeToolNotFound, "", "", 0, callable}},
		{name: "the brake", program: &mcptest.Fake{}, tool: "fail", before: func(r *running, server string) { r.failTenTimes(server) }, want: consequence{discovery.CodeBraked, "", kept, 0, callable}},
	}},
}

func refused(code string) consequence { return consequence{code, "", "", 0, "refused: " + code} }

// withoutTLS returns the address of a server that speaks no TLS, as if it did.
func withoutTLS(t testing.TB) string {
	plain := httptest.NewServer(nil)
	t.Cleanup(plain.Close)
	return strings.Replace(plain.URL, "http:", "https:", 1)
}

// selfSigned returns the address of a server with a certificate of its own making.
func selfSigned(t testing.TB) string {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func flush(w http.ResponseWriter, _ *http.Request, _ rpcRequest) {
	_ = http.NewResponseController(w).Flush()
}
