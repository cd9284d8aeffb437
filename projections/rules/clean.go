package rules

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// appendClean appends texts to dst line by line without what only terminals need:
// colours and other escape sequences, control codes, overwritten progress, the
// margins of exception groups and the branches of error trees. A line that the width
// of a terminal had wrapped is joined again. No newline follows the last line.
func appendClean(dst []byte, texts ...string) []byte {
	c := cleaner{dst: dst, first: len(dst)}
	for _, text := range texts {
		for len(text) > 0 {
			text = c.line(text)
		}
	}
	return c.dst
}

// cleaner appends cleaned lines to dst, where its own begin at first.
type cleaner struct {
	dst    []byte
	first  int
	branch int // 1 + the indent of the tree branch the last line belongs to; 0: none
}

// line appends the first line of text and returns what follows it.
func (c *cleaner) line(text string) (rest string) {
	joined := len(c.dst) > c.first
	if joined {
		c.dst = append(c.dst, '\n')
	}
	start := len(c.dst)
	c.dst, rest = appendPlain(c.dst, text)
	body := bytes.TrimRight(c.dst[start:], " ")
	indent := indentOf(body)
	content := unspaced(body[indent:])
	switch glyph := treeGlyph(content); {
	case glyph.drawn != "":
		content = append([]byte(glyph.mark), bytes.TrimLeft(content[len(glyph.drawn):], " ")...)
		c.branch = indent + 1
	case len(content) == 0 || isRuler(content):
		content = nil
		c.branch = 0
	case isMargin(content):
		content = bytes.TrimPrefix(content[1:], []byte(" "))
		indent = 0
	case c.branch > 0 && indent > c.branch && joined && isWrapped(content):
		start, indent = start-1, 1 // the newline and the indent become one space
		c.dst[start] = ' '
	default:
		c.branch = 0
	}
	c.dst = append(c.dst[:start+indent], content...)
	if tail := c.dst[start+indent:]; has(tail, "npm ERR!") {
		c.dst = slices.Replace(c.dst, start+indent, start+indent+len("npm ERR!"), []byte("npm error")...)
	}
	return rest
}

// leastSpaced is how long a line must be, in bytes, to be taken for one of UTF-16 of which
// each other byte became a space.
const leastSpaced = 16

// unspaced takes the spaces out of such a line, in place.
func unspaced(content []byte) []byte {
	if len(content) < leastSpaced {
		return content
	}
	for i := 1; i < len(content); i += 2 {
		if content[i] != ' ' {
			return content
		}
	}
	out := content[:0]
	for i := 0; i < len(content); i += 2 {
		out = append(out, content[i])
	}
	return out
}

func indentOf(line []byte) int {
	for i, b := range line {
		if b != ' ' {
			return i
		}
	}
	return len(line)
}

// The marks of a drawn chain of causes: its head, and what hangs below it.
const (
	trunkMark  = "x "
	branchMark = "-> "
)

// lenTreeMark returns the length of the mark that a cleaned line begins with.
func lenTreeMark(content []byte) int {
	switch {
	case has(content, branchMark):
		return len(branchMark)
	case has(content, trunkMark):
		return len(trunkMark)
	default:
		return 0
	}
}

// treeGlyphs are the marks as uv, miette and cargo draw them, in colour and without.
var treeGlyphs = []struct{ drawn, mark string }{
	{"╰─▶ ", branchMark}, {"├─▶ ", branchMark}, {"`-> ", branchMark}, {"|-> ", branchMark},
	{"× ", trunkMark}, {"x ", trunkMark}, {"│ ", ""},
}

// treeGlyph returns the mark that content begins with, if it does.
func treeGlyph(content []byte) (glyph struct{ drawn, mark string }) {
	if len(content) == 0 || isWordByte(content[0]) && content[0] != trunkMark[0] { // most lines
		return glyph
	}
	for _, g := range treeGlyphs {
		if has(content, g.drawn) {
			return g
		}
	}
	return glyph
}

// isMargin reports the margin of an exception group.
func isMargin(content []byte) bool {
	return (content[0] == '|' || content[0] == '+') && (len(content) == 1 || content[1] == ' ')
}

// isRuler reports the rulers between the parts of an exception group.
func isRuler(content []byte) bool {
	return has(content, "+-") && bytes.Contains(content, []byte("---"))
}

// isWrapped reports a line that continues the sentence of the line above it, unlike
// one that begins with a mark of its own.
func isWrapped(content []byte) bool {
	word, _, _ := bytes.Cut(content, []byte(" "))
	return content[0] != '[' && content[0] != '-' && word[len(word)-1] != ':'
}

// The two characters beyond ASCII that a pattern takes for a letter of ASCII in the
// other case.
const (
	kelvin = "\u212a" // K
	longS  = "\u017f" // s
)

// special marks the bytes that appendPlain does not take as they are: control codes,
// and those with which something else begins.
var special = func() (table [256]bool) {
	for b := range byte(' ') {
		table[b] = true
	}
	for _, b := range []byte{0x7f, '[', kelvin[0], longS[0]} {
		table[b] = true
	}
	return table
}()

// appendPlain appends the first line of text without escape sequences and control
// codes, a tab as a space, and returns what follows the line. A line ends with \n,
// \r\n or a lone \r.
func appendPlain(dst []byte, text string) (line []byte, rest string) {
	for len(text) > 0 {
		n := 0
		for n+8 <= len(text) && allPlain(eightOf(text, n)) {
			n += 8
		}
		for n < len(text) && !special[text[n]] {
			n++
		}
		dst = append(dst, text[:n]...)
		if text = text[n:]; text == "" {
			break
		}
		n = 1 // what is read of the text
		switch b := text[0]; {
		case strings.HasPrefix(text, "\r\n"):
			return dst, text[2:]
		case b == '\n' || b == '\r':
			return dst, text[1:]
		case b == 0x1b:
			n = lenEscape(text)
		case b == '[' && lenColour(text) > 0:
			n = lenColour(text)
		case b == '\t':
			dst = append(dst, ' ')
		case b < ' ' || b == 0x7f:
		case strings.HasPrefix(text, kelvin):
			dst = append(dst, 'K')
			n = len(kelvin)
		case strings.HasPrefix(text, longS):
			dst = append(dst, 's')
			n = len(longS)
		default:
			dst = append(dst, b)
		}
		text = text[n:]
	}
	return dst, ""
}

// lenEscape returns the length of the escape sequence that s begins with, which ends
// with the line at the latest.
func lenEscape(s string) int {
	if len(s) < 2 || s[1] == '\n' || s[1] == '\r' || s[1] >= utf8.RuneSelf {
		return 1
	}
	switch s[1] {
	case '[': // parameters, then one final byte
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] >= '@' && s[i] <= '~':
				return i + 1
			case s[i] == '\n' || s[i] == '\r':
				return i
			}
		}
		return len(s)
	case ']': // up to BEL or ESC \
		end := strings.IndexAny(s[2:], "\a\x1b\n\r")
		switch {
		case end < 0:
			return len(s)
		case s[2+end] == '\n' || s[2+end] == '\r':
			return 2 + end
		}
		return 2 + end + 1
	default:
		return 2
	}
}

// lenColour returns the length of a colour code that lost its escape byte on the
// way, such as [31m or [0;1m; 0 when s begins with something else.
func lenColour(s string) int {
	i, digits := 1, 0
	for ; i < len(s) && i < 12; i++ {
		switch {
		case '0' <= s[i] && s[i] <= '9':
			digits++
		case s[i] == ';':
		case s[i] == 'm' && digits > 0:
			return i + 1
		default:
			return 0
		}
	}
	return 0
}
