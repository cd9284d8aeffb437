package rules

import (
	"bytes"
	"slices"
)

// number handles what begins with a digit.
func (s *scrubber) number() {
	rest := s.src[s.i:]
	if n := lenUUID(rest); n > 0 {
		s.put(markID, n)
		return
	}
	if n := lenTime(rest); n > 0 {
		if n == len("2025-11-25") && lenDate(rest) == n {
			s.copy(n) // a day alone is a version of something, such as a protocol
		} else {
			s.put(markTime, n)
		}
		return
	}
	if n := lenIPv4(rest); n > 0 {
		s.address(n)
		return
	}
	if n := lenLongSpan(rest); n > 0 {
		s.duration(n)
		return
	}
	if n := lenShortClock(rest); n > 0 {
		s.put(markTime, n)
		return
	}
	digits := lenDigits(rest)
	end := digits
	if f := lenFraction(rest[digits:]); f > 0 {
		end += f
	}
	switch unit := lenUnit(rest[end:]); {
	case unit > 0:
		s.duration(end + unit)
		return
	case end < len(rest) && rest[end] == '%':
		s.put(markNumber, end)
		if end+1 < len(rest) && rest[end+1] == '|' {
			s.i = len(s.src) // a progress bar, which fills the line
		}
		return
	case isMeasured(rest[end:]), s.i < s.count && sizes.has(rest[end:end+lenToken(rest[end:])]):
		s.put(markNumber, end)
		return
	case s.lenDone(rest, digits) > 0:
		s.put(markNumber, s.lenDone(rest, digits))
		return
	case s.follows(" ") && isEnding(rest[digits:]):
		s.dst = append(bytes.TrimRight(s.dst, " "), ' ') // a shell aligns the number
		s.put(markNumber, digits)
		return
	case digits == lenToken(rest):
		if s.i < s.count || digits >= 9 || s.varies(rest, digits) {
			s.put(markNumber, digits)
			return
		}
		s.copy(digits)
		return
	}
	s.token(lenToken(rest))
}

// isEnding reports what a shell prints behind the process id of a program that a signal
// ended, as in "line 9:    71 Killed                  node main.js".
func isEnding(b []byte) bool {
	return slices.ContainsFunc(endings, func(e string) bool { return has(b, e) })
}

var endings = []string{" Killed  ", " Terminated  ", " Aborted  ", " Segmentation fault  ", " Bus error  ", " Illegal instruction  "}

// varies reports a number that is a port the system or a program picked on this
// machine, a measured amount, an index between two names as in "tools.31.input" and
// "tools[31].input", or the process id in "(31 - Relay)".
func (s *scrubber) varies(rest []byte, digits int) bool {
	number := rest[:digits]
	if endsIn(s.dst, loopback+":") && digits == 5 && string(number) >= "32768" {
		return true
	}
	if picked := s.pickedPort(); len(picked) > 0 && string(number) == string(picked) {
		return true
	}
	after := rest[digits:]
	if has(after, "]:") && s.i >= 2 && s.src[s.i-1] == '[' && (isWordByte(s.src[s.i-2]) || s.src[s.i-2] == ')') {
		return true // the process id of a program that logs as syslog does
	}
	if isMeasured(after) || isMonth(after) || has(after, ")") && s.follows(" (") && s.afterHolder() {
		return true
	}
	if s.i < 2 {
		return false
	}
	before := s.src[s.i-2 : s.i]
	return before[1] == '.' && isLower(before[0]) && len(after) > 1 && after[0] == '.' && isLower(after[1]) ||
		before[1] == '[' && isWordByte(before[0]) && has(after, "].") || before[1] == '(' && has(after, " - ")
}

// measures follow amounts that were measured.
var measures = newWordSet(`tokens retries credits left remaining bytes chars characters kib mib gib kb mb gb Ki Mi Gi Ti KiB MiB GiB kB KB MB GB`)

// sizes stand behind a number without a blank, as in 498M.
var sizes = newWordSet(`k K M G T Ki Mi Gi Ti`)

// isMeasured reports whether what follows a number makes it an amount.
func isMeasured(after []byte) bool {
	unit := bytes.TrimPrefix(after, []byte(" "))
	return measures.has(unit[:lenToken(unit)])
}
