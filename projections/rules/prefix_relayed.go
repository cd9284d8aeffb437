package rules

import "bytes"

// relayLabel ends the words with which a host passes on what a server writes to standard
// error, in a log of its own.
var relayLabel = []byte("stderr: ")

// stripHost is stripPrefix for a line of standard error, which may be a host's log. Where it
// passes on a line of the server the level is the host's, for all that the server writes,
// and says nothing of that line.
func stripHost(raw []byte) (at int, lvl level, stamped bool) {
	at, lvl, stamped = stripPrefix(raw)
	if lvl != levelWarn && lvl != levelInfo {
		return at, lvl, stamped
	}
	label := bytes.Index(raw[at:], relayLabel)
	if label < 0 {
		return at, lvl, stamped
	}
	at += label + len(relayLabel)
	said, lvl, _ := stripPrefix(raw[at:])
	return at + said, lvl, true
}

// relays reports a tag that stands before what a host passes on, as in "[server stderr] ".
func relays(tag []byte) bool { return bytes.HasSuffix(tag, []byte("stderr")) }
