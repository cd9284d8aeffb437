package gateway

import (
	"fmt"
	"strings"
	"time"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// Codes that are not a call's own (see discovery.CallFailure).
const (
	codeCatchingUp     = "catching_up"
	codeLogUnavailable = "log_unavailable"
	codeUnrecorded     = "outcome_unrecorded"
	codeInputRequired  = "input_required"

	codeServerNotFound   = "server_not_found"
	codeInvalidArguments = "invalid_arguments"
)

// failure tells a client, in our own words, why its call has no result. What a
// server wrote is in UntrustedText alone, on one line, cut at 200 characters: a model
// reads this, and the server must not speak to it in our name.
type failure struct {
	Code          string            `json:"code"`
	Server        events.ServerName `json:"server,omitempty"`
	Dispatched    bool              `json:"dispatched"` // the call may have reached the server
	Class         rules.Class       `json:"class,omitempty"`
	Needs         projections.Needs `json:"needs,omitempty"` // of a server that takes no calls, or cannot be started or reached
	Since         *time.Time        `json:"since,omitempty"`
	ClearsOn      []string          `json:"clears_on,omitempty"`
	RetryAfterMS  int64             `json:"retry_after_ms,omitempty"`
	CallID        string            `json:"call_id,omitempty"`
	EventID       string            `json:"event_id,omitempty"`
	UntrustedText string            `json:"untrusted_text,omitempty"`

	Sentence string `json:"-"`
}

// metaFailure is the member of a result's _meta that holds the failure.
const metaFailure = "mcpledger/failure"

// failed is the answer to a call that came to nothing: a result with isError, which a
// model gets to see, and no protocol error, which many clients keep from it.
func (x *exchange) failed(f failure) answer {
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	result := encoded(struct {
		Content []text             `json:"content"`
		IsError bool               `json:"isError"`
		Meta    map[string]failure `json:"_meta"`
	}{[]text{{"text", f.text()}}, true, map[string]failure{metaFailure: f}})
	return x.result(result)
}

// text is what a model reads.
func (f failure) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mcpledger: %s (code %s", f.Sentence, f.Code)
	if f.Class != "" {
		fmt.Fprintf(&b, ", class %s", f.Class)
	}
	if f.Since != nil {
		fmt.Fprintf(&b, ", since %s", f.Since.UTC().Format(time.RFC3339))
	}
	if len(f.ClearsOn) > 0 {
		fmt.Fprintf(&b, ", clears on %s", strings.Join(f.ClearsOn, " or "))
	}
	if f.RetryAfterMS > 0 && !f.closed() { // where the sentence has the time
		fmt.Fprintf(&b, ", try again in %s", time.Duration(f.RetryAfterMS)*time.Millisecond)
	}
	return b.String() + ")"
}

// explain says why a call has no result, and of a server that takes none what would bring
// it back.
func (x *exchange) explain(server events.ServerName, out discovery.CallOutcome) failure {
	f := failure{
		Server: server, Code: out.Failure.Code, Class: out.Failure.Class, Dispatched: out.Dispatched,
		ClearsOn: out.Failure.ClearsOn, RetryAfterMS: out.Failure.RetryAfter.Milliseconds(),
		CallID: out.CallID, EventID: out.EventID, UntrustedText: untrusted(out.Failure.Detail),
		Sentence: sentence(out),
	}
	if !out.Failure.Since.IsZero() {
		f.Since = &out.Failure.Since
	}
	switch {
	case out.Failure.Code == discovery.CodeTooLarge:
		f.Sentence += " The server has carried the call out."
	case out.Dispatched && f.closed(): // by a status of 401 or 403
		f.Sentence += " The call was sent, and the server refused it."
	case out.Dispatched:
		f.Sentence += " The call was sent, so the server may have carried it out."
	default:
		f.Sentence += " Nothing was sent."
	}
	if v, known := x.view.gateway.serverNow(server); known && (f.closed() || f.unopened(v)) {
		if f.Code == discovery.CodeSkipped && v.Skip != nil {
			f.Sentence = skipSentence(v.Skip) + " Nothing was sent."
		}
		f.Needs = v.Needs
		f.Sentence += besides(v) + " " + x.view.remedy(v)
	}
	return f
}

// closed reports whether the failure is that of a server which takes no calls at all.
func (f failure) closed() bool {
	switch f.Code {
	case discovery.CodeSkipped, discovery.CodeDisabled, discovery.CodeBlocked, discovery.CodeAuthRequired,
		discovery.CodeInsufficientScope, discovery.CodeMissingCredential:
		return true
	}
	return false
}

// unopened reports whether the call found no way to a server that failed before: it
// cannot be started or reached, by the next call neither.
func (f failure) unopened(v projections.Server) bool {
	if f.Dispatched || v.State != projections.StateFailed && v.State != projections.StateUnreachable {
		return false
	}
	switch f.Code {
	case discovery.CodeToolNotFound, discovery.CodeBusy, discovery.CodeBraked, discovery.CodeCancelled:
		return false
	}
	return true
}

// sentences say what a code means. They hold no word of a server.
var sentences = map[string]string{
	discovery.CodeNetworkError:      "The connection to the server failed.",
	discovery.CodeToolTimeout:       "The server did not answer in time.",
	discovery.CodeRedirected:        "The server sent us to another address, and redirects are not followed.",
	discovery.CodeMalformed:         "The server's answer is not what the protocol says.",
	discovery.CodeTooLarge:          "The server's answer is larger than this service takes.",
	discovery.CodeSessionExpired:    "The server has forgotten our session; the next call opens a new one.",
	discovery.CodeAuthRequired:      "The server wants a login or another credential.",
	discovery.CodeInsufficientScope: "The server wants a credential with more rights.",
	discovery.CodeMissingCredential: "A credential that the server's config names is not set.",
	discovery.CodeProcessExited:     "The server's process ended during the call; the next call starts it anew.",
	discovery.CodeCancelled:         "The call was cancelled.",
	discovery.CodeBlocked:           "The server's config is incomplete or wrong.",
	discovery.CodeSkipped:           "The server is skipped since it kept failing in the same way.",
	discovery.CodeBraked:            "The same call failed again and again, so it is held back for a while.",
	discovery.CodeBusy:              "The server has as many calls under way as it may have.",
	discovery.CodeDisabled:          "The server is disabled in its config.",
	discovery.CodeDiscovering:       "The server has not answered yet since it was configured.",
	discovery.CodeNotConnected:      "The server could not be reached a moment ago.",
	discovery.CodeToolNotFound:      "The server has no tool of that name any more; list the tools anew.",
}

func sentence(out discovery.CallOutcome) string {
	f := out.Failure
	switch {
	case f.Code == discovery.CodeProcessExited && !out.Dispatched:
		return "The server's process ended before it could take the call."
	case f.Code == discovery.CodeRemoteStatus:
		return fmt.Sprintf("The server answered with HTTP status %d.", f.Evidence.HTTPStatus)
	case f.Code == discovery.CodeProcessExited && f.Evidence.ExitCode != nil:
		return fmt.Sprintf("The server's process ended with exit code %d; the next call starts it anew.", *f.Evidence.ExitCode)
	}
	if known := sentences[f.Code]; known != "" {
		return known
	}
	return "The call came to nothing."
}

// gates reports whether a failure is one for which a connection is closed to calls,
// so that ours is the answer, whatever the server said.
func gates(f *discovery.CallFailure) bool {
	if f == nil {
		return false
	}
	switch f.Code {
	case discovery.CodeAuthRequired, discovery.CodeInsufficientScope, discovery.CodeMissingCredential:
		return true
	}
	return false
}

// maxUntrusted bounds a server's text in our answers, in characters.
const maxUntrusted = 200

// untrusted returns a server's text on one line, cut.
func untrusted(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxUntrusted {
		return string(runes[:maxUntrusted-1]) + "…"
	}
	return string(runes)
}
