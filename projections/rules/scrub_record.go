package rules

import (
	"bytes"
	"slices"
)

// recordKeys are the keys under which a log record says when, where, by which process
// and for which request it was written. The host of an address stands in the record's
// message too.
var recordKeys = newWordSet(`hostname machinename pid processid process_id process tid threadid thread_id thread ts time
	timestamp uptime elapsed elapsed_ms duration duration_ms latency latency_ms responsetime
	requestid request_id reqid req_id traceid trace_id spanid span_id correlationid correlation_id`)

// recordEndings end keys of a record's numbers that were measured or counted, whatever was,
// such as retryTime and bytes_read_count.
var recordEndings = [][]byte{[]byte("time"), []byte("count"), []byte("bytes"), []byte("ms"), []byte("attempt"), []byte("attempts"), []byte("retries"),
	[]byte("connid"), []byte("connectionid")}

// lenOfRecord returns the length of the string or number that begins here, if it is
// the value of one of the recordKeys of a JSON record.
func (s *scrubber) lenOfRecord() int {
	c := s.src[s.i]
	if c != '"' && !isDigit(c) {
		return 0
	}
	before := bytes.TrimRight(s.low[:s.i], " ")
	key, ok := bytes.CutSuffix(before, []byte(`":`))
	if !ok {
		return 0
	}
	key = key[bytes.LastIndexByte(key, '"')+1:]
	if !recordKeys.has(key) && (c == '"' || !isMeasuredKey(key)) {
		return 0
	}
	if c == '"' {
		return min(closingQuote(s.src, s.i)+1, len(s.src)) - s.i
	}
	n := lenDigits(s.src[s.i:])
	return n + lenFraction(s.src[s.i+n:])
}

// isMeasuredKey reports the key of a number that was measured or counted, unlike one that
// somebody set as a limit.
func isMeasuredKey(key []byte) bool {
	if bytes.Contains(key, []byte("timeout")) || bytes.HasPrefix(key, []byte("max")) {
		return false
	}
	return slices.ContainsFunc(recordEndings, func(ending []byte) bool { return bytes.HasSuffix(key, ending) })
}
