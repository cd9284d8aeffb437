package events

// Phase is how far an attempt or a call had come when it failed.
type Phase string

// The phases in order. PhaseConfig is before anything was started.
const (
	PhaseConfig      Phase = "config"
	PhaseSpawn       Phase = "spawn"
	PhaseConnect     Phase = "connect"
	PhaseHandshake   Phase = "handshake"   // server/discover or initialize
	PhaseInitialized Phase = "initialized" // the initialized notification
	PhaseListTools   Phase = "list_tools"
	PhaseCallTool    Phase = "call_tool"
)

// Transport is how a server is reached.
type Transport string

// The transports. TransportSSE is the HTTP+SSE transport of 2024-11-05;
// TransportHTTP is streamable HTTP.
const (
	TransportStdio Transport = "stdio"
	TransportHTTP  Transport = "http"
	TransportSSE   Transport = "sse"
)

// ErrorKind is the structured kind of a failure, told by types and numbers at the
// place where it was seen, never by matching text. Empty when nothing structured
// was seen.
type ErrorKind string

// The kinds of error.
const (
	KindExecNotFound   ErrorKind = "exec_not_found" // no such program
	KindPermission     ErrorKind = "permission"     // the program may not be run
	KindExit           ErrorKind = "exit"           // the process ended with an exit code
	KindSignal         ErrorKind = "signal"         // the process was ended by a signal
	KindDNS            ErrorKind = "dns"
	KindRefused        ErrorKind = "refused"
	KindReset          ErrorKind = "reset"
	KindUnreachable    ErrorKind = "unreachable"
	KindTLS            ErrorKind = "tls"
	KindTimeoutConnect ErrorKind = "timeout_connect"
	KindTimeoutHeaders ErrorKind = "timeout_headers"
	KindTimeoutBody    ErrorKind = "timeout_body"
	KindTimeoutStart   ErrorKind = "timeout_start" // a process did not answer within its budget
	KindEOF            ErrorKind = "eof"           // the stream ended without a reply
	KindMalformed      ErrorKind = "malformed"
	KindOversized      ErrorKind = "oversized"
	KindRedirect       ErrorKind = "redirect"
	KindHTTPStatus     ErrorKind = "http_status"
	KindJSONRPC        ErrorKind = "jsonrpc"    // a JSON-RPC error came back
	KindToolError      ErrorKind = "tool_error" // a result with isError
	KindCancelled      ErrorKind = "cancelled"
)

// EndedBy says who ended a process or a stream first. What comes after our own
// close is no crash.
type EndedBy string

// Who ended it.
const (
	EndedByServer EndedBy = "server"
	EndedByUs     EndedBy = "us"
)

// Bounds on the texts of an Evidence, in bytes. Whoever takes evidence cuts to
// them after redaction.
const (
	MaxErrorBytes      = 2 << 10
	MaxStderrHeadBytes = 2 << 10
	MaxStderrTailBytes = 8 << 10
	MaxBodyBytes       = 2 << 10
	MaxJSONRPCBytes    = 2 << 10 // message and data, each
	MaxJunkBytes       = 512
	MaxHeaderBytes     = 1 << 10 // one header's value
)

// Evidence is what was seen of one failure, over any transport. It is raw, but
// secrets are masked, control codes removed and long texts cut; a cut text ends in
// "…". A field that was not seen is empty. It holds no verdict.
//
// Source: discovery/upstream for our own attempts and calls, the reporter for
// reported ones, who may know no more than Error and StderrTail.
type Evidence struct {
	Phase     Phase     `json:"phase,omitempty"`
	Transport Transport `json:"transport,omitempty"`
	// Error is the client's text for the failure. Clients lose and falsify much in
	// it, so it comes last.
	Error     string    `json:"error,omitempty"`
	ErrorKind ErrorKind `json:"error_kind,omitempty"`
	// Command is argv[0], and the package that a runner such as npx runs after it:
	// "npx @acme/weather".
	Command string `json:"command,omitempty"`

	ExitCode *int    `json:"exit_code,omitempty"` // nil: no exit was seen
	Signal   string  `json:"signal,omitempty"`    // such as "SIGKILL"
	EndedBy  EndedBy `json:"ended_by,omitempty"`

	// StderrTail is the last 8 KiB of stderr; StderrHead is the first 2 KiB, and is
	// empty when StderrTail holds all there was.
	StderrHead  string `json:"stderr_head,omitempty"`
	StderrTail  string `json:"stderr_tail,omitempty"`
	StderrBytes int64  `json:"stderr_bytes,omitempty"` // all that came, kept or not
	// StderrLastMS is how long before the end the server last wrote to stderr, in
	// milliseconds; nil if it never did.
	StderrLastMS *int64 `json:"stderr_last_ms,omitempty"`
	// StdoutJunk is what came on stdout that is no JSON-RPC message.
	StdoutJunk *Junk `json:"stdout_junk,omitempty"`

	HTTPStatus      int    `json:"http_status,omitempty"` // 0: no response came
	WWWAuthenticate string `json:"www_authenticate,omitempty"`
	RetryAfterMS    int64  `json:"retry_after_ms,omitempty"`
	Location        string `json:"location,omitempty"` // where a redirect pointed; never followed
	ContentType     string `json:"content_type,omitempty"`
	BodyExcerpt     string `json:"body_excerpt,omitempty"`

	JSONRPCCode    *int   `json:"jsonrpc_code,omitempty"` // nil: no JSON-RPC error came
	JSONRPCMessage string `json:"jsonrpc_message,omitempty"`
	JSONRPCData    string `json:"jsonrpc_data,omitempty"`

	// SessionSent says that the request carried a session id; Dispatched that the
	// request may have reached the server.
	SessionSent bool `json:"session_sent,omitempty"`
	Dispatched  bool `json:"dispatched,omitempty"`

	ProtocolVersion string `json:"protocol_version,omitempty"`
	ElapsedMS       int64  `json:"elapsed_ms,omitempty"`
	LimitMS         int64  `json:"limit_ms,omitempty"` // the budget that applied
}

// Junk counts lines on stdout that are no JSON-RPC message.
type Junk struct {
	Count   int64  `json:"count"` // lines
	Excerpt string `json:"excerpt,omitempty"`
}
