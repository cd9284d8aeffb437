package events

import (
	"encoding/json"
	"time"
)

// Data is the payload of an event. Each type of event has one payload type, held
// by value; Unknown stands for the types this version does not know.
type Data interface {
	// EventType returns the type of event the payload belongs to.
	EventType() Type
}

// The types of event. The service is the source of all of them, but for log.imported,
// which no service is there to write. A host that has an MCP client of its own may
// report attempts and calls: discovery.*, but for discovery.skipped, and toolcall.*.
const (
	TypeServiceStarted        Type = "service.started"
	TypeServiceStopped        Type = "service.stopped"
	TypeConfigLoaded          Type = "config.loaded"
	TypeConfigRejected        Type = "config.rejected"
	TypeServerConfigured      Type = "server.configured"
	TypeServerRemoved         Type = "server.removed"
	TypeDiscoveryRunStarted   Type = "discovery.run_started"
	TypeDiscoveryRunCompleted Type = "discovery.run_completed"
	TypeDiscoveryStarted      Type = "discovery.started"
	TypeDiscoverySucceeded    Type = "discovery.succeeded"
	TypeDiscoveryFailed       Type = "discovery.failed"
	TypeDiscoveryCancelled    Type = "discovery.cancelled"
	TypeDiscoveryAbandoned    Type = "discovery.abandoned"
	TypeDiscoverySkipped      Type = "discovery.skipped"
	TypeCatalogueChanged      Type = "catalogue.changed"
	TypeToolCallStarted       Type = "toolcall.started"
	TypeToolCallSucceeded     Type = "toolcall.succeeded"
	TypeToolCallFailed        Type = "toolcall.failed"
	TypeToolCallAbandoned     Type = "toolcall.abandoned"
	TypeToolCallRefused       Type = "toolcall.refused"
	TypeSessionOpened         Type = "session.opened"
	TypeSessionDiscarded      Type = "session.discarded"
	TypeSkipPinned            Type = "skip.pinned"
	TypeSkipCleared           Type = "skip.cleared"
	TypeSkipRequalified       Type = "skip.requalified"
	TypeRulesActivated        Type = "rules.activated"
	TypeLogImported           Type = "log.imported"
)

// Unknown is a payload of a type this version does not know. It is carried, never
// dropped; folds count how many they passed over.
type Unknown struct {
	Type Type
	JSON json.RawMessage
}

// EventType returns the type as recorded.
func (d Unknown) EventType() Type { return d.Type }

// MarshalJSON returns the payload as recorded.
func (d Unknown) MarshalJSON() ([]byte, error) { return d.JSON, nil }

// ServiceStarted records, once per start, that the service took hold of the log.
// Everything that was unfinished before it is abandoned.
type ServiceStarted struct {
	Version  string `json:"version"`
	Instance string `json:"instance"` // same as the event's source
	PID      int    `json:"pid"`
}

// ServiceStopped records an orderly stop.
type ServiceStopped struct {
	Reason string `json:"reason,omitempty"` // such as "SIGTERM"
}

// ConfigLoaded records that a config was read and is in force.
type ConfigLoaded struct {
	Files    []string        `json:"files"`
	Servers  int             `json:"servers"`
	Warnings []ConfigProblem `json:"warnings,omitempty"`
	// Faults are what is wrong with single entries, where it stands in these files.
	// An entry whose name no server can have is told here alone.
	Faults []ConfigProblem `json:"faults,omitempty"`
}

// ConfigRejected records a config that could not be used; the last good one stays
// in force.
type ConfigRejected struct {
	ConfigProblem
}

// ConfigProblem says what is wrong where in a config file.
type ConfigProblem struct {
	File   string     `json:"file"`
	Line   int        `json:"line,omitempty"`   // from 1; 0 when unknown
	Column int        `json:"column,omitempty"` // from 1, in bytes; 0 when unknown
	Server ServerName `json:"server,omitempty"`
	Detail string     `json:"detail"`
}

// Change says what differs in a server's entry from the one in force before.
type Change string

// The changes, the most consequential that applies.
const (
	ChangeAdded    Change = "added"    // a server that was not configured
	ChangeKey      Change = "key"      // the entry: a new connection
	ChangeValues   Change = "values"   // what variables or files expand to
	ChangeSettings Change = "settings" // description, disabled, policy
)

// ServerConfigured records a server's entry, at every change of it, with all that
// folds need of it. The event's config key is the entry's.
type ServerConfigured struct {
	Change      Change          `json:"change"`
	Transport   Transport       `json:"transport,omitempty"`
	Config      json.RawMessage `json:"config,omitempty"` // the entry as written, secrets masked
	Description string          `json:"description,omitempty"`
	Disabled    bool            `json:"disabled,omitempty"`
	Settings    Settings        `json:"settings,omitzero"`
	SourceFile  string          `json:"source_file,omitempty"`
	// Problem is why the server cannot be attempted under this entry, if it cannot.
	Problem *EntryProblem `json:"problem,omitempty"`
}

