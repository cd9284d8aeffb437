package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// yamlFault gives what the yaml package says of text its place.
func yamlFault(name string, text []byte, err error) *ParseError {
	fault := &ParseError{Name: name, Detail: strings.TrimPrefix(err.Error(), "yaml: ")}
	told, ok := errors.AsType[*yaml.LoadError](err)
	switch {
	case errors.Is(err, io.EOF):
		fault.Detail = "empty"
	case !ok:
	case told.Mark.Line == 0: // a character that no YAML has
		fault.Detail = told.Message
		fault.Line, fault.Column = placeOf(text, unreadable(text))
	default:
		fault.Detail = told.Message
		fault.Line, fault.Column = told.Mark.Line, told.Mark.Column
		if begins := told.ContextMark; begins.Line > 0 && begins != told.Mark {
			fault.Detail += fmt.Sprintf(", %s that begins in line %d, column %d", told.ContextMsg, begins.Line, begins.Column)
		}
		if line, column := placeOf(text, len(bytes.TrimRight(text, "\n"))); fault.Line > line {
			fault.Line, fault.Column = line, column // something is missing at the end
		}
	}
	return fault
}

// unreadable returns the offset of the first byte of text that is no UTF-8 or a
// character that YAML (1.2.2, section 5.1) does not allow; the length if there is none.
func unreadable(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 || !printable(r) {
			return at
		}
		at += size
	}
	return len(text)
}

// printable reports a character that YAML allows.
func printable(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r < ' ', 0x7f <= r && r < 0xa0, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

// placeOf returns the line and the column, in characters, of an offset in text, both
// from 1.
func placeOf(text []byte, offset int) (line, column int) {
	before := text[:offset]
	last := bytes.LastIndexByte(before, '\n')
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[last+1:]) + 1
}
