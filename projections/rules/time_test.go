package rules_test

import (
	"strings"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// Whoever may ask what a text means must not be able to keep the service busy with one.
func TestTimeGrowsNoFasterThanTheText(t *testing.T) {
	const size, limit = 512 << 10, 15 * time.Second // where it grows with the square, it is more
	for _, part := range []string{"-", "-A", "A-A-", "1.5h1.5h", "2026-01-01", `"a":`, "{[", "<", "<svg", "</", "a://", "'@", "1->", "x (", `\u00e9`, "abcd:", "[1:", "a_b (", "abcde:"} {
		text := strings.Repeat(part, size/len(part)) + "z"
		for name, e := range map[string]events.Evidence{
			"standard error": {StderrTail: text}, "an answer": {BodyExcerpt: `{"error":"` + text},
		} {
			began := time.Now()
			rules.Default().ClassifyUncached(e)
			if took := time.Since(began); took > limit {
				t.Errorf("%d times %q as %s took %v", size/len(part), part, name, took)
			}
		}
	}
}
