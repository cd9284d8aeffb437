package rules

import "bytes"

// maxSpelled bounds a code that is spelled out, in bytes, and is how much of the codes of
// one failure is enough: no further one is taken.
const maxSpelled = 200

// spellCodes appends the codes of errors as words, each on a line of its own: a service
// that says CALL_LIMIT_EXCEEDED or tokenExpired tells in words what failed. It reports
// whether there are any.
func (r *reading) spellCodes() bool {
	start := len(r.buf)
	for i := range r.lines {
		l := &r.lines[i]
		if !r.mayHoldCode(i) {
			continue
		}
		for at := l.content; at < l.end && len(r.buf)-start < maxSpelled; {
			code := nextCode(r.buf[at:l.end])
			if code.start == code.end {
				break
			}
			r.buf = appendSpelled(r.buf, r.buf[at+code.start:at+code.end])
			at += code.end
		}
	}
	for _, f := range []textField{textData, textBody, textError} {
		at := r.fields[f]
		at.start += max(0, bodyIn(r.bytes(at))) // an apostrophe before it is no quote
		for at.start < at.end && len(r.buf)-start < maxSpelled {
			r.buf, at.start = r.appendPair(at)
		}
	}
	r.fields[textSpelled] = span{start, len(r.buf)}
	r.lowerRest()
	return len(r.buf) > start
}

// mayHoldCode reports whether line i is of an answer or the client's text. Of what a program
// writes, which is full of names, it must announce the error that decides, or belong to it.
func (r *reading) mayHoldCode(i int) bool {
	l := &r.lines[i]
	if l.from <= fromStderr {
		return (l.kind == kindProp || l.kind >= kindError) && r.decisive.from <= i && i < r.decisive.to
	}
	return l.inBlock() || l.kind == kindHollow
}

// appendPair appends to the buffer what the first pair of a key and a value in the text at
// s holds of a code: the status of an error as "status 503", or the words of a kind. It
// returns the buffer and where the text goes on.
func (r *reading) appendPair(s span) (buf []byte, next int) {
	text := r.bytes(s)
	open := bytes.IndexAny(text, "\"'")
	if open < 0 {
		return r.buf, s.end
	}
	end := closingQuote(text, open)
	next = min(s.start+end+1, s.end)
	value, ok := bytes.CutPrefix(bytes.TrimLeft(r.buf[next:s.end], " \n"), []byte(":"))
	if !ok {
		return r.buf, next
	}
	key := text[open+1 : end]
	value = bytes.TrimLeft(value, " \n\"'")
	switch n := lenToken(value); {
	case statusKeys.hasFold(key) && n == 3 && lenDigits(value) == n && (value[0] == '4' || value[0] == '5'):
		return append(append(append(r.buf, "status "...), value[:n]...), '\n'), next
	case kindKeys.hasFold(key) && hasWords(value[:n]):
		return appendSpelled(r.buf, value[:n]), next
	}
	return r.buf, next
}

// nextCode returns where the first code of an error lies in text: an identifier of
// several words at its beginning, behind a colon, in brackets or between tags, that a colon,
// a bracket or the end of a sentence follows. It is empty when there is none.
func nextCode(text []byte) span {
	for i := 0; i < len(text); {
		if !isWordByte(text[i]) {
			i++
			continue
		}
		end := i + lenCodeToken(text[i:])
		if hasWords(text[i:end]) && !namesFunction(text[i:end]) && opensCode(text[:i]) && closesCode(text[end:]) {
			return span{i, end}
		}
		i = end
	}
	return span{}
}

// lenCodeToken returns the length of the identifier that text begins with, parts that a
// dot joins included.
func lenCodeToken(text []byte) int {
	n := 0
	for n < len(text) && (isWordByte(text[n]) || text[n] == '.' && n+1 < len(text) && isUpper(text[n+1])) {
		n++
	}
	return n
}

// hasWords reports an identifier of more than one word, of maxSpelled bytes at most. The
// type of an exception is none: it says what kind of program threw it.
func hasWords(code []byte) bool {
	if len(code) > maxSpelled || endsIn(code, "Error") || endsIn(code, "Exception") {
		return false
	}
	for i := 1; i < len(code); i++ {
		if startsWord(code, i) || code[i-1] == '_' && i > 1 && isLetter(code[i]) {
			return true
		}
	}
	return false
}

// startsWord reports a capital that begins another word, as in callLimit and HTTPError.
func startsWord(code []byte, i int) bool {
	return isUpper(code[i]) && (isLower(code[i-1]) || isUpper(code[i-1]) && i+1 < len(code) && isLower(code[i+1]))
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isLetter(c byte) bool { return isLower(c | ' ') }

// functionVerbs begin the names of functions and tests.
var functionVerbs = newWordSet(`test check get set on handle validate`)

// namesFunction reports an identifier such as checkTokenExpired.
func namesFunction(code []byte) bool {
	n := 1
	for n < len(code) && isLetter(code[n]) && !startsWord(code, n) {
		n++
	}
	return functionVerbs.hasFold(code[:n])
}

// namers stand before the name of something, which is no code of an error.
var namers = newWordSet(`tool function method field parameter param argument arg variable var key property option setting column table
	class module name attribute env id`)

// opensCode reports whether a code may follow the text.
func opensCode(before []byte) bool {
	before = bytes.TrimRight(before, " '\"")
	if len(before) == 0 {
		return true
	}
	switch last := before[len(before)-1]; last {
	case '(', '[', '>':
		return true
	case ':':
		word := before[:len(before)-1]
		from := len(word)
		for from > 0 && isWordByte(word[from-1]) {
			from--
		}
		return !namers.hasFold(word[from:])
	default:
		return endsIn(before, "：")
	}
}

// closesCode reports whether a code may stand before the text.
func closesCode(after []byte) bool {
	after = bytes.TrimLeft(after, "'\"!")
	switch {
	case len(after) == 0, bytes.IndexByte([]byte(":)],;."), after[0]) >= 0:
		return true
	}
	return has(after, "</") || has(after, " (") || has(after, " [") || has(after, " - ") || has(after, "：")
}

// appendSpelled appends the words of an identifier, in lower case, as one line.
func appendSpelled(dst, code []byte) []byte {
	for i, c := range code {
		switch {
		case c == '_' || c == '.':
			c = ' '
		case i > 0 && startsWord(code, i):
			dst = append(dst, ' ')
		}
		if isUpper(c) {
			c |= ' '
		}
		dst = append(dst, c)
	}
	return append(dst, '\n')
}
