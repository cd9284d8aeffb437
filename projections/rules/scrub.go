package rules

import (
	"bytes"
	"strings"
)

// What stands in a scrubbed text for what was there.
const (
	markTime   = "<time>"
	markSpan   = "<duration>"
	markNumber = "<n>"
	markID     = "<id>"
	markTemp   = "<tmp>"
	markCache  = "<cache>"
	loopback   = "localhost"
)

// appendScrubbed appends a line to dst without what varies from one occurrence of a
// failure to the next: times and durations, process ids and counters, addresses,
// hex digits and uuids, source ports, line numbers, the folders of temporary files,
// caches and homes. It keeps what tells failures apart: names, versions, hosts,
// destination ports, files, exit codes, and dates that are no times.
func (r *reading) appendScrubbed(dst []byte, line span) []byte {
	s := scrubber{reading: r, src: r.bytes(line), low: r.lower(line), dst: dst, start: len(dst)}
	for s.i < len(s.src) {
		s.step()
	}
	return s.dst
}

type scrubber struct {
	*reading
	src   []byte
	low   []byte // src with ASCII letters in lower case
	i     int
	dst   []byte
	start int // where this line begins in dst
	count int // a number up to this offset counts something or names a place
	ident int // a token up to this offset is an id
}

// step takes what is plain at i, or the part that is not.
func (s *scrubber) step() {
	if n := s.lenPlain(); n > 0 {
		s.copy(n)
		return
	}
	s.part()
}

// part takes what may vary at i, or one byte.
func (s *scrubber) part() {
	c := s.src[s.i]
	fresh := s.i == 0 || !isWordByte(s.src[s.i-1])
	switch {
	case s.src[0] == '{' && s.lenOfRecord() > 0:
		s.put(markNumber, s.lenOfRecord())
	case fresh && !isLower(c) && lenCode(s.src[s.i:]) >= 6 && s.afterCodeWords():
		s.put(markID, lenCode(s.src[s.i:]))
	case fresh && (s.i < s.ident || isWideChain(s.src[s.i:])) && lenHexChain(s.src[s.i:]) > 0:
		s.put(markID, lenHexChain(s.src[s.i:]))
	case fresh && isWordByte(c) && lenStampedID(s.src[s.i:]) > 0:
		s.put(markID, lenStampedID(s.src[s.i:]))
	case c == '[' && lenBar(s.src[s.i:]) > 0:
		s.put(markNumber, lenBar(s.src[s.i:]))
	case c == '[' && lenReceipt(s.src[s.i:]) > 0:
		s.put(markID, lenReceipt(s.src[s.i:]))
	case fresh && isDigit(c):
		s.number()
	case fresh && isWordByte(c):
		s.word()
	case (c == '/' || c == '~') && s.startsPath():
		s.path()
	case c == '[' && has(s.src[s.i:], "[::1]"):
		s.host(len("[::1]"))
	case c == ':' && has(s.src[s.i:], "::1") && fresh && !s.wordAt(s.i+3):
		s.host(3)
	case c == '\'' && s.follows("'@"):
		s.caller()
	case c == '(' && lenThread(s.src[s.i:]) > 0:
		s.i += lenThread(s.src[s.i:])
	case c == '-' && s.i < s.count && s.i+1 == len(s.src):
		s.put(markTime, 1) // "elapsed: -", of what came to nothing
	case c == '-' && has(s.src[s.i:], "->") && s.afterPort():
		s.dropSource()
	default:
		s.copy(1)
	}
}

// lenPlain returns the length of what follows that certainly does not vary, as most text.
func (s *scrubber) lenPlain() int {
	i := s.i
	for i < len(s.src) {
		n := 1
		if !plainBytes[s.src[i]] {
			if n = s.lenPlainWord(i); n == 0 {
				break
			}
		}
		i += n
	}
	return i - s.i
}

// lenPlainWord returns the length of the word of small letters at i; 0 when there is none,
// or when it may matter what it is.
func (s *scrubber) lenPlainWord(i int) int {
	if i < s.ident || i > 0 && (isWordByte(s.src[i-1]) || s.src[i-1] == '.' || s.src[i-1] == '-') {
		return 0
	}
	end := i
	for end < len(s.src) && isLower(s.src[end]) {
		end++
	}
	n, rest := end-i, s.src[end:]
	switch {
	case len(rest) > 0 && isWordByte(rest[0]):
		return 0
	case len(rest) > 1 && rest[0] == ':' && rest[1] != ' ', n == 8 && has(rest, "-"): // a URL, a drive, an id
		return 0
	case counted.has(s.src[i:end]), named.has(s.src[i:end]):
		return 0
	}
	return n
}

