package rules

import "bytes"

// address writes an IPv4 address. One that a name resolved to, in parentheses, one of
// a resolver and one that somebody calls from vary; others are destinations.
func (s *scrubber) address(n int) {
	switch {
	case has(s.src[s.i:], "127."):
		s.host(n)
	case s.follows("Local ("): // the source of a connection, as Node writes it
		s.put(markNumber, n)
		if s.i < len(s.src) && s.src[s.i] == ':' {
			s.i += 1 + lenDigits(s.src[s.i+1:])
		}
	case s.i > 0 && s.src[s.i-1] == '(' && s.i+n < len(s.src) && s.src[s.i+n] == ')',
		s.follows(" for "), s.follows(" from "), s.follows(" on "), s.follows("peer ipv4:"), s.isCaller(s.src[s.i+n:]):
		s.put(markNumber, n)
	default:
		s.copy(n)
	}
}

// caller writes the host of 'user'@'host', as a database names who it refuses.
func (s *scrubber) caller() {
	end := bytes.IndexByte(s.src[s.i+1:], '\'')
	if end < 0 {
		end = len(s.src) - s.i - 1
	}
	s.copy(1)
	s.put(markNumber, end)
}

// callerWords stand before the address of somebody who is refused, or of this machine.
var callerWords = []string{`for host "`, "ip address ", "ip address '", "client ip ", "client ip: ", "your ip ", "your ip: ", "client: ",
	"localaddress: '"}

// isCaller reports an address that somebody calls from, by the words before it or,
// for a host in quotes, by those after it.
func (s *scrubber) isCaller(after []byte) bool {
	before := s.low[:s.i]
	for _, words := range callerWords {
		if bytes.HasSuffix(before, []byte(words)) {
			return true
		}
	}
	return bytes.HasSuffix(before, []byte("host '")) && (has(after, "' is not allowed") || has(after, "' is blocked"))
}