// Settings are the parts of an entry that folds need and that do not change the
// connection.
type Settings struct {
	Skip         SkipSettings `json:"skip,omitzero"`
	Tools        ToolFilter   `json:"tools,omitzero"`
	Session      string       `json:"session,omitempty"` // SessionShared (default) or SessionPerClient
	MaxResult    int64        `json:"max_result,omitempty"`
	RecordCalls  bool         `json:"record_calls,omitempty"`
	RequiresAuth bool         `json:"requires_oauth,omitempty"` // the entry has an oauth section
}

// Whose the sessions of a server are: all clients share one, or each has its own.
const (
	SessionShared    = "shared"
	SessionPerClient = "per_client"
)

// SkipSettings override the rule set's policy for one server.
type SkipSettings struct {
	Never bool    `json:"never,omitempty"`
	After int     `json:"after,omitempty"` // runs; 0: the rule's
	TTLMS []int64 `json:"ttl_ms,omitempty"`
}

// ToolFilter limits which tools are offered. Patterns are path.Match globs on tool
// names; deny wins; an empty allow list allows all.
type ToolFilter struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// EntryProblem is a fault of one entry, found without starting anything.
type EntryProblem struct {
	// Code is "variable_unset" (credentials are missing) or "malformed".
	Code   string   `json:"code"`
	Detail string   `json:"detail"`
	Names  []string `json:"names,omitempty"` // the variables that are not set
	// Line and Column are where in the source file the fault is, from 1, the column in
	// bytes; 0 when unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// The codes of an EntryProblem.
const (
	ProblemVariableUnset = "variable_unset"
	ProblemMalformed     = "malformed"
)

// ServerRemoved records that no entry configures the server any more.
type ServerRemoved struct{}

// Trigger says why an attempt was made.
type Trigger string

// The triggers. Failures of TriggerManual, TriggerOnUse and TriggerVerify are not
// counted towards a skip; their successes clear it.
const (
	TriggerStartup       Trigger = "startup"
	TriggerConfigChanged Trigger = "config_changed"
	TriggerRetry         Trigger = "retry"        // its time after a failure has come
	TriggerSkipExpired   Trigger = "skip_expired" // the probe at a skip's end
	TriggerRequalified   Trigger = "requalified"  // a local fact changed
	TriggerCheck         Trigger = "check"        // a look at a server known to answer, or gated
	TriggerVerify        Trigger = "verify"       // --verify-on-start
	TriggerRefresh       Trigger = "refresh"      // the server said its tools changed
	TriggerManual        Trigger = "manual"
	TriggerOnUse         Trigger = "on_use" // a call named a tool of a skipped server
)

// DiscoveryRunStarted records the beginning of one pass over due servers.
type DiscoveryRunStarted struct {
	Trigger Trigger      `json:"trigger"`
	Servers []ServerName `json:"servers"`
	Reason  string       `json:"reason,omitempty"` // the person's, for a manual run
}

// DiscoveryRunCompleted records the end of a run; a run without it was cut short.
type DiscoveryRunCompleted struct {
	Succeeded int   `json:"succeeded"` // servers
	Failed    int   `json:"failed"`
	Cancelled int   `json:"cancelled"`
	ElapsedMS int64 `json:"elapsed_ms"`
}

// DiscoveryStarted records that an attempt is about to be made. It is durable
// before anything is spawned or dialled.
type DiscoveryStarted struct {
	Attempt int     `json:"attempt"` // place in its run for this server, from 1
	Trigger Trigger `json:"trigger"`
	LimitMS int64   `json:"limit_ms,omitempty"` // the budget in all
	// Facts are the local facts a skip requalifies on.
	Facts []LocalFact `json:"facts,omitempty"`
}

// LocalFact is the state of one file the start of a server rests on: the resolved
// executable, and each argument that is an existing file.
type LocalFact struct {
	Path  string    `json:"path"` // absolute; for an executable not found, its name
	Found bool      `json:"found"`
	Size  int64     `json:"size,omitempty"`
	MTime time.Time `json:"mtime,omitzero"`
}

// DiscoverySucceeded records that a server answered the handshake and listed its
// tools.
type DiscoverySucceeded struct {
	ProtocolVersion string          `json:"protocol_version"`
	ServerInfo      ServerInfo      `json:"server_info"`
	Capabilities    json.RawMessage `json:"capabilities,omitempty"`
	Instructions    string          `json:"instructions,omitempty"`
	CatalogueHash   string          `json:"catalogue_hash"`
	ToolCount       int             `json:"tool_count"`
	Stderr          string          `json:"stderr,omitempty"` // its tail, if it wrote any
	StdoutJunk      *Junk           `json:"stdout_junk,omitempty"`
	ElapsedMS       int64           `json:"elapsed_ms"`
}

// ServerInfo is what a server says of itself in the handshake.
type ServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Title   string `json:"title,omitempty"`
}

