package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"mcpledger/events"
)

// syntaxProblem puts the parser's error into our words. The parser quotes what it
// could not read, which may be a secret.
func (d *document) syntaxProblem(err error) events.ConfigProblem {
	p := events.ConfigProblem{File: d.path}
	// The parser gives the place in its text alone.
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &p.Line, &p.Column); scanErr != nil {
		p.Line, p.Column = 0, 0
	}
	cause := err
	if inner := errors.Unwrap(err); inner != nil {
		cause = inner
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		p.Detail = "the file ends before its last bracket, string or comment is closed"
	case strings.HasPrefix(cause.Error(), "invalid literal"):
		p.Detail = `neither a valid string, number, true, false nor null: text needs quotes, and a backslash in it is written \\`
	default:
		p.Detail = cause.Error()
	}
	return p
}

// position returns line and column, both from 1, of the byte at offset.
func position(src []byte, offset int) (line, column int) {
	before := src[:min(offset, len(src))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// text returns the text of a string, or the spelling of another literal.
func text(v hujson.Value) string {
	lit, _ := v.Value.(hujson.Literal)
	return lit.String()
}

func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 || r == 0 {
			return i
		}
		i += size
	}
	return -1
}

// tooDeep returns where brackets nest deeper than maxDepth, -1 if they do not.
func tooDeep(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(b) && b[i] != '"' && b[i] != '\n'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '/':
			i += commentLen(b[i:])
		}
	}
	return -1
}

// commentLen returns the length, without its last byte, of the comment at the start
// of b; 0 if there is none.
func commentLen(b []byte) int {
	var end int
	switch {
	case bytes.HasPrefix(b, []byte("//")):
		end = bytes.IndexByte(b, '\n')
	case bytes.HasPrefix(b, []byte("/*")):
		if end = bytes.Index(b[2:], []byte("*/")); end >= 0 {
			end += 3
		}
	default:
		return 0
	}
	if end < 0 {
		return len(b) - 1
	}
	return end
}

// quoted shows a name of the file, bounded and clean.
func quoted(name string) string {
	return `"` + Cut(Sanitize(name), 80) + `"`
}
