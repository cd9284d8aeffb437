package rules

import "bytes"

// quoting remembers a quotation that goes over several lines.
type quoting struct{ open bool }

// quotes reports a line that quotes what somebody asked for, or how an answer was sent, low
// being all of it but its indent, in lower case. Such a line may hold any words, and none of
// them is about the failure: a statement with its parameters, as SQLAlchemy shows them below
// an error, the line of a statement that PostgreSQL points into, the headers of an answer in
// what generated clients print.
func (q *quoting) quotes(raw, low []byte) bool {
	switch first := low[0]; {
	case !q.open && first != '[' && first != '(' && first != 'h' && first != 'l':
		return false // as most lines
	case q.open, has(low, "[sql: "), has(low, "[parameters: "), has(low, "[cached since "):
		q.open = !endsIn(low, "]")
		return true
	case has(low, "(background on this error at"), has(low, headersLabel):
		return true
	case has(raw, "LINE "):
		place := raw[len("LINE "):]
		n := lenDigits(place)
		return n > 0 && has(place[n:], ": ")
	}
	return false
}

// What generated clients write before the headers, in lower case, and before the body of an
// answer, as they write it.
const (
	headersLabel = "http response headers:"
	bodyLabel    = "HTTP response body:"
)

// leastID is how long a line of one word is at least that is taken for an id of a request,
// in bytes, and leastIDDigits how many of them are digits.
const (
	leastID       = 16
	leastIDDigits = 8
)

// isID reports a line that is the id of a request and no more, as the pages of hosts end in
// one: "fra1::2mk7x-1764494062118-9f0c1d2e3b4a".
func isID(low []byte) bool {
	digits := 0
	for _, c := range low {
		switch {
		case isDigit(c):
			digits++
		case !isLower(c) && c != '-' && c != ':' && c != '_':
			return false
		}
	}
	return len(low) >= leastID && digits >= leastIDDigits && bytes.ContainsAny(low, "-:")
}
