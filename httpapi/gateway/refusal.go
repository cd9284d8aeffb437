package gateway

import (
	"cmp"
	"net/http"
)

// Refusal is why an endpoint takes a request for no message: the server it is to offer is
// not configured, the session is over, the token may not call, too much is under way.
type Refusal struct {
	Status int    `json:"status"` // of HTTP
	Code   string `json:"code"`   // such as server_not_found
	Detail string `json:"detail"` // a sentence
}

func (r *Refusal) Error() string { return cmp.Or(r.Detail, http.StatusText(r.Status)) }

// codeSessionNotFound is the code of a session that is over, or never was: its client
// begins another.
const codeSessionNotFound = "session_not_found"

func refused(status int, code, detail string) *Refusal {
	return &Refusal{Status: status, Code: code, Detail: detail}
}

// busy is the refusal of what is one too many.
func busy(detail string) *Refusal { return refused(http.StatusServiceUnavailable, "busy", detail) }
