package rules

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"strconv"

	"mcpledger/events"
)

// signatureVersion is hashed into every signature. It changes when scrubbing or the
// choice of the decisive block does, so that old and new signatures never meet.
const signatureVersion = "1"

// maxSignedBytes bounds the scrubbed text that goes into a signature.
const maxSignedBytes = 1 << 10

// base32Lower encodes signatures: lower case, without padding.
var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// signatureOf returns the signature of a failure under a rule, "s_" and 16
// characters, from the lines of block d. Two views of one failure must give one
// signature, also when a race decided what was seen of it. So of how a process ended
// (exit code, signal, broken pipe) nothing is signed when a text tells the cause.
func signatureOf(rule *rule, r *reading, d block) string {
	told := d.from < d.to
	signed := r.signed
	part := func(s string) { signed = append(append(signed, s...), 0) }
	count := func(n number) { signed = append(strconv.AppendInt(signed, int64(n), 10), 0) }
	part(signatureVersion)
	part(r.enums[enumPhase])
	part(string(rule.class))
	part(rule.id)
	if r.phase() == events.PhaseSpawn {
		signed = append(append(signed, r.bytes(r.fields[textCommand])...), 0)
	}
	if !r.endedInRace() {
		part(r.enums[enumErrorKind])
	} else if !told {
		if r.exited() {
			count(r.numbers[numberExitCode])
		}
		part(r.enums[enumSignal])
	}
	count(max(0, r.numbers[numberHTTPStatus]))
	signed = append(append(signed, r.bytes(r.challenged("scope"))...), 0)
	for _, name := range []string{"error", "error_description"} {
		if said := r.challenged(name); said.start < said.end {
			signed = append(r.appendScrubbed(signed, said), 0)
		}
	}
	if n := r.numbers[numberJSONRPCCode]; n.seen() && !r.hollowAnswer() {
		count(n)
	}
	signed = r.appendTold(signed, d)
	r.signed = signed
	sum := sha256.Sum256(signed)
	name := [18]byte{'s', '_'}
	base32Lower.Encode(name[2:], sum[:10])
	return string(name[:])
}

// challenged returns where the value of a parameter of the WWW-Authenticate header lies,
// such as the scope that it asks for.
func (r *reading) challenged(name string) span {
	s := r.fields[textChallenge]
	if s.start == s.end {
		return span{}
	}
	at := bytes.Index(r.bytes(s), []byte(name+"="))
	if at < 0 {
		return span{}
	}
	s.start += at + len(name) + len("=")
	end := ","
	if has(r.bytes(s), `"`) {
		s.start++
		end = `"`
	}
	if n := bytes.Index(r.bytes(s), []byte(end)); n >= 0 {
		s.end = s.start + n
	}
	return s
}

// endedInRace reports the end of a process, of which the exit and the broken stream
// are seen in either order.
func (r *reading) endedInRace() bool {
	switch r.kind() {
	case "", events.KindExit, events.KindSignal, events.KindEOF, events.KindReset:
		return r.enums[enumTransport] == string(events.TransportStdio) || r.exited() || r.signalled()
	}
	return false
}

// hollowAnswer reports a JSON-RPC error that the client made up for an end or a
// timeout.
func (r *reading) hollowAnswer() bool {
	message := r.lower(r.fields[textMessage])
	if len(message) == 0 {
		message = r.lower(r.fields[textError])
	}
	return len(message) == 0 || isHollow(message)
}

// appendTold appends what the block says, scrubbed and cut at maxSignedBytes.
func (r *reading) appendTold(dst []byte, d block) []byte {
	start := len(dst)
	dst = r.appendLines(dst, d)
	return dst[:min(len(dst), start+maxSignedBytes)]
}

// appendLines appends the scrubbed lines of the block until they are maxSignedBytes or
// more. A crash whose message is the runtime's own adds where it happened.
func (r *reading) appendLines(dst []byte, d block) []byte {
	start := len(dst)
	if d.from == d.to && d.best >= 0 {
		// No cause, but the last thing that was said. A client's hollow word counts
		// when even the end of the process was not seen.
		l := &r.lines[d.best]
		if l.kind != kindHollow || !r.exited() && !r.signalled() {
			return r.appendScrubbed(dst, l.said())
		}
		return dst
	}
	crash := false
	for i := d.from; i < d.to && len(dst)-start < maxSignedBytes; i++ {
		l := &r.lines[i]
		if !l.says() && i != d.best {
			continue
		}
		dst = append(r.appendScrubbed(dst, l.said()), '\n')
		low := r.low[l.content:l.end]
		crash = crash || has(low, "panic:") || has(low, "fatal error:") || has(low, "[signal sig")
	}
	if crash {
		dst = r.appendScrubbed(dst, d.frame)
	}
	return dst
}

// pickings stand before a port that a program picked for itself.
var pickings = [][]byte{
	[]byte("existing client port: "), []byte("random port "), []byte("free port "), []byte("available port "),
	[]byte("dynamic port "), []byte("ephemeral port "),
}

// pickedPort returns the port that the server says it picked, which differs from
// run to run unlike one from its config; empty when it names none.
func (r *reading) pickedPort() []byte {
	if r.soughtPort {
		return r.bytes(r.picked)
	}
	r.soughtPort = true
	stderr := r.fields[textStderr]
	low := r.lower(stderr)
	for _, words := range pickings {
		if at := bytes.Index(low, words); at >= 0 {
			at += len(words)
			r.picked = span{stderr.start + at, stderr.start + at + lenDigits(low[at:])}
			break
		}
	}
	return r.bytes(r.picked)
}

// maxTextBytes bounds a verdict's text.
const maxTextBytes = 200

// headline returns the lines of the block on one line, as people are shown them.
func (r *reading) headline(d block) string {
	if d.from == d.to && d.best < 0 {
		return ""
	}
	out := r.shown[:0]
	for i := d.from; i < max(d.to, d.from+1) && len(out) < maxTextBytes; i++ {
		l := &r.lines[i]
		if d.from == d.to {
			l = &r.lines[d.best]
		} else if !l.says() && i != d.best {
			continue
		}
		if len(out) > 0 {
			out = append(out, ' ')
		}
		out = append(out, bytes.TrimSpace(r.buf[l.content:l.end])...)
	}
	r.shown = out
	return cutText(string(out))
}

// cutText cuts a text to maxTextBytes, the ellipsis included, between characters.
func cutText(s string) string {
	if len(s) <= maxTextBytes {
		return s
	}
	return head(s, maxTextBytes-len(ellipsis)) + ellipsis
}