// plainBytes are no part of a word, and nothing that varies begins with one of them.
var plainBytes = func() (table [256]bool) {
	for c := range table {
		table[c] = !isWordByte(byte(c)) && !strings.ContainsRune("[/~:'(-\"", rune(c))
	}
	return table
}()

func (s *scrubber) copy(n int) {
	s.dst = append(s.dst, s.src[s.i:s.i+n]...)
	s.i += n
}

func (s *scrubber) put(mark string, n int) {
	s.dst = append(s.dst, mark...)
	s.i += n
}

// follows reports whether the text read so far ends with words.
func (s *scrubber) follows(words string) bool { return endsIn(s.src[:s.i], words) }

func (s *scrubber) wordAt(i int) bool { return i < len(s.src) && isWordByte(s.src[i]) }

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

// token handles a run of letters and digits.
func (s *scrubber) token(n int) {
	t := s.src[s.i : s.i+n]
	switch {
	case has(t, "0x") && n > 2:
		s.put(markNumber, n)
	case isRandom(t) || s.i < s.ident && n >= 6 && hasDigit(t):
		named := s.i < s.ident
		s.put(markID, n)
		s.i += lenFraction(s.src[s.i:]) // as in 5cfd3ba1f2csm1234567a12.34, a mail's
		if named {
			s.i += lenBase64(s.src[s.i:])
		}
	case s.endsPod(t), isDrawnName(t, s.src[s.i+n:]):
		s.put(markID, n)
	default:
		s.copy(n)
	}
}

// reach is how far behind a word its number may stand, in bytes.
const reach = 6

// counted are the words before numbers that count something or name a place in a
// file; named are those before ids.
var (
	counted = newWordSet(`pid process line lineno column col position offset attempt attempts retry retries thread goroutine worker
		iteration try laststreamid xid used remaining while requested fd socket processed indexed embedded scanned elapsed duration latency elapsed_ms duration_ms latency_ms localport byteswritten bytesread connection conn connid conn_id connection_id transaction jan feb mar apr jun jul aug sep oct nov dec took after rtt active queued tasks`)
	named = newWordSet(`id request_id requestid trace_id traceid session_id sessionid correlation_id correlationid ray span_id nonce state
		request-id trace-id session-id hostid host_id req job task execution`)
)

// word handles what begins with a letter.
func (s *scrubber) word() {
	rest := s.src[s.i:]
	n := lenToken(rest)
	if lenUUID(rest) > 0 {
		s.put(markID, lenUUID(rest))
		return
	}
	if has(rest[n:], "://") {
		s.url(n + len("://"))
		return
	}
	if n == 1 && len(rest) > 3 && rest[1] == ':' && rest[2] == '\\' {
		s.path()
		return
	}
	w := s.low[s.i : s.i+n]
	if counted.has(w) {
		s.count = s.i + n + reach + lenOfWhat(rest[n:])
	}
	if named.has(w) {
		s.ident = s.i + n + reach
	}
	if n == 3 && isDatePart(rest) {
		s.put(markTime, n)
		if has(rest[n:], "  ") { // before a day of one digit
			s.i++
		}
		return
	}
	s.token(n)
	if n <= 5 && s.i >= n+1 && s.src[s.i-n-1] == '.' && sourceSuffixes.has(rest[:n]) {
		s.skipPlace()
	}
}

// host writes one name for this machine.
func (s *scrubber) host(n int) { s.put(loopback, n) }

// sourceSuffixes end the names of source files, which a line number may follow.
var sourceSuffixes = newWordSet(`js ts mjs cjs jsx tsx py go rs java rb php cs c cc cpp kt lua ex exs swift`)

// skipPlace passes over ":12:5" behind the name of a source file.
func (s *scrubber) skipPlace() {
	for range 2 {
		if s.i+1 < len(s.src) && s.src[s.i] == ':' && isDigit(s.src[s.i+1]) {
			s.i += 1 + lenDigits(s.src[s.i+1:])
		}
	}
}

// afterPort reports whether the text so far ends with a port, or the mark of one, so that
// an arrow leads from a source address to its destination, a word or an address in
// brackets.
func (s *scrubber) afterPort() bool {
	if s.i == 0 {
		return false
	}
	before, after := s.src[s.i-1], s.src[s.i+len("->"):]
	return before == '>' || isDigit(before) && len(after) > 0 && (isWordByte(after[0]) || after[0] == '[')
}

// dropSource takes back the source address before an arrow.
func (s *scrubber) dropSource() {
	keep := s.start
	if i := bytes.LastIndexByte(s.dst[s.start:], ' '); i >= 0 {
		keep += i + 1
	}
	s.dst = append(s.dst[:keep], markNumber...)
	s.copy(len("->"))
}
