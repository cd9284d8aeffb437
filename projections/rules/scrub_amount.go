package rules

import "bytes"

// duration writes a duration. How long something took, as in "after 3 retries in 8.7s",
// is not said by every version of a program.
func (s *scrubber) duration(n int) {
	if took, ok := bytes.CutSuffix(s.dst[s.start:], []byte(" in ")); ok && bytes.HasSuffix(took, []byte(" retries")) {
		s.dst = s.dst[:s.start+len(took)]
		s.i += n
		return
	}
	s.put(markSpan, n)
}

// lenDone returns the length of how much of a whole is done, as in "4120 of 19800",
// "312/4800" and "4120 vs. 4096", or of one size in two units, as in "[122/122b]", where the first number has
// so many digits.
func (s *scrubber) lenDone(rest []byte, digits int) int {
	n := digits
	switch after := rest[digits:]; {
	case has(after, " of "):
		n += len(" of ")
	case has(after, " vs. "):
		n += len(" vs. ")
	case has(after, "/") && (s.i == 0 || bytes.IndexByte([]byte(" (["), s.src[s.i-1]) >= 0):
		n += len("/")
	default:
		return 0
	}
	whole := lenDigits(rest[n:])
	n += whole
	if n < len(rest) && rest[n] == 'b' {
		n++
	}
	if whole == 0 || n < len(rest) && (isWordByte(rest[n]) || rest[n] == '/' || rest[n] == '.') {
		return 0
	}
	return n
}

// lenOfWhat returns the length of ": name=", as it stands between a word that counts and
// the first number of a list: "used: pods=10".
func lenOfWhat(after []byte) int {
	if !has(after, ": ") {
		return 0
	}
	n := len(": ")
	for n < len(after) && (isWordByte(after[n]) || after[n] == '.' || after[n] == '-' || after[n] == '/') {
		n++
	}
	if n == len(": ") || !has(after[n:], "=") {
		return 0
	}
	return n
}
