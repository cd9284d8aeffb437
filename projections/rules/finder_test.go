package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpledger/projections/rules"
)

// Few letters make literals that begin with each other, in texts that hold many.
func TestTheFinderFindsEveryLiteralWhereItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		literals := rapid.SliceOfN(rapid.StringMatching(`[ab]{3,20}|[a-d:]{3,9}|[a-c]{3}`), 1, 60).Draw(t, "literals")
		slices.Sort(literals)
		literals = slices.Compact(literals)
		text := rapid.StringMatching(`[ab]{0,60}|[a-d: ]{0,80}`).Draw(t, "text") + rapid.SampledFrom(literals).Draw(t, "end")
		var want []rules.Occurrence
		for at := range text {
			for _, lit := range literals {
				if strings.HasPrefix(text[at:], lit) {
					want = append(want, rules.Occurrence{Literal: lit, At: at})
				}
			}
		}
		got := rules.FindLiterals(literals, text)
		slices.SortStableFunc(got, func(a, b rules.Occurrence) int {
			if a.At != b.At {
				return a.At - b.At
			}
			return strings.Compare(a.Literal, b.Literal)
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
