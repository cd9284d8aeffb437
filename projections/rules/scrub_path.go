package rules

import (
	"bytes"
	"strings"
)

// startsPath reports whether a path begins here: a slash or ~/ that no word, host or
// other slash comes before.
func (s *scrubber) startsPath() bool {
	if s.i > 0 {
		if c := s.src[s.i-1]; isWordByte(c) || c == '/' || c == '.' || c == '@' || c == '>' || c >= 0x80 {
			return false
		}
	}
	if s.src[s.i] == '~' {
		return s.i+1 < len(s.src) && s.src[s.i+1] == '/'
	}
	return s.i+1 < len(s.src) && (isWordByte(s.src[s.i+1]) || s.src[s.i+1] == '.' || s.src[s.i+1] == '_' || s.src[s.i+1] == '@')
}

// lenPath returns how far a path goes: to a space, a quote, a bracket, or the colon
// before a line number or a message.
func lenPath(b []byte) int {
	for i, c := range b {
		switch c {
		case ' ', '"', '\'', '`', ')', ']', '}', ',', ';', '<', '>', '|', '?':
			return i
		case ':':
			if i == 1 { // a drive
				continue
			}
			return i
		}
	}
	return len(b)
}

// path writes the path that begins here, and passes over its line number.
func (s *scrubber) path() {
	n := lenPath(s.src[s.i:])
	p := s.src[s.i : s.i+n]
	program := len(s.dst) == s.start && s.i+n < len(s.src) && s.src[s.i+n] == ':'
	s.i += n
	s.dst = appendPath(s.dst, p, program)
	s.skipPlace()
}