// DiscoveryFailed records that an attempt gave no list of tools.
type DiscoveryFailed struct {
	Evidence Evidence `json:"evidence"`
}

// DiscoveryCancelled records an attempt that we stopped.
type DiscoveryCancelled struct {
	Reason    string `json:"reason"` // "shutdown", "config_changed" or a person's
	ElapsedMS int64  `json:"elapsed_ms"`
}

// DiscoveryAbandoned records an attempt that was found unfinished at a start: the
// service ended in the midst of it.
type DiscoveryAbandoned struct{}

// DiscoverySkipped records a due attempt that was not made, once per start and once
// per skip. It is a decision, so it names what it rests on.
type DiscoverySkipped struct {
	Reason    string    `json:"reason"`             // auth, identical_failures, any_failures, pinned
	RuleID    string    `json:"rule_id,omitempty"`  // empty for a pin
	RulesHash string    `json:"rules_hash"`         // of the set in force
	Since     time.Time `json:"since"`              // when the skip began
	Until     time.Time `json:"until,omitzero"`     // zero: no end
	Failures  []string  `json:"failures,omitempty"` // ids of the events it rests on
}

// CatalogueChanged records a server's list of tools, only when it differs from the
// one before. It stands in one batch with its discovery.succeeded.
type CatalogueChanged struct {
	// Hash is that of the tools in canonical form: sorted by name, keys sorted.
	Hash string `json:"hash"`
	// Added, Removed and Changed are tool names, sorted, against the catalogue that
	// was in force for the same entry.
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Changed []string `json:"changed,omitempty"`
	// Tools is the array of tools as the server sent it, over all pages.
	Tools json.RawMessage `json:"tools"`
}

// ToolCallStarted records that a tools/call is about to be sent.
type ToolCallStarted struct {
	Tool          string `json:"tool"`
	ArgumentsHash string `json:"arguments_hash,omitempty"` // keyed; equal arguments have equal hashes
	ArgumentsSize int64  `json:"arguments_size"`           // bytes
	Caller        string `json:"caller,omitempty"`
	Generation    int64  `json:"generation,omitempty"` // of the session it is sent on
	Arguments     string `json:"arguments,omitempty"`  // only where recording is on
}

// ToolCallSucceeded records a result without isError.
type ToolCallSucceeded struct {
	Tool       string `json:"tool"`
	ElapsedMS  int64  `json:"elapsed_ms"`
	ResultSize int64  `json:"result_size"` // bytes
	Generation int64  `json:"generation,omitempty"`
	Result     string `json:"result,omitempty"` // only where recording is on
}

// ToolCallFailed records a call that gave no usable result, or one with isError. It
// holds what was seen and no verdict.
type ToolCallFailed struct {
	Tool       string   `json:"tool"`
	ElapsedMS  int64    `json:"elapsed_ms"`
	Dispatched bool     `json:"dispatched"` // it may have reached the server
	ResultSize int64    `json:"result_size,omitempty"`
	IsError    bool     `json:"is_error,omitempty"`
	Generation int64    `json:"generation,omitempty"`
	Evidence   Evidence `json:"evidence"`
}

// ToolCallAbandoned records a call that was found unfinished at a start, or whose
// outcome could not be recorded. Whether the server acted on it is not known.
type ToolCallAbandoned struct {
	Tool string `json:"tool"`
}

// ToolCallRefused records a call that was not sent. No toolcall.started goes with
// it. Reason is auth_required, insufficient_scope, missing_credentials, skipped,
// braked, blocked, discovering, tool_not_found, cancelled, busy, disabled or
// not_connected.
type ToolCallRefused struct {
	Tool     string    `json:"tool"`
	Reason   string    `json:"reason"`
	Detail   string    `json:"detail"`
	Caller   string    `json:"caller,omitempty"`
	Since    time.Time `json:"since,omitzero"`      // when what holds calls back began
	ClearsOn []string  `json:"clears_on,omitempty"` // what ends that: expiry, config_change, manual, requalify or successful_check
	Evidence *Evidence `json:"evidence,omitempty"`
}

// SessionOpened records a session that calls are sent on.
type SessionOpened struct {
	Generation      int64  `json:"generation"` // from 1 per connection and service start
	ProtocolVersion string `json:"protocol_version"`
	ProcessGroup    int    `json:"process_group,omitempty"`
	Client          string `json:"client,omitempty"` // for a session of one client
	ElapsedMS       int64  `json:"elapsed_ms"`
}

