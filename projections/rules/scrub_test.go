package rules_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpledger/projections/rules"
)

func TestWhatIsPlainIsScrubbedLikeTheRest(t *testing.T) {
	pieces := []string{
		"error", "request", "id", "at", "port", "deadbeef", "cafe", "x", "pod", "fade4567", "crm-6d4b8xk7z9-x2k4j", "abcde", "c", "js", "main.go", "https",
		"pid", "Mon", "Jan", "3", "10:15:41", "2025-06-02", "127.0.0.1", "49152", "1h2m", "12", "0x1f", "E1A0", "in", "retries", "of", "tmp",
		"enter the code ", "sleepy_curie", "é", "localhost", "host '",
		" ", " ", " ", ":", ":", "://", "-", "-", ".", ",", "/", "\\", "'", "\"", "(", ")", "[", "]", "{", "}", "@", "~", "=", "->", "%", "|", "_", "::1",
	}
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 16).Draw(t, "pieces"), "")
		if scrubbed, slowly := rules.Scrub(line); scrubbed != slowly {
			t.Fatalf("%q: got %q, want %q", line, scrubbed, slowly)
		}
	})
}
