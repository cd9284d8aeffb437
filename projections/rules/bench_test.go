package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// distinctFailures returns failures of all examples, each time with another word among
// their texts, so that no two are equal: so many of the kinds in turn, rounds times, and
// then the next ones.
func distinctFailures(b *testing.B, kinds, rounds int) []events.Evidence {
	b.Helper()
	var out []events.Evidence
	for group := range slices.Chunk(readExamples(b), kinds) {
		for i := range rounds * len(group) {
			e := group[i%len(group)].with(b, nil)
			word := fmt.Sprintf("crm%d", len(out))
			e.StderrTail = strings.ReplaceAll(e.StderrTail, "crm", word)
			e.Error = strings.ReplaceAll(e.Error, "crm", word) + " " + word
			out = append(out, e)
		}
	}
	return out
}

// A log holds failures of some dozens of kinds. Of hundreds in turn each is judged by
// rules and patterns that were not in use lately.
func BenchmarkClassifyDistinct(b *testing.B) {
	set := rules.Default()
	for _, kinds := range []int{50, len(readExamples(b))} {
		b.Run(fmt.Sprintf("kinds=%d", kinds), func(b *testing.B) {
			failures := distinctFailures(b, kinds, 16)
			bytes := 0
			for _, e := range failures {
				bytes += len(e.StderrTail) + len(e.Error) + len(e.BodyExcerpt)
			}
			b.SetBytes(int64(bytes / len(failures)))
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				set.ClassifyUncached(failures[i%len(failures)])
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "failures/s")
		})
	}
}

// One word again and again is the worst that a server can print: everywhere begins a
// literal, and many patterns may match. A judgment must not take longer than the text is.
func BenchmarkClassifyOneWord(b *testing.B) {
	set := rules.Default()
	for _, word := range []string{"api-password ", "unknown option ", "A_KEY ", "/"} {
		b.Run(strings.TrimSpace(word), func(b *testing.B) {
			e := events.Evidence{StderrTail: strings.Repeat(word, 8<<10/len(word))}
			b.SetBytes(int64(len(e.StderrTail)))
			for range b.N {
				set.ClassifyUncached(e)
			}
		})
	}
}

func BenchmarkClassifyRepeated(b *testing.B) {
	set := rules.Default()
	failures := distinctFailures(b, 50, 1)[:50]
	b.ReportAllocs()
	for i := range b.N {
		set.Classify(failures[i%len(failures)])
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "failures/s")
}
