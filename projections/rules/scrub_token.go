package rules

import "bytes"

// lenIPv4 returns the length of the IPv4 address that b begins with.
func lenIPv4(b []byte) int {
	n := 0
	for part := range 4 {
		if part > 0 {
			if n >= len(b) || b[n] != '.' {
				return 0
			}
			n++
		}
		digits := lenDigits(b[n:])
		if digits == 0 || digits > 3 {
			return 0
		}
		n += digits
	}
	if n < len(b) && (isWordByte(b[n]) || b[n] == '.' && n+1 < len(b) && isDigit(b[n+1])) {
		return 0
	}
	return n
}

// lenThread returns the length of the id of a thread that panicked and the space behind
// it, "(4711) panicked", which newer versions of Rust write behind the thread's name.
func lenThread(b []byte) int {
	n := 1 + lenDigits(b[1:])
	if n == 1 || !has(b[n:], ") panicked") {
		return 0
	}
	return n + len(") ")
}

// maxSpanParts is how many parts a duration has at most: 1h2m3s4ms.
const maxSpanParts = 4

// lenLongSpan returns the length of a duration such as 12m30s or 1h2m3.5s.
func lenLongSpan(b []byte) int {
	n, parts := 0, 0
	for n < len(b) && isDigit(b[n]) && parts < maxSpanParts {
		n += lenDigits(b[n:])
		n += lenFraction(b[n:])
		if n >= len(b) || b[n] != 'h' && b[n] != 'm' && b[n] != 's' {
			return 0
		}
		n++
		if n < len(b) && b[n-1] == 'm' && b[n] == 's' {
			n++
		}
		parts++
	}
	if parts < 2 || n < len(b) && isWordByte(b[n]) {
		return 0
	}
	return n
}

// lenShortClock returns the length of minutes, seconds and their fraction, "00:07.104817".
func lenShortClock(b []byte) int {
	const form = "99:99."
	if !fits(b, form) || lenDigits(b[len(form):]) == 0 {
		return 0
	}
	return len(form) + lenDigits(b[len(form):])
}

func lenDigits(b []byte) int {
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}

func lenToken(b []byte) int {
	n := 0
	for n < len(b) && isWordByte(b[n]) {
		n++
	}
	return n
}

// lenFraction returns the length of ".25"; 0 when more numbers follow, as in a
// version or an address.
func lenFraction(b []byte) int {
	if len(b) < 2 || b[0] != '.' || !isDigit(b[1]) {
		return 0
	}
	n := 1 + lenDigits(b[1:])
	if n+1 < len(b) && b[n] == '.' && isDigit(b[n+1]) {
		return 0
	}
	return n
}

// units are those of durations; wideUnits those of languages that have other letters, of
// which none begins with one that stands behind it.
var (
	units = newWordSet(`ms s sec secs second seconds min mins minute minutes h hr hour hours us ns
		segundo segundos minuto minutos hora horas seconde secondes heure heures sekunde sekunden minuten stunde stunden
		secondo secondi minuti ora ore sekund minut saniye dakika saat seconden`)
	wideUnits = [][]byte{
		[]byte("毫秒"), []byte("秒"), []byte("分钟"), []byte("分鐘"), []byte("分"), []byte("小时"), []byte("小時"), []byte("時間"), []byte("초"), []byte("분"), []byte("시간"),
		[]byte("секунды"), []byte("секунду"), []byte("секунд"), []byte("минуты"), []byte("минуту"), []byte("минут"), []byte("часа"), []byte("часов"),
	}
)

// lenUnit returns the length of a unit of time, with the space before it.
func lenUnit(b []byte) int {
	i := 0
	if i < len(b) && b[i] == ' ' {
		i++
	}
	for _, unit := range wideUnits {
		if i < len(b) && b[i] == unit[0] && bytes.HasPrefix(b[i:], unit) {
			return i + len(unit)
		}
	}
	n := lenToken(b[i:])
	if n == 0 || n > len("sekunden") {
		return 0
	}
	if i == 1 && n == 1 { // "1 s" is a unit no more often than a word
		return 0
	}
	if !units.has(b[i : i+n]) {
		return 0
	}
	return i + n
}

// lenUUID returns 36 when b begins with a uuid.
func lenUUID(b []byte) int {
	const form = "00000000-0000-0000-0000-000000000000"
	if len(b) < len(form) || len(b) > len(form) && isWordByte(b[len(form)]) {
		return 0
	}
	for i := range len(form) {
		if form[i] == '-' && b[i] != '-' || form[i] != '-' && !isHex(b[i]) {
			return 0
		}
	}
	return len(form)
}

