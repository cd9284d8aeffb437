// Package projections derives what is known about servers from the log of events:
// who is skipped and until when, what is reachable and authorized, which tools
// there are, when a server is due, and why.
//
// A State is a fold: Apply(event) under one rule set, without I/O, clock,
// randomness or map order, so that folding the same events gives the same state
// anywhere. What depends on the present moment is asked, never stored: every
// question takes now. The Engine keeps one State current with a log; the rules
// themselves live in package projections/rules.
//
// The package knows events and rules. It does not know how servers are started,
// nor how answers are shown.
package projections
