package gateway

import (
	"fmt"
	"time"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// absence says in our words why nothing of a server is offered, empty for one whose tools
// are. A server's own text is no part of it: clients show it to models as ours.
func absence(v projections.Server) string {
	switch v.State {
	case projections.StateReady, projections.StateUnreachable:
		return ""
	case projections.StateDisabled:
		return sentences[discovery.CodeDisabled]
	case projections.StateBlocked:
		if v.Gate == nil {
			return sentences[discovery.CodeMissingCredential] + besides(v)
		}
		return gateSentences[v.Gate.Kind] + besides(v)
	case projections.StateSkipped:
		return skipSentence(v.Skip)
	case projections.StateDiscovering:
		return sentences[discovery.CodeDiscovering]
	case projections.StateFailed:
		if v.Entry.Problem != nil {
			return sentences[discovery.CodeBlocked] + besides(v)
		}
	}
	return "The server failed when it was last tried."
}

var gateSentences = map[rules.Gate]string{
	rules.GateAuthRequired:       sentences[discovery.CodeAuthRequired],
	rules.GateInsufficientScope:  sentences[discovery.CodeInsufficientScope],
	rules.GateCredentialsMissing: sentences[discovery.CodeMissingCredential],
}

// besides says of a server that is missing for another reason that it is pinned, too.
func besides(v projections.Server) string {
	if v.Pinned() && v.State != projections.StateSkipped {
		return " Besides, an operator has set it aside."
	}
	return ""
}

func skipSentence(s *projections.Skip) string {
	switch {
	case s.Reason == projections.SkipPinned:
		return "An operator has set the server aside."
	case s.Reason == projections.SkipAuth:
		return "The server is skipped since it wants a login or another credential."
	case s.Failures == 1:
		return "The server is skipped since it failed in a way that does not pass by itself."
	case s.Reason == projections.SkipIdenticalFailures && !s.Mixed:
		return "The server is skipped since it kept failing in the same way."
	}
	return "The server is skipped since it kept failing."
}

// remedies say what would bring a server back.
var remedies = map[projections.Needs]string{
	projections.NeedsWait:       "Nothing has to be done: it is tried again by itself.",
	projections.NeedsLogin:      "Somebody has to log in to it and put the credential into its entry in the config.",
	projections.NeedsCredential: "Somebody has to put a valid credential into its entry in the config.",
	projections.NeedsConfig:     "Somebody has to correct its entry in the config.",
	projections.NeedsDependency: "Somebody has to install what it needs.",
	projections.NeedsOperator:   "Somebody has to find out what is wrong with it.",
}

// remedy says what would bring a server back that is not offered, and who tells more.
func (v *view) remedy(s projections.Server) string {
	var what string
	switch {
	case s.State == projections.StateDisabled:
		what = "Whoever keeps the config can enable it."
	case s.Pinned():
		what = "The operator can take that back."
	case s.Authorization == projections.CredentialsMissing:
		what = "Somebody has to set it, in the service's environment or in the server's entry."
	default:
		what = remedies[s.Needs]
	}
	if !s.NextAttempt.IsZero() {
		what += " The next attempt is at " + s.NextAttempt.UTC().Format(time.RFC3339) + "."
	}
	if v.single {
		return what + fmt.Sprintf(" \"mcpledger why %s\" tells a person more.", s.Name)
	}
	return what + " " + OwnPrefix + "why tells more."
}

// describe returns what initialize and server/discover say about the address. Where one
// server is offered as it is, that is nothing unless it is missing: its tools cannot be
// seen to be, and none of ours stand beside them.
func (v *view) describe() string {
	if !v.single {
		return instructions
	}
	one, known := v.gateway.serverNow(v.only[0])
	why := absence(one)
	if !known || why == "" {
		return ""
	}
	return fmt.Sprintf("mcpledger stands here for the MCP server %q and has nothing to offer of it now. %s %s "+
		"As soon as it is back, the list of tools is announced to have changed.", one.Name, why, v.remedy(one))
}

// serverNow returns how a server stands; false where it is not configured or the folds
// have not caught up.
func (g *Gateway) serverNow(name events.ServerName) (v projections.Server, known bool) {
	standing, err := g.fleet.now()
	if err != nil {
		return v, false
	}
	return standing.server(name)
}
