package upstream

import (
	"context"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/discovery/clock"
	"mcpledger/discovery/config"
	"mcpledger/events"
)

// DefaultMaxMessageBytes bounds one message from a server where a Target sets no
// bound: 16 MiB.
const DefaultMaxMessageBytes = 16 << 20

// Target says what to start or dial, and within which limits. Values are used as
// they are: nothing is expanded or inherited here.
type Target struct {
	Name      events.ServerName
	Transport events.Transport

	// Command is looked up on the PATH of Env unless it holds a slash. Env is the
	// whole environment (see Environ), Dir the working directory, empty for ours.
	Command string
	Args    []string
	Env     []string
	Dir     string
	// Label is the command as evidence shows it, such as "npx @acme/weather".
	Label string

	// URL and Headers are for http and sse. The headers are sent to the URL's own
	// scheme, host and port and to no other.
	URL     string
	Headers map[string]string

	// Era is the protocol era to begin with. A server that refuses it is asked in the
	// other one.
	Era    Era
	Budget Budget
	// MaxMessageBytes bounds one message; 0 means DefaultMaxMessageBytes.
	MaxMessageBytes int64
	// Redactor masks secrets in whatever becomes evidence; nil masks
	// known shapes of tokens alone.
	Redactor *config.Redactor
	// Client is how we introduce ourselves.
	Client ClientInfo
	// Now is the clock that elapsed times are read from; required.
	Now func() time.Time
	// At is what limits wait by; nil: Now runs as the wall clock does.
	At clock.At
	// OnToolsChanged is called when the server says that its list of tools changed,
	// from a goroutine of its own; calls do not overlap, and notices that come during
	// one become one more. Nil: the server is not asked to tell.
	OnToolsChanged func()
	// OnNotice is called for the other notices that are passed on (see Notice), in
	// order, where messages are read: it must not block. Nil drops them.
	OnNotice func(Notice)
}

// ClientInfo names this client to servers.
type ClientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Budget limits how long a server may take. Zero fields do not limit.
type Budget struct {
	// Total is for Open as a whole, and Silence for how long a process may neither
	// answer the handshake nor write anything to stdout or stderr.
	Total, Silence time.Duration
	// List is for one ListTools.
	List time.Duration
}

// Era is a family of protocol revisions with one way to begin.
type Era string

// The eras.
const (
	EraAuto   Era = ""               // not known yet; begun like EraLegacy
	EraLegacy Era = config.EraLegacy // initialize, up to 2025-11-25
	EraModern Era = config.EraModern // server/discover, from 2026-07-28
)

// EraOf returns the era of a protocol revision; EraAuto for none.
func EraOf(version string) Era {
	switch {
	case version == "":
		return EraAuto
	case mcp.IsModernProtocol(version):
		return EraModern
	}
	return EraLegacy
}

// clock returns what limits wait by.
func (t Target) clock() clock.At {
	if t.At != nil {
		return t.At
	}
	return clock.Running(t.Now)
}

// after calls f once d has passed.
func (t Target) after(d time.Duration, f func()) clock.Timer { return t.clock()(t.Now().Add(d), f) }

// withLimit returns ctx, ended after limit if that is positive.
func (t Target) withLimit(ctx context.Context, limit time.Duration, what string) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return t.clock().Until(ctx, t.Now().Add(limit), &limitError{limit: limit, what: what})
}

func (t Target) maxMessage() int64 {
	if t.MaxMessageBytes > 0 {
		return t.MaxMessageBytes
	}
	return DefaultMaxMessageBytes
}
