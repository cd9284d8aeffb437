package rules

import "bytes"

// relayLabel ends the words with which a host passes on what a server writes to standard
// error, in a log of its own.
var relayLabel = []byte("stderr: ")

// stripHost is stripPrefix for a line that may be of a host's log. Where it passes on a line
// of the server, on a line of text or in a record of JSON, the level is the host's, for all
// that the server writes, and says nothing of that line. relayed says that it does.
func stripHost(raw []byte) (at int, lvl level, stamped, relayed bool) {
	at, lvl, stamped = stripPrefix(raw)
	record := at < len(raw) && raw[at] == '{'
	if lvl != levelWarn && lvl != levelInfo && !record {
		return at, lvl, stamped, false
	}
	label := bytes.Index(raw[at:], relayLabel)
	if label < 0 {
		return at, lvl, stamped, false
	}
	at += label + len(relayLabel)
	said, lvl, _ := stripPrefix(raw[at:])
	return at + said, lvl, true, true
}

// relays reports a tag that stands before what a host passes on, as in "[server stderr] ".
func relays(tag []byte) bool { return bytes.HasSuffix(tag, []byte("stderr")) }

// priority passes over "<3>", as what writes for the journal of a system or its log begins
// its lines.
func (p *prefix) priority() bool {
	if p.stamped || len(p.raw) < p.at+4 || p.raw[p.at] != '<' || p.raw[p.at+2] != '>' {
		return false
	}
	switch n := p.raw[p.at+1]; {
	case '0' <= n && n <= '3':
		p.level = levelError
	case n == '4':
		p.level = levelWarn
	case '5' <= n && n <= '7':
		p.level = levelInfo
	default:
		return false
	}
	p.stamped = true
	p.at += len("<3>")
	return true
}

// client passes over "a602: ", the id that a host drew for a connection.
func (p *prefix) client() bool {
	rest := p.raw[p.at:]
	n := lenToken(rest)
	if n != 4 || !onlyOf(rest[:n], "0123456789abcdef") || !hasDigit(rest[:n]) || !has(rest[n:], ": ") {
		return false
	}
	p.at += n + len(": ")
	return true
}

// process passes over "5120 --- ", the id of a process behind a record's level. The tags of
// its threads follow, and the name of a logger.
func (p *prefix) process() bool {
	rest := p.raw[p.at:]
	n := lenDigits(rest)
	if n == 0 || !has(rest[n:], " --- ") {
		return false
	}
	p.at += n + len(" --- ")
	p.logger = true
	return true
}
