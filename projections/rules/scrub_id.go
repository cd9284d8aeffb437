package rules

import (
	"bytes"
	"slices"
)

// maxStampedBytes bounds an id with a time in it.
const maxStampedBytes = 80

// lenStampedID returns the length of an id whose parts stand around a time in ms, as in
// "fra1::2mk7x-1764494062118-9f0c1d2e3b4a", the first of them with a digit in it.
func lenStampedID(b []byte) int {
	n := lenToken(b)
	if n == len(b) || b[n] != ':' && b[n] != '-' || !hasDigit(b[:n]) {
		return 0 // as most words
	}
	stamped := false
	for n < min(len(b), maxStampedBytes) {
		part := b[n:]
		marks := len(part) - len(bytes.TrimLeft(part, ":-"))
		size := lenToken(part[marks:])
		if marks == 0 || size == 0 {
			break
		}
		n += marks + size
		if stamped { // by the part before
			return n
		}
		stamped = size == len("1764494062118") && part[marks] == '1' && lenDigits(part[marks:]) == size
	}
	return 0
}

// lenBase64 returns the length of what goes on behind the first token of an id in base64.
func lenBase64(b []byte) int {
	n := 0
	for n < len(b) && bytes.IndexByte([]byte("+/="), b[n]) >= 0 {
		n++
		n += lenToken(b[n:])
	}
	return n
}

// maxHostBytes bounds the name of a host.
const maxHostBytes = 253

// holders stand before the name of a program that has what another needs, behind which its
// process id may stand in brackets.
var holders = [][]byte{[]byte("locked by"), []byte("held by"), []byte("used by"), []byte("owned by"), []byte("opened by"), []byte("in use by")}

// maxHolderBytes is how far before the process id of a holder the words for it may begin.
const maxHolderBytes = 80

// afterHolder reports whether the name of a holder was read.
func (s *scrubber) afterHolder() bool {
	before := s.low[max(0, s.i-maxHolderBytes):s.i]
	return slices.ContainsFunc(holders, func(words []byte) bool { return bytes.Contains(before, words) })
}

// lenReceipt returns the length of "[host time id]", with which a mail server ends what it
// says: which of many machines answered, and when.
func lenReceipt(b []byte) int {
	host := bytes.IndexByte(b[:min(len(b), maxHostBytes)], ' ')
	if host < 0 || bytes.IndexByte(b[:host], '.') < 0 || bytes.IndexByte(b[:host], ']') >= 0 {
		return 0
	}
	n := host + len(" ")
	when := lenTime(b[n:])
	if when == 0 || !has(b[n+when:], " ") {
		return 0
	}
	n += when + len(" ")
	id := lenToken(b[n:])
	if id == 0 || !has(b[n+id:], "]") {
		return 0
	}
	return n + id + len("]")
}

// codeWords stand before a code that a person is to enter once.
var codeWords = []string{"enter the code ", "enter code ", "one-time code: ", "user code: ", "verification code: ", "device code: "}

// afterCodeWords reports whether a code for people follows, by the words before it.
func (s *scrubber) afterCodeWords() bool {
	return slices.ContainsFunc(codeWords, func(words string) bool { return endsIn(s.low[:s.i], words) })
}

// maxCodeBytes bounds a code that a person may be asked to enter.
const maxCodeBytes = 40

// lenCode returns the length of a code for people: capitals, digits and dashes, of
// which it looks at maxCodeBytes.
func lenCode(b []byte) int {
	n := 0
	for n < min(len(b), maxCodeBytes) && (isDigit(b[n]) || isUpper(b[n]) || b[n] == '-') {
		n++
	}
	return n
}
