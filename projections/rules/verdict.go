package rules

import (
	"time"
)

// Class says what kind of thing failed.
type Class string

// The classes.
const (
	ClassAuth               Class = "auth"
	ClassCredentialsMissing Class = "credentials_missing"
	ClassDependency         Class = "dependency"
	ClassCommandNotFound    Class = "command_not_found"
	ClassConfig             Class = "config"
	ClassProtocol           Class = "protocol"
	ClassResource           Class = "resource"
	ClassNetwork            Class = "network"
	ClassTimeout            Class = "timeout"
	ClassRateLimit          Class = "rate_limit"
	ClassServerError        Class = "server_error"
	ClassToolError          Class = "tool_error"
	ClassUnknown            Class = "unknown"
)

// Disposition says what trying again can do. It is no function of the class.
type Disposition string

// The dispositions. DispositionIgnore marks what is no failure of the server at
// all, such as our own close.
const (
	DispositionAuth          Disposition = "auth"          // a login, consent, renewal or payment cures it
	DispositionDeterministic Disposition = "deterministic" // it fails the same way until something changes
	DispositionTransient     Disposition = "transient"     // it may pass by itself
	DispositionIgnore        Disposition = "ignore"
)

// Gate is the kind of gate a rule sets on a connection.
type Gate string

// The gates. GateNone lets calls through.
const (
	GateNone               Gate = ""
	GateAuthRequired       Gate = "auth_required"
	GateInsufficientScope  Gate = "insufficient_scope"
	GateCredentialsMissing Gate = "credentials_missing"
)

// Verdict is what a rule set makes of one failure. It is a judgment: the same
// evidence under another set may give another one.
type Verdict struct {
	Class       Class
	Disposition Disposition
	Rule        string // the rule's id
	// Signature is equal for failures of the same cause: "s_" and 16 base32 characters.
	Signature string
	// Text is the decisive text: the few words that say what failed, on one line, at
	// most 200 characters.
	Text string
	// Hint says in one sentence what a person should do, names filled in; may be empty.
	Hint   string
	Policy SkipPolicy
	Retry  bool // try again inside the same run
	Gate   Gate
}

// SkipPolicy says when identical failures make a skip and how long it lasts. The
// zero policy never skips.
type SkipPolicy struct {
	After   int           // identical runs in a row; 0: never
	MinSpan time.Duration // from the first to the last of them
	// TTL is the ladder of durations: the first skip lasts TTL[0], each renewal one
	// rung more, the last rung repeats.
	TTL       []time.Duration
	Requalify bool // a changed local fact ends it early; true for the default policies of stdio servers
}

// Rung returns the duration of the skip at rung n, from 0.
func (p SkipPolicy) Rung(n int) time.Duration {
	if len(p.TTL) == 0 {
		return 0
	}
	return p.TTL[min(n, len(p.TTL)-1)]
}
