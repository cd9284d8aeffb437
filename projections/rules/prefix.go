package rules

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// level is the level of a log record.
type level uint8

const (
	levelNone level = iota
	levelInfo
	levelWarn
	levelError
)

// levels are the words of log levels, in lower case.
var levels = map[string]level{
	"trace": levelInfo, "debug": levelInfo, "dbg": levelInfo, "verbose": levelInfo, "info": levelInfo, "inf": levelInfo,
	"information": levelInfo, "notice": levelInfo, "warn": levelWarn, "warning": levelWarn, "wrn": levelWarn,
	"error": levelError, "err": levelError, "eror": levelError, "fatal": levelError, "critical": levelError,
	"crit": levelError, "severe": levelError, "panic": levelError, "alert": levelError, "emerg": levelError,
}

// maxTagBytes bounds a [tag] in front of a log line, in bytes.
const maxTagBytes = 40

// maxPlaceBytes bounds the time, process id and file of a glog record, in bytes.
const maxPlaceBytes = 120

// stripPrefix returns where what a log line says begins, behind its indent, times,
// process ids, [tags] and logger names, and the level it gives. stamped says that it
// has such a prefix.
func stripPrefix(raw []byte) (at int, lvl level, stamped bool) {
	p := prefix{raw: raw}
	for p.step() {
	}
	return p.at, p.level, p.stamped
}

// prefix walks the beginning of a log line.
type prefix struct {
	raw     []byte
	at      int
	level   level
	stamped bool
	dashed  bool // a time was seen and logger names may follow between dashes
	logger  bool // the id of a process was seen, and the name of a logger may follow before a colon
}

// step passes over one part of the prefix; false when what follows is content.
func (p *prefix) step() bool {
	if p.at >= len(p.raw) {
		return false
	}
	switch c := p.raw[p.at]; {
	case c == ' ':
		p.at++
	case c == '[':
		return p.tag()
	case c >= 0x80:
		return p.symbol()
	case p.event(), p.priority(), p.stamped && (p.client() || p.process()):
	case '0' <= c && c <= '9':
		return p.time()
	case p.glog():
	case p.stamped && (c == '-' || c == '|' || c == ':'):
		p.at++
	case isWordByte(c):
		return p.word()
	default:
		return false
	}
	return true
}

// browserTag passes over "[4711:1124/081522.119000:ERROR:gpu_init.cc(90)] ", as what is
// built on Chromium begins its records: ids, a time, the level and a place in the source.
func (p *prefix) browserTag() bool {
	rest := p.raw[p.at:]
	end := bytes.Index(rest[:min(len(rest), maxPlaceBytes)], []byte(")] "))
	if end < 0 || !isDigit(rest[end-1]) {
		return false
	}
	parts := bytes.Split(rest[1:end], []byte(":"))
	if len(parts) < 3 {
		return false
	}
	when, lvl := parts[len(parts)-3], levelOf(parts[len(parts)-2])
	if lvl == levelNone || !fits(when, "9999/999999") {
		return false
	}
	p.level, p.stamped = lvl, true
	p.at += end + len(")] ")
	return true
}

// tag passes over [..] unless the line has nothing behind it.
func (p *prefix) tag() bool {
	if p.browserTag() {
		return true
	}
	for i := p.at + 1; i < len(p.raw) && i-p.at <= maxTagBytes; i++ {
		if p.raw[i] != ']' {
			continue
		}
		if i+1 >= len(p.raw) || p.raw[p.at+1] == '{' || string(p.raw[p.at:i+1]) == "[cause]" {
			return false
		}
		switch tag := p.raw[p.at+1 : i]; {
		case relays(tag):
			p.level = levelNone
		case levelOf(tag) != levelNone:
			p.level = levelOf(tag)
		}
		p.stamped = true
		p.at = i + 1
		return true
	}
	return false
}

// symbol passes over a cross, a dot or another sign that is no letter of a word.
func (p *prefix) symbol() bool {
	end := p.at
	for end < len(p.raw) && p.raw[end] >= 0x80 {
		end++
	}
	if end >= len(p.raw) || p.raw[end] != ' ' {
		return false
	}
	if r, _ := utf8.DecodeRune(p.raw[p.at:]); r < 0x2000 || unicode.IsLetter(r) { // signs come behind most scripts
		return false
	}
	p.at = end
	return true
}

// glogLevel returns the level for which a letter stands where it begins the records of
// glog and what writes as it does.
func glogLevel(c byte) level {
	switch c {
	case 'I':
		return levelInfo
	case 'W':
		return levelWarn
	case 'E', 'F':
		return levelError
	default:
		return levelNone
	}
}

// glog passes over "E1130 10:02:01.200000    7 main.go:50] ", and over what stands
// of it behind a time of another kind, "E main.go:50] ".
func (p *prefix) glog() bool {
	lvl, rest := glogLevel(p.raw[p.at]), p.raw[p.at+1:]
	if lvl == levelNone || !fits(rest, "9999 99:99:99") && !(p.dashed && has(rest, " ")) {
		return false
	}
	end := bytes.Index(rest[:min(len(rest), maxPlaceBytes)], []byte("] "))
	if end < 2 || !isDigit(rest[end-1]) {
		return false
	}
	p.level, p.stamped = lvl, true
	p.at += 1 + end + len("] ")
	return true
}

