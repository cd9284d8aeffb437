package projections

import (
	"mcpledger/events"
	"mcpledger/projections/rules"
)

// Reachability says whether a server answers. Only discovery attempts move it.
type Reachability string

// The values of Reachability.
const (
	ReachabilityUnknown Reachability = "unknown"
	Reachable           Reachability = "reachable"
	Unreachable         Reachability = "unreachable"
)

// Authorization says whether a server lets us in.
type Authorization string

// The values of Authorization.
const (
	AuthorizationUnknown Authorization = "unknown"
	Authorized           Authorization = "authorized"
	AuthRequired         Authorization = "auth_required"
	InsufficientScope    Authorization = "insufficient_scope"
	CredentialsMissing   Authorization = "credentials_missing"
)

// axes moves reachability and authorization as a failed attempt shows them: a
// server that asks for a login answers, so it is reachable.
func axes(r Reachability, a Authorization, ev events.Evidence, v rules.Verdict) (Reachability, Authorization) {
	switch v.Gate {
	case rules.GateAuthRequired:
		return Reachable, AuthRequired
	case rules.GateInsufficientScope:
		return Reachable, InsufficientScope
	case rules.GateCredentialsMissing:
		return r, CredentialsMissing
	case rules.GateNone:
	}
	switch v.Class {
	case rules.ClassAuth:
		a = AuthRequired
	case rules.ClassCredentialsMissing:
		a = CredentialsMissing
	default:
		if ev.EndedBy == events.EndedByUs && ev.ErrorKind == events.KindCancelled {
			return r, a
		}
	}
	return Unreachable, a
}
