package rules_test

import (
	"strings"
	"testing"

	"mcpledger/projections/rules"
)

// Bytes are looked at eight at a time: each is seen in each place among them.
func TestEachByteIsLoweredAndCleanedWhereverItStands(t *testing.T) {
	for c := range 256 {
		lower, clean := string([]byte{byte(c)}), string([]byte{byte(c)})
		switch {
		case 'A' <= c && c <= 'Z':
			lower = strings.ToLower(lower)
		case c == '\t':
			clean = " "
		case c < ' ' || c == 0x7f:
			clean = ""
		}
		for before := range 17 {
			for behind := range 17 {
				head, tail := strings.Repeat("x", before), strings.Repeat("y", behind)
				text := head + string([]byte{byte(c)}) + tail
				if got := rules.Lower(text); got != head+lower+tail {
					t.Fatalf("lower case of %q: got %q, want %q", text, got, head+lower+tail)
				}
				if before == 0 || strings.ContainsRune("\n\r\x1b", rune(c)) {
					continue // a mark, a line or an escape sequence begins
				}
				if got := rules.Clean(text); got != strings.TrimRight(head+clean+tail, " ") {
					t.Fatalf("%q cleaned: got %q, want %q", text, got, head+clean+tail)
				}
			}
		}
	}
}