// maxChainBytes bounds an id of hex digits with colons between them.
const maxChainBytes = 128

// lenHexChain returns the length of an id such as E1A0:3D4F2A:1B9C8D7, hex digits
// with colons between them.
func lenHexChain(b []byte) int {
	n, colons := 0, 0
	for n < min(len(b), maxChainBytes) && (isHex(b[n]) || b[n] == ':') {
		if b[n] == ':' {
			colons++
		}
		n++
	}
	if colons < 2 || n < 12 || n < len(b) && isWordByte(b[n]) {
		return 0
	}
	return n
}

// isWideChain reports a chain of which two parts have more digits than those of an address,
// or of a fingerprint.
func isWideChain(b []byte) bool {
	wide, digits := 0, 0
	for _, c := range b[:min(len(b), maxChainBytes)] {
		switch {
		case isHex(c):
			digits++
		case c == ':':
			digits = 0
		default:
			return false
		}
		if digits == 5 {
			wide++
		}
		if wide == 2 {
			return true
		}
	}
	return false
}

// maxBarBytes bounds a drawn progress bar.
const maxBarBytes = 160

// lenBar returns the length of a drawn progress bar, [====>    ].
func lenBar(b []byte) int {
	end := bytes.IndexByte(b[:min(len(b), maxBarBytes)], ']')
	if end < 6 || len(bytes.Trim(b[1:end], "=#>-. ")) > 0 || !bytes.ContainsAny(b[1:end], "=#>") {
		return 0
	}
	return end + 1
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func hasDigit(b []byte) bool {
	for _, c := range b {
		if isDigit(c) {
			return true
		}
	}
	return false
}

// endsPod reports the five characters that end the name of a pod, behind the hash of
// what it was made from: "crm-6d4b8xk7z9-x2k4j".
func (s *scrubber) endsPod(t []byte) bool {
	if len(t) != 5 || s.i < 1 || s.src[s.i-1] != '-' || !isPodPart(t) {
		return false
	}
	hash := s.src[:s.i-1]
	hash = hash[bytes.LastIndexByte(hash, '-')+1:]
	return (len(hash) == 9 || len(hash) == 10) && isPodPart(hash) && hasDigit(hash)
}

// isPodPart reports a token of the letters and digits that names of pods are drawn from.
func isPodPart(t []byte) bool { return onlyOf(t, "bcdfghjklmnpqrstvwxz2456789") }

// isDrawnName reports the two words that a container engine draws for the name of a
// container, "sleepy_curie", by the container's id that stands in brackets behind it.
func isDrawnName(t, after []byte) bool {
	if !has(after, " (") || bytes.Count(t, []byte("_")) != 1 || !onlyOf(t, "_abcdefghijklmnopqrstuvwxyz") {
		return false
	}
	id := after[len(" ("):]
	return len(id) >= lenContainerID && onlyOf(id[:lenContainerID], "0123456789abcdef")
}

// lenContainerID is the length of the id of a container or an image where it is not cut.
const lenContainerID = 64

// leastSwitches is how often a drawn id of small letters changes between letters and digits.
const leastSwitches = 8

// isRandom reports a token that looks drawn: eight or more hex digits of both kinds,
// sixteen characters with capitals, small letters and digits among them, twenty
// capitals and digits, or sixteen characters that change again and again between letters
// and digits.
func isRandom(t []byte) bool {
	if len(t) < 8 || !hasDigit(t) {
		return false
	}
	digits, upper, lower, hex, switches := 0, 0, 0, 0, 0
	for i, c := range t {
		if i > 0 && isDigit(c) != isDigit(t[i-1]) {
			switches++
		}
		switch {
		case isDigit(c):
			digits++
		case 'A' <= c && c <= 'Z':
			upper++
		case 'a' <= c && c <= 'z':
			lower++
		}
		if isHex(c) {
			hex++
		}
	}
	n := len(t)
	switch {
	case hex == n:
		return digits >= 2 && digits < n
	case n >= 20 && upper+digits == n:
		return upper >= 4 && digits >= 4
	case n < 16 || digits < 2:
		return false
	}
	return upper >= 2 && lower >= 2 || digits+upper+lower == n && switches >= leastSwitches
}
