package httpapi

import (
	"context"
	"time"

	"mcpledger/discovery"
	"mcpledger/events"
)

// writeState is what a log may tell besides what every events.Log does: why it
// cannot be written at present, nil when it can. A log that does not tell counts as
// writable.
type writeState interface {
	Unavailable() error
}

// Discovery does what the API is asked to do about servers. It alone makes attempts
// and writes the service's own events; the API decides who may ask, and for which
// servers. Its methods take plain values or discovery's own, so that whoever
// implements it need not know this package.
//
// Whatever could not be written is an error that wraps events.ErrUnavailable, and
// nothing was done then.
type Discovery interface {
	// Discover attempts the servers named, whatever their skips and gates say, with
	// the trigger manual, and joins attempts that run already. It returns once the run
	// is recorded and before it ends. The run goes on when ctx ends. One that cannot be
	// begun is an error of package discovery.
	Discover(ctx context.Context, servers []events.ServerName, reason, actor string) (discovery.Begun, error)

	// Reload reads the config files anew and puts them in force. Files that cannot be
	// used give a *config.ProblemError, and then the last good config stays in force.
	Reload(ctx context.Context, actor string) (discovery.Reloaded, error)

	// Pin sets a configured server aside until a time, zero for until cleared.
	Pin(ctx context.Context, server events.ServerName, until time.Time, reason, actor string) error

	// Clear ends the pins and skips of configured servers, all or none.
	Clear(ctx context.Context, servers []events.ServerName, reason, actor string) error

	// RecordActivation records that a rule set is in force from here on.
	RecordActivation(ctx context.Context, d events.RulesActivated, actor string) error

	// Call calls a tool once, or says why it did not. Its outcome is recorded when it
	// returns, also when ctx ends meanwhile, which cancels the call at the server. The
	// error is one of package discovery's or wraps events.ErrUnavailable.
	Call(ctx context.Context, c discovery.Call) (discovery.CallOutcome, error)
}