// appendPath writes a path without the folders that differ between machines and
// runs. Of a program, which is a line's first word before a colon or lies in a bin
// folder, and of a shared library the name is enough.
func appendPath(dst, p []byte, program bool) []byte {
	base := p[bytes.LastIndexAny(p, `/\`)+1:]
	switch {
	case len(base) > 0 && (program || bytes.HasSuffix(p[:len(p)-len(base)], []byte("/bin/"))):
		return append(dst, base...)
	case bytes.Contains(base, []byte(".so")):
		return appendSegment(dst, base)
	case cutAfter(&p, "/site-packages/"), cutAfter(&p, "/dist-packages/"), cutAfter(&p, "/node_modules/"):
		dst = append(dst, markCache...)
	case cutAfter(&p, "/_npx/"), cutAfter(&p, "/_cacache/"), cutAfter(&p, "/_logs/"):
		return append(dst, markCache...)
	case cutAfter(&p, "/uv/"), cutAfter(&p, "/go-build"), cutAfter(&p, "/go/pkg/mod/"):
		dst = append(dst, markCache...)
		dropFirst(&p, has(p, "archive-v0/"))
	case has(p, "/proc/"): // by process and descriptor
		return append(dst, "/proc"...)
	case cutTemp(&p):
		dst = append(dst, markTemp...)
		if from, to := drawnIn(p); from < to {
			dst = append(append(dst, p[:from]...), markID...)
			p = p[to:]
		}
	case cutHome(&p):
		dst = append(dst, '~')
	}
	return appendSegments(dst, p)
}

// cutAfter cuts p to what follows the last occurrence of folder, and one slash.
func cutAfter(p *[]byte, folder string) bool {
	i := bytes.LastIndex(*p, []byte(folder))
	if i < 0 {
		return false
	}
	*p = (*p)[i+len(folder)-1:]
	return true
}

// dropFirst cuts p after its second segment when drop is set.
func dropFirst(p *[]byte, drop bool) {
	if !drop {
		return
	}
	if i := bytes.IndexByte((*p)[1:], '/'); i >= 0 {
		*p = (*p)[1+i:]
	}
}

// temps are where temporary files lie.
var temps = []string{"/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/private/var/folders/", "/dev/shm/", "/run/user/"}

func cutTemp(p *[]byte) bool {
	for _, t := range temps {
		if has(*p, t) {
			*p = (*p)[len(t)-1:]
			if strings.HasSuffix(t, "/folders/") { // of macOS, with a person's folder in between
				cutAfter(p, "/T/")
			}
			return true
		}
	}
	return cutAfter(p, `\Temp\`)
}

// drawnIn returns where the characters lie that were drawn for the first segment of a
// path, as in "/name-Ab3dE9" and "/name_x8k2m1q0": six or more behind a mark, with a digit
// and a capital, or eight small letters and digits of which a letter stands behind a digit.
func drawnIn(p []byte) (from, to int) {
	to = len(p)
	if i := bytes.IndexAny(p[1:], `/\`); i >= 0 {
		to = 1 + i
	}
	from = bytes.LastIndexAny(p[:to], "-_.") + 1
	t := p[from:to]
	drawn := bytes.ContainsAny(t, capitals) || len(t) == 8 && hasDigit(bytes.TrimRight(t, "0123456789"))
	if from == 0 || len(t) < 6 || lenToken(t) < len(t) || !hasDigit(t) || !drawn {
		return 0, 0
	}
	return from, to
}

const capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// homes are where people's folders lie; the segment behind is a person's name.
var homes = []string{"/home/", "/Users/", `:\Users\`}

func cutHome(p *[]byte) bool {
	if has(*p, "/root/") {
		*p = (*p)[len("/root"):]
		return true
	}
	for _, h := range homes {
		at := 0
		if h[0] == ':' {
			at = 1
		}
		if len(*p) <= at || !has((*p)[at:], h) {
			continue
		}
		rest := (*p)[at+len(h):]
		i := bytes.IndexAny(rest, `/\`)
		if i < 0 {
			i = len(rest)
		}
		*p = rest[i:]
		return true
	}
	return false
}

// appendSegments writes the segments of a path, those that look drawn as a mark.
func appendSegments(dst, p []byte) []byte {
	for len(p) > 0 {
		if p[0] == '/' || p[0] == '\\' {
			dst = append(dst, '/')
			p = p[1:]
			continue
		}
		n := lenShard(p)
		if n > 0 {
			dst = append(dst, markID...)
		} else {
			if n = bytes.IndexAny(p, `/\`); n < 0 {
				n = len(p)
			}
			dst = appendSegment(dst, p[:n])
		}
		p = p[n:]
	}
	return dst
}

// lenShard returns the length of two segments such as 6f/20, with which stores of
// packages spread their files over folders.
func lenShard(p []byte) int {
	if len(p) > 5 && isHex(p[0]) && isHex(p[1]) && p[2] == '/' && isHex(p[3]) && isHex(p[4]) && p[5] == '/' {
		return 5
	}
	return 0
}

func appendSegment(dst, seg []byte) []byte {
	if lenUUID(seg) > 0 || has(seg, "tmp") || has(seg, ".tmp") {
		return append(dst, markID...)
	}
	// npm renames a package's folder to .name-XXXXXXXX while it replaces it.
	if dash := bytes.LastIndexByte(seg, '-'); seg[0] == '.' && dash > 0 && len(seg)-dash-1 == 8 {
		return append(append(dst, seg[:dash+1]...), markID...)
	}
	for i := 0; i < len(seg); {
		n := lenToken(seg[i:])
		if n == 0 {
			dst = append(dst, seg[i])
			i++
			continue
		}
		if id := lenUUID(seg[i:]); id > 0 {
			dst = append(dst, markID...)
			i += id
			continue
		}
		if isRandom(seg[i:i+n]) || n == 8 && bytes.HasSuffix(seg[:i], []byte("chunk-")) || isShortHash(seg, i, n) { // a bundler's hash
			dst = append(dst, markID...)
		} else {
			dst = appendName(dst, seg[i:i+n])
		}
		i += n
	}
	return dst
}

// isShortHash reports the seven hex digits that end a segment such as "profile-4f1c0aa".
func isShortHash(seg []byte, i, n int) bool {
	t := seg[i : i+n]
	return n == 7 && i+n == len(seg) && i > 0 && seg[i-1] == '-' && onlyOf(t, "0123456789abcdef") && hasDigit(t) && bytes.ContainsAny(t, "abcdef")
}

// appendName writes a part of a file's name, without the process id in one such as
// crm_pid4711.
func appendName(dst, name []byte) []byte {
	at := bytes.LastIndex(name, []byte("pid"))
	if at < 0 || len(name) == at+len("pid") || lenDigits(name[at+len("pid"):]) < len(name)-at-len("pid") {
		return append(dst, name...)
	}
	return append(append(dst, name[:at+len("pid")]...), markNumber...)
}

// url writes a URL whose scheme and slashes are n bytes: host, port and path as they
// are, without user, query and fragment.
func (s *scrubber) url(n int) {
	if has(s.src[s.i:], "file://") {
		s.i += n
		if s.i < len(s.src) && s.src[s.i] == '/' {
			s.path()
		}
		return
	}
	s.copy(n)
	rest := s.src[s.i:]
	host := bytes.IndexAny(rest, `/?# "'<>)]`+"`,;")
	if host < 0 {
		host = len(rest)
	}
	if at := bytes.LastIndexByte(rest[:host], '@'); at >= 0 {
		s.i += at + 1
		host -= at + 1
	}
	for end := s.i + host; s.i < end; {
		s.step()
	}
	if s.i < len(s.src) && s.src[s.i] == '/' {
		n := bytes.IndexAny(s.src[s.i:], `?# "'<>)]`+"`,;")
		if n < 0 {
			n = len(s.src) - s.i
		}
		s.dst = appendSegments(s.dst, s.src[s.i:s.i+n])
		s.i += n
	}
	if s.i < len(s.src) && (s.src[s.i] == '?' || s.src[s.i] == '#') {
		end := bytes.IndexAny(s.src[s.i:], ` "'<>)]`+"`")
		if end < 0 {
			end = len(s.src) - s.i
		}
		s.put("?", end)
	}
}