// time passes over a time or a date; other numbers are content.
func (p *prefix) time() bool {
	n := lenTime(p.raw[p.at:])
	if n == 0 {
		return false
	}
	p.at += n
	p.stamped, p.dashed = true, true
	return true
}

// word passes over a level in capitals or before a colon, and over the logger name
// between a time and a dash. A level word at the end of the prefix stays content
// when a colon follows, for "error:" is part of what many programs say.
func (p *prefix) word() bool {
	end := p.at
	upper := true
	for end < len(p.raw) && (isWordByte(p.raw[end]) || p.raw[end] == '.' || p.dashed && p.raw[end] == '-') {
		upper = upper && (p.raw[end] < 'a' || p.raw[end] > 'z')
		end++
	}
	follows := byte(' ')
	if end < len(p.raw) {
		follows = p.raw[end]
	}
	if upper && follows == ' ' || follows == ':' {
		if lvl := levelOf(p.raw[p.at:end]); lvl != levelNone {
			p.level = lvl
			if follows == ':' {
				return false
			}
			p.at, p.stamped = end, true
			return true
		}
	}
	rest := p.raw[end:]
	if p.dashed && has(rest, " - ") || p.logger && has(rest, " ") && has(bytes.TrimLeft(rest, " "), ": ") {
		p.at = end
		return true
	}
	return false
}

// levelOf returns the level that a word is; levelNone when it is none.
func levelOf(w []byte) level {
	var low [len("information")]byte
	if len(w) > len(low) {
		return levelNone
	}
	lowerBytes(low[:], w)
	return levels[string(low[:len(w)])]
}

// lenTime returns the length of the date, time or both that b begins with; 0 when it
// begins with something else.
func lenTime(b []byte) int {
	if compact := "99999999T999999"; fits(b, compact) {
		n := len(compact)
		if has(b[n:], "Z") {
			n++
		}
		return n
	}
	n := lenDate(b)
	if n > 0 && n < len(b) && (b[n] == 'T' || b[n] == ' ' || b[n] == '_') {
		if t := lenClock(b[n+1:]); t > 0 {
			return n + 1 + t
		}
	}
	if n > 0 {
		return n
	}
	return lenClock(b)
}

// lenDate returns the length of 2006-01-02, 2006/01/02, 02.01.2006, 01/02/06 and the like.
func lenDate(b []byte) int {
	for _, form := range []string{"9999-99-99", "9999/99/99", "99/99/9999", "99.99.9999", "99/99/99"} {
		if fits(b, form) {
			return len(form)
		}
	}
	return 0
}

// weekdays and months are parts of dates, as in "Mon, 2 Jan 2006" and "Mon Jan 2".
var (
	weekdays = newWordSet(`Mon Tue Wed Thu Fri Sat Sun`)
	months   = newWordSet(`Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec`)
)

// isDatePart reports a weekday before a date, or a month before a day or a year.
func isDatePart(b []byte) bool {
	after := b[3:]
	if weekdays.has(b[:3]) {
		return isMonth(after) || has(after, ", ")
	}
	day := bytes.TrimPrefix(after, []byte(" "))
	day = bytes.TrimPrefix(day, []byte(" ")) // before one of one digit
	return months.has(b[:3]) && len(day) < len(after) && len(day) > 0 && isDigit(day[0])
}

// isMonth reports whether what follows begins with a month's name and a space.
func isMonth(after []byte) bool {
	return len(after) > 4 && after[0] == ' ' && after[4] == ' ' && months.has(after[1:4])
}

// lenClock returns the length of 15:04:05 with its fraction and zone.
func lenClock(b []byte) int {
	const form = "99:99:99"
	if !fits(b, form) && !fits(b, "99_99_99") { // the latter in names of log files
		return 0
	}
	n := len(form)
	if n+1 < len(b) && (b[n] == '.' || b[n] == ',' || b[n] == '_') && isDigit(b[n+1]) {
		for n++; n < len(b) && isDigit(b[n]); n++ {
		}
	}
	switch {
	case n < len(b) && b[n] == 'Z':
		n++
	case fits(b[n:], "+99:99") || fits(b[n:], "-99:99"):
		n += 6
	case fits(b[n:], "+9999") || fits(b[n:], "-9999"):
		n += 5
	case has(b[n:], " AM"), has(b[n:], " PM"):
		n += len(" AM")
	}
	return n
}

// fits reports whether b begins with form, where a 9 stands for any digit.
func fits(b []byte, form string) bool {
	if len(b) < len(form) {
		return false
	}
	for i := range len(form) {
		if form[i] == '9' && isDigit(b[i]) || form[i] != '9' && form[i] == b[i] {
			continue
		}
		return false
	}
	return len(b) == len(form) || !isDigit(b[len(form)]) || !isDigit(form[len(form)-1])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
