package upstream

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

// ellipsis stands for what was cut.
const ellipsis = "…"

// excerptStart makes the beginning of an outside text of total bytes fit for
// evidence: masked, then made plain, then cut to limit bytes. A secret that begins
// in the part we have and ends beyond it is left out.
func (t Target) excerptStart(start []byte, total int64, limit int) string {
	if total <= int64(len(start)) {
		return t.Redactor.Text(string(bytes.TrimSpace(start)), limit)
	}
	var masked strings.Builder
	// Not closed: what the stream holds back may be the beginning of a secret.
	_, _ = t.Redactor.Stream(&masked).Write(start)
	return config.Cut(config.Sanitize(masked.String())+ellipsis, limit)
}

// errorText is the text of an error of ours or of the client library as evidence
// shows it.
func (t Target) errorText(err error) string {
	return t.Redactor.Text(err.Error(), events.MaxErrorBytes)
}

// cutFront keeps the last of s, at most limit bytes together with the ellipsis.
func cutFront(s string, limit int) string {
	start := max(0, len(s)-(limit-len(ellipsis)))
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return ellipsis + s[start:]
}
