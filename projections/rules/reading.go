package rules

import (
	"bytes"

	"mcpledger/events"
)

// span is a range of a reading's buffer.
type span struct{ start, end int }

// reading is one failure's evidence made ready for matching: its texts cleaned and
// laid out one after another in one buffer, their lines told apart, and the decisive
// block found. Its buffers are used again for the next failure.
type reading struct {
	facts
	buf         []byte
	low         []byte // buf with ASCII letters in lower case
	fields      [textFieldCount]span
	lines       []line
	decisive    block
	occurrences []occurrence // of literals, on the lines
	hits        hits
	tries       backtracker // of patterns
	found       []found     // where the texts' conditions of the rule that matched last do
	foundBefore []found     // and at the look before
	picked      span        // see pickedPort
	soughtPort  bool        // picked is known
	signed      []byte      // what the signature is made of
	shown       []byte      // what people are shown
}

// read takes in the evidence, and finds the literals of the vocabulary on its lines.
func (r *reading) read(e *events.Evidence, v *vocabulary) {
	r.take(e)
	r.buf, r.low, r.lines, r.occurrences = r.buf[:0], r.low[:0], r.lines[:0], r.occurrences[:0]
	r.found, r.signed, r.shown = r.found[:0], r.signed[:0], r.shown[:0]
	r.fields, r.decisive, r.picked, r.soughtPort = [textFieldCount]span{}, block{}, span{}, false
	r.field(textCommand, e.Command)
	r.field(textProtocol, e.ProtocolVersion)
	r.field(textChallenge, e.WWWAuthenticate)
	r.field(textLocation, e.Location)
	r.field(textContentType, e.ContentType)
	if e.StdoutJunk != nil {
		r.field(textStdout, e.StdoutJunk.Excerpt)
	}
	r.field(textData, e.JSONRPCData)
	r.field(textBody, e.BodyExcerpt)
	r.speakers(e)
	r.lowerRest()
	r.readExit()
	r.judgeLines(v)
	r.decisive = r.decide()
	r.copyBlocks()
}

// field appends one text, cleaned, as the field.
func (r *reading) field(f textField, texts ...string) {
	if len(texts) == 1 && texts[0] == "" {
		return // as most are
	}
	from := len(r.buf)
	r.buf = appendClean(r.buf, texts...)
	r.fields[f] = span{from, len(r.buf)}
	r.buf = append(r.buf, '\n')
}

// speakers appends the texts that may say what failed, cut into lines: standard error
// unless it is old, the JSON-RPC error, what an HTTP answer says, the client's text.
func (r *reading) speakers(e *events.Evidence) {
	if !r.stderrIsOld() {
		r.field(textStderr, untagged(e.StderrHead), untagged(e.StderrTail))
	}
	r.cut(r.fields[textStdout], fromStdout)
	r.cut(r.fields[textStderr], fromStderr)

	r.field(textMessage, e.JSONRPCMessage)
	r.cut(r.fields[textMessage], fromMessage)
	r.answer(r.bytes(r.fields[textData]), fromMessage)

	r.answer(r.bytes(r.fields[textBody]), fromBody)

	r.field(textError, e.Error)
	r.clientText()
}

// clientText cuts the client's text into lines. Where a body begins in it, as clients
// write "HTTP 401: {...}", the body's words stand in for the body.
func (r *reading) clientText() {
	whole := r.fields[textError]
	text := r.bytes(whole)
	at := bodyIn(text)
	if at < 0 {
		r.cut(whole, fromError)
		return
	}
	start, stop := len(r.buf), at+lenBody(text[at:])
	r.buf = append(r.buf, text[:at]...)
	r.buf = appendAnswer(r.buf, text[at:stop])
	r.buf = append(r.buf, text[stop:]...)
	r.cut(span{start, len(r.buf)}, fromError)
	r.buf = append(r.buf, '\n')
}

// answer appends what a body says in words and cuts it into lines.
func (r *reading) answer(body []byte, from source) {
	start := len(r.buf)
	r.buf = appendAnswer(r.buf, body)
	r.cut(span{start, len(r.buf)}, from)
	r.buf = append(r.buf, '\n')
}

// copyBlocks appends the lines of all blocks, so that they are one text of which the
// decisive block is a part, and after them the clients' hollow words.
func (r *reading) copyBlocks() {
	all := span{start: len(r.buf)}
	decisive := span{len(r.buf), len(r.buf)}
	for i := range r.lines {
		if i == r.decisive.from {
			decisive.start = len(r.buf)
		}
		if r.lines[i].inBlock() {
			r.copyLine(&r.lines[i])
		}
		if i < r.decisive.to {
			decisive.end = len(r.buf)
		}
	}
	all.end = len(r.buf)
	for i := range r.lines {
		if r.lines[i].kind == kindHollow {
			r.copyLine(&r.lines[i])
		}
	}
	r.fields[textDecisive], r.fields[textBlocks] = decisive, all
	r.fields[textAny] = span{all.start, len(r.buf)}
	r.fields[textFrame] = r.decisive.frame
}

func (r *reading) copyLine(l *line) {
	l.copy = len(r.buf)
	r.buf = append(append(r.buf, r.buf[l.content:l.end]...), '\n')
	r.low = append(append(r.low, r.low[l.content:l.end]...), '\n')
}

// lowerRest brings low to the length of buf.
func (r *reading) lowerRest() {
	done := len(r.low)
	r.low = append(r.low, r.buf[done:]...)
	lowerBytes(r.low[done:], r.low[done:])
}

func (r *reading) bytes(s span) []byte { return r.buf[s.start:s.end] }

func (r *reading) lower(s span) []byte { return r.low[s.start:s.end] }

// span returns where the field's text lies; at says what textDecisive stands for.
func (r *reading) span(f textField, at look) span {
	switch {
	case at == lookCodes && (f == textDecisive || f == textAny):
		f = textSpelled
	case at == lookAll && f == textDecisive:
		f = textBlocks
	}
	return r.fields[f]
}

// lineAround returns the line at an offset inside s.
func (r *reading) lineAround(s span, at int) span {
	line := span{s.start, s.end}
	if i := bytes.LastIndexByte(r.buf[s.start:at], '\n'); i >= 0 {
		line.start = s.start + i + 1
	}
	if i := bytes.IndexByte(r.buf[at:s.end], '\n'); i >= 0 {
		line.end = at + i
	}
	return line
}

// exitWords stand before an exit code in the texts of clients.
var exitWords = [][]byte{
	[]byte("exit status "), []byte("exit code "), []byte("exit code: "), []byte("exited with code "),
	[]byte("exited with status "),
}

// readExit finds the exit code, in the client's text when it was not seen itself. In a
// call that text may be the tool's, about what the tool ran: where the server answered it
// is, else nothing but words of the end of a server may stand before it.
func (r *reading) readExit() {
	if r.exited() || r.kind() == events.KindToolError {
		return
	}
	low := r.lower(r.fields[textError])
	if !bytes.Contains(low, []byte("exit")) { // which all of the words begin with
		return
	}
	for _, words := range exitWords {
		before, after, ok := bytes.Cut(low, words)
		if !ok || r.phase() == events.PhaseCallTool && !isHollow(low[:len(before)+len(words)]) {
			continue
		}
		n, digits := int64(0), 0
		for digits < len(after) && digits < 10 && '0' <= after[digits] && after[digits] <= '9' {
			n = n*10 + int64(after[digits]-'0')
			digits++
		}
		if digits > 0 {
			r.numbers[numberExitCode] = number(n)
			return
		}
	}
}
