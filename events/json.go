package events

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// What is here walks JSON that is known to be valid, or is checked elsewhere.

// appendQuoted writes text as a JSON string, spelled as EncodeData spells it.
func appendQuoted(out, text []byte) []byte {
	out = append(out, '"')
	start := 0 // of what is yet to be written
	escape := func(at, width int, as string) int {
		out = append(append(out, text[start:at]...), as...)
		start = at + width
		return start
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = escape(i, 1, `\"`)
		case c == '\\':
			i = escape(i, 1, `\\`)
		case c == '\b':
			i = escape(i, 1, `\b`)
		case c == '\f':
			i = escape(i, 1, `\f`)
		case c == '\n':
			i = escape(i, 1, `\n`)
		case c == '\r':
			i = escape(i, 1, `\r`)
		case c == '\t':
			i = escape(i, 1, `\t`)
		case c < ' ':
			i = escape(i, 1, fmt.Sprintf(`\u%04x`, c))
		case c < utf8.RuneSelf:
			i++
		default:
			r, width := utf8.DecodeRune(text[i:])
			switch {
			case r == utf8.RuneError && width == 1:
				i = escape(i, 1, `\ufffd`)
			case r == '\u2028' || r == '\u2029': // line ends in JavaScript
				i = escape(i, width, fmt.Sprintf(`\u%04x`, r))
			default:
				i += width
			}
		}
	}
	return append(append(out, text[start:]...), '"')
}

// StringEnd returns the index after the JSON string that starts at b[i].
func StringEnd(b []byte, i int) int {
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	return len(b)
}

// isCompact reports whether JSON has no white space between its tokens.
func isCompact(src []byte) bool {
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case ' ', '\t', '\n', '\r':
			return false
		case '"':
			i = StringEnd(src, i) - 1
		}
	}
	return true
}

// valueEnd returns the index after the JSON value that starts at b[i].
func valueEnd(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = StringEnd(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// readString reads the JSON string at the beginning of b.
func readString(b []byte) (text string, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return "", nil, false
	}
	end := StringEnd(b, 0)
	if end < 2 || b[end-1] != '"' {
		return "", nil, false
	}
	inner := b[1 : end-1]
	if isPlain(inner) {
		return string(inner), b[end:], true
	}
	text, ok = unescape(inner)
	return text, b[end:], ok
}

// isPlain reports whether the inside of a JSON string stands for itself: it has no
// escape, no control code, and is UTF-8.
func isPlain(inner []byte) bool {
	ascii := true
	for _, c := range inner {
		if c == '\\' || c < ' ' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(inner)
}

// escapes gives what the letter after a backslash stands for, but for "u".
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape reads the inside of a JSON string. It gives up at an escaped code point.
func unescape(inner []byte) (string, bool) {
	if !utf8.Valid(inner) {
		return "", false
	}
	var text strings.Builder
	text.Grow(len(inner))
	for {
		i := bytes.IndexByte(inner, '\\')
		plain := inner
		if i >= 0 {
			plain = inner[:i]
		}
		for _, c := range plain {
			if c < ' ' {
				return "", false
			}
		}
		text.Write(plain)
		if i < 0 {
			return text.String(), true
		}
		if i+1 == len(inner) || escapes[inner[i+1]] == 0 {
			return "", false
		}
		text.WriteByte(escapes[inner[i+1]])
		inner = inner[i+2:]
	}
}