// SessionDiscarded records the end of a session. Reason is session_expired, the kind of
// the error that ended it, idle, client_gone, config_changed or shutdown.
type SessionDiscarded struct {
	Generation int64     `json:"generation"`
	Reason     string    `json:"reason"`
	Evidence   *Evidence `json:"evidence,omitempty"`
}

// SkipPinned records that a person set a server aside.
type SkipPinned struct {
	Reason string    `json:"reason"`
	Until  time.Time `json:"until,omitzero"` // zero: until cleared
}

// SkipCleared records that a person ended a skip or a pin; the streak starts at
// zero.
type SkipCleared struct {
	Reason string `json:"reason"`
}

// SkipRequalified records that a skip ended early since a local fact changed.
type SkipRequalified struct {
	Reason string    `json:"reason"`
	Before LocalFact `json:"before"`
	After  LocalFact `json:"after"`
}

// RulesActivated records the rule set in force from here on, with its text.
type RulesActivated struct {
	Set  string `json:"set"`  // its name
	Hash string `json:"hash"` // of the text
	Text string `json:"text"` // YAML
}

// LogImported records that the events before it came from an export.
type LogImported struct {
	From  string   `json:"from"`  // such as the export's file
	First Sequence `json:"first"` // 0 for an export of no events
	Last  Sequence `json:"last"`
	Hash  string   `json:"hash"` // of the last imported event
}

// EventType returns TypeServiceStarted.
func (ServiceStarted) EventType() Type { return TypeServiceStarted }

// EventType returns TypeServiceStopped.
func (ServiceStopped) EventType() Type { return TypeServiceStopped }

// EventType returns TypeConfigLoaded.
func (ConfigLoaded) EventType() Type { return TypeConfigLoaded }

// EventType returns TypeConfigRejected.
func (ConfigRejected) EventType() Type { return TypeConfigRejected }

// EventType returns TypeServerConfigured.
func (ServerConfigured) EventType() Type { return TypeServerConfigured }

// EventType returns TypeServerRemoved.
func (ServerRemoved) EventType() Type { return TypeServerRemoved }

// EventType returns TypeDiscoveryRunStarted.
func (DiscoveryRunStarted) EventType() Type { return TypeDiscoveryRunStarted }

// EventType returns TypeDiscoveryRunCompleted.
func (DiscoveryRunCompleted) EventType() Type { return TypeDiscoveryRunCompleted }

// EventType returns TypeDiscoveryStarted.
func (DiscoveryStarted) EventType() Type { return TypeDiscoveryStarted }

// EventType returns TypeDiscoverySucceeded.
func (DiscoverySucceeded) EventType() Type { return TypeDiscoverySucceeded }

// EventType returns TypeDiscoveryFailed.
func (DiscoveryFailed) EventType() Type { return TypeDiscoveryFailed }

// EventType returns TypeDiscoveryCancelled.
func (DiscoveryCancelled) EventType() Type { return TypeDiscoveryCancelled }

// EventType returns TypeDiscoveryAbandoned.
func (DiscoveryAbandoned) EventType() Type { return TypeDiscoveryAbandoned }

// EventType returns TypeDiscoverySkipped.
func (DiscoverySkipped) EventType() Type { return TypeDiscoverySkipped }

// EventType returns TypeCatalogueChanged.
func (CatalogueChanged) EventType() Type { return TypeCatalogueChanged }

// EventType returns TypeToolCallStarted.
func (ToolCallStarted) EventType() Type { return TypeToolCallStarted }

// EventType returns TypeToolCallSucceeded.
func (ToolCallSucceeded) EventType() Type { return TypeToolCallSucceeded }

// EventType returns TypeToolCallFailed.
func (ToolCallFailed) EventType() Type { return TypeToolCallFailed }

// EventType returns TypeToolCallAbandoned.
func (ToolCallAbandoned) EventType() Type { return TypeToolCallAbandoned }

// EventType returns TypeToolCallRefused.
func (ToolCallRefused) EventType() Type { return TypeToolCallRefused }

// EventType returns TypeSessionOpened.
func (SessionOpened) EventType() Type { return TypeSessionOpened }

// EventType returns TypeSessionDiscarded.
func (SessionDiscarded) EventType() Type { return TypeSessionDiscarded }

// EventType returns TypeSkipPinned.
func (SkipPinned) EventType() Type { return TypeSkipPinned }

// EventType returns TypeSkipCleared.
func (SkipCleared) EventType() Type { return TypeSkipCleared }

// EventType returns TypeSkipRequalified.
func (SkipRequalified) EventType() Type { return TypeSkipRequalified }

// EventType returns TypeRulesActivated.
func (RulesActivated) EventType() Type { return TypeRulesActivated }

// EventType returns TypeLogImported.
func (LogImported) EventType() Type { return TypeLogImported }
