package config

import (
	"strings"
	"unicode/utf8"
)

const escape = 0x1b

// Sanitize makes outside text safe to store and to show: valid UTF-8 (bad bytes
// become U+FFFD), without terminal sequences, control codes, and the invisible or
// bidirectional characters that make text read other than it is. Line breaks of
// every kind become "\n"; tabs stay.
func Sanitize(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == escape:
			i += sequenceLen(s[i:])
			continue
		case r == '\r':
			if !strings.HasPrefix(s[i+size:], "\n") {
				b.WriteByte('\n')
			}
		case r == '\u2028' || r == '\u2029' || r == '\u0085':
			b.WriteByte('\n')
		case !isHidden(r):
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// Cut returns s if it has at most limit bytes, else its beginning and "…", together
// at most limit bytes. No rune is split.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit - len("…")
	if end < 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// isClean reports that s is printable ASCII with line breaks and tabs, as nearly
// all text is.
func isClean(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// sequenceLen returns the length of the terminal sequence at the start of s, which
// begins with ESC. One that does not end is ESC alone.
func sequenceLen(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[': // CSI: parameters, then a final byte
		for i := 2; i < len(s); i++ {
			switch c := s[i]; {
			case '@' <= c && c <= '~':
				return i + 1
			case c < ' ' || c > '~':
				return i
			}
		}
	case ']', 'P', 'X', '^', '_': // a string, ended by BEL or ESC \
		for i := 2; i < len(s) && s[i] != '\n'; i++ {
			if s[i] == '\a' {
				return i + 1
			}
			if s[i] == escape && strings.HasPrefix(s[i+1:], `\`) {
				return i + 2
			}
		}
	case '(', ')', '*', '+', '#', '%', ' ': // one more byte
		return min(3, len(s))
	default:
		if '0' <= s[1] && s[1] <= '~' {
			return 2
		}
	}
	return 1
}

// isHidden reports characters that do not show, or reorder those that do.
func isHidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ' || 0x7f <= r && r < 0xa0: // control codes
		return true
	case r == 0x00ad || r == 0x034f || r == 0x061c || r == 0x180e: // soft hyphen, joiner, marks
		return true
	case 0x200b <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e: // zero width, bidirectional
		return true
	case 0x2060 <= r && r <= 0x206f, r == 0xfeff, 0xfff9 <= r && r <= 0xfffb:
		return true
	case 0xe0000 <= r && r <= 0xe0fff: // tags and variation selectors
		return true
	}
	return false
}
