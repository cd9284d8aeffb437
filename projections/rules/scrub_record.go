package rules

import "bytes"

// recordKeys are the keys under which a log record says when, where and by which
// process it was written. The host of an address stands in the record's message too.
var recordKeys = newWordSet(`hostname machinename pid processid process_id process tid threadid thread_id thread ts time
	timestamp uptime elapsed elapsed_ms duration duration_ms latency latency_ms responsetime`)

// lenOfRecord returns the length of the string or number that begins here, if it is
// the value of one of the recordKeys of a JSON record.
func (s *scrubber) lenOfRecord() int {
	c := s.src[s.i]
	if c != '"' && !isDigit(c) {
		return 0
	}
	before := bytes.TrimRight(s.low[:s.i], " ")
	key, ok := bytes.CutSuffix(before, []byte(`":`))
	if !ok || !recordKeys.has(key[bytes.LastIndexByte(key, '"')+1:]) {
		return 0
	}
	if c == '"' {
		return min(closingQuote(s.src, s.i)+1, len(s.src)) - s.i
	}
	n := lenDigits(s.src[s.i:])
	return n + lenFraction(s.src[s.i+n:])
}
