package rules_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpledger/events"
)

// drawPattern draws a pattern of the parts that rules are written with: words, classes,
// the ends of words and lines, gaps, and groups of alternatives.
func drawPattern(t *rapid.T, depth int) string {
	part := rapid.Custom(func(t *rapid.T) string {
		kinds := 3
		if depth > 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"key", "no key", "Key ", "k", "key\\n", "é", "(?-i:Key)", "\\$\\{", "--", "40\\d"}).Draw(t, "words")
		case 1:
			return rapid.SampledFrom([]string{`\b`, `\B`, "^", "$", `\A`, `\z`}).Draw(t, "assertion")
		case 2:
			class := rapid.SampledFrom([]string{".", `[^\n]`, `\w`, `\s`, `\d`, "[ek]", `[\s\S]`, "[^k]"}).Draw(t, "class")
			return class + rapid.SampledFrom([]string{"", "?", "*", "+", "*?", "{0,9}", "{0,12}?", "{2,10}", "{8}", "{9,}"}).Draw(t, "times")
		default:
			group := rapid.SampledFrom([]string{"(?:", "(?P<name>", "("}).Draw(t, "group")
			inner := drawPattern(t, depth-1)
			if rapid.Bool().Draw(t, "alternatives") {
				inner += "|" + drawPattern(t, depth-1)
			}
			return group + inner + ")" + rapid.SampledFrom([]string{"", "?", "*", "{0,8}"}).Draw(t, "times")
		}
	})
	return strings.Join(rapid.SliceOfN(part, 1, 5).Draw(t, "parts"), "")
}

// However a pattern is taken apart, and whatever stands in for package regexp, it
// matches where that package says so. The client's text is looked through for literals
// beforehand, the content type is not.
func TestAnyPatternMatchesWhereRegexpSaysSo(t *testing.T) {
	word := rapid.SampledFrom([]string{"key", "no", "Key", "KEY", "k", "e", "_", "404", "$", "{", "-", " ", " ", "\n", "é", "aaaaaaaaaa"})
	rapid.Check(t, func(t *rapid.T) {
		pattern := drawPattern(t, 2)
		want, err := regexp.Compile("(?im)" + pattern)
		if err != nil {
			t.Skip(err) // repeated too often
		}
		text := strings.Join(rapid.SliceOfN(word, 0, 30).Draw(t, "text"), "")
		text = strings.Trim(regexp.MustCompile(` +(\n|$)`).ReplaceAllString(text, "$1"), "\n") // as it is when cleaned
		for _, field := range []string{"error", "content_type"} {
			set := mustParse(t, withRules(fmt.Sprintf("  - {id: hit, match: {%s: '%s'}, class: config, disposition: deterministic}\n", field, pattern)))
			v := set.ClassifyUncached(events.Evidence{Error: text, ContentType: text})
			if got := v.Rule == "hit"; got != want.MatchString(text) {
				t.Fatalf("pattern %q on the %s %q: got %v, regexp says %v", pattern, field, text, got, !got)
			}
		}
	})
}

// A text that can be taken apart in more ways than are tried is left to package regexp, in
// the middle of whatever that shows: each "ek" here is one part or two.
func TestATextOfManyWaysMatchesAllTheSame(t *testing.T) {
	pattern := `(?:ek|e|k)*z`
	set := mustParse(t, withRules(fmt.Sprintf("  - {id: hit, match: {content_type: '%s'}, class: config, disposition: deterministic}\n", pattern)))
	want := regexp.MustCompile(pattern)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat("ek", rapid.IntRange(0, 300).Draw(t, "times")) + rapid.SampledFrom([]string{"z", " z", "e", ""}).Draw(t, "end")
		if got := set.ClassifyUncached(events.Evidence{ContentType: text}).Rule == "hit"; got != want.MatchString(text) {
			t.Fatalf("on %q: got %v, regexp says %v", text, got, !got)
		}
	})
}

// What stands before a word counts, in a group as well.
func TestAGroupThatBeginsAtAWordCatchesNoPartOfOne(t *testing.T) {
	for _, pattern := range []string{`(?P<name>\bkeyring)`, `(?P<name>^keyring)`, `(?P<name>\b)keyring`, `(\bkey)ring \w`} {
		set := mustParse(t, withRules(fmt.Sprintf("  - {id: hit, match: {error: '%s'}, class: config, disposition: deterministic}\n", pattern)))
		for text, want := range map[string]string{"keyring here": "hit", "monkeyring here": "last"} {
			if got := set.ClassifyUncached(events.Evidence{Error: text}).Rule; got != want {
				t.Errorf("pattern %s on %q: got rule %s, want %s", pattern, text, got, want)
			}
		}
	}
}

// Control codes are taken out of every text, so that a pattern with one matches none.
func TestAPatternWithAControlCodeMatchesNothing(t *testing.T) {
	for _, pattern := range []string{`"room\0"`, `"roo\0"`, `"no room is left \0"`} {
		set := mustParse(t, withRules("  - {id: hit, match: {error: "+pattern+"}, class: config, disposition: deterministic}\n"))
		for _, text := range []string{"room", "roomy", "roo", "room\x00", "no room is left "} {
			if set.ClassifyUncached(events.Evidence{Error: text}).Rule == "hit" {
				t.Errorf("pattern %s matches %q", pattern, text)
			}
		}
	}
}

// What a group catches is shown in the hint.
func TestAnyGroupCatchesWhatRegexpSays(t *testing.T) {
	word := rapid.SampledFrom([]string{"key", "no", "Key", "KEY", "k", "e", "_", "404", "-", " ", "é", "aaaaaaaaaa"})
	rapid.Check(t, func(t *rapid.T) {
		before, inside, behind := drawPattern(t, 1), drawPattern(t, 1), drawPattern(t, 1)
		pattern := before + "(?P<caught>" + inside + ")" + behind
		want, err := regexp.Compile("(?im)" + pattern)
		if err != nil {
			t.Skip(err) // repeated too often
		}
		text := strings.TrimRight(strings.Join(rapid.SliceOfN(word, 0, 30).Draw(t, "text"), ""), " ")
		set := mustParse(t, withRules(fmt.Sprintf("  - {id: hit, match: {content_type: '%s'}, class: config, disposition: deterministic, hint: '{caught|nothing}'}\n", pattern)))
		v := set.ClassifyUncached(events.Evidence{ContentType: text})
		at := want.FindStringSubmatch(text)
		if at == nil {
			if v.Rule == "hit" {
				t.Fatalf("pattern %q matches %q, where regexp says it does not", pattern, text)
			}
			return
		}
		caught := at[want.SubexpIndex("caught")]
		if caught == "" || len(caught) > 80 || strings.ContainsAny(caught, "\n é") {
			return
		}
		if v.Hint != caught {
			t.Fatalf("pattern %q on %q: the group caught %q, regexp says %q", pattern, text, v.Hint, caught)
		}
	})
}
