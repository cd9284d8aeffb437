package rules_test

import (
	"os"
	"regexp/syntax"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v4"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// testdata/healthy.txt has lines that programs write while nothing is wrong, many of them
// in the words of causes. Beside them the cause of a failure decides.
func TestHealthyWordsAreNoCause(t *testing.T) {
	text, err := os.ReadFile("testdata/healthy.txt")
	if err != nil {
		t.Fatal(err)
	}
	causes := map[string]string{ // by rule
		"python-module-missing":   python,
		"secret-variable-missing": "Error: WIKI_TOKEN is required\n",
		"connection-refused":      "Error: connect ECONNREFUSED 10.0.0.5:5432\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16)\n",
		"exception-at-start":      "Traceback (most recent call last):\n  File \"main.py\", line 3, in <module>\n    main()\nRuntimeError: the room is odd\n",
	}
	for line := range strings.Lines(string(text)) {
		for rule, cause := range causes {
			for _, stderr := range []string{line + cause, cause + line} {
				e := events.Evidence{Phase: events.PhaseHandshake, Transport: events.TransportStdio, ExitCode: ptr(1), StderrTail: stderr}
				if got := rules.Default().Classify(e).Rule; got != rule {
					t.Errorf("got rule %s of %q, want %s", got, stderr, rule)
				}
			}
		}
	}
}

// Letters of ASCII alone match in either case, so that a pattern that may begin a sentence
// with another one has both.
func TestAPatternKnowsTheCapitalItMayBeginWith(t *testing.T) {
	var set struct {
		Rules []struct {
			ID    string         `yaml:"id"`
			Match map[string]any `yaml:"match"`
		} `yaml:"rules"`
	}
	if err := yaml.Unmarshal([]byte(rules.Default().Text()), &set); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range set.Rules {
		for _, value := range r.Match {
			patterns, ok := value.([]any)
			if !ok {
				patterns = []any{value}
			}
			for _, p := range patterns {
				source, ok := p.(string)
				if !ok {
					continue
				}
				re, err := syntax.Parse(source, syntax.Perl)
				if err != nil {
					t.Fatal(err)
				}
				first := firstRunes(re)
				for letter := range first {
					if letter < 0x80 || unicode.ToUpper(letter) == letter {
						continue
					}
					seen++
					if !first[unicode.ToUpper(letter)] {
						t.Errorf("rule %s: a pattern begins with %c and none with its capital: %.60s...", r.ID, letter, source)
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no pattern begins with a letter beyond ASCII")
	}
}

// firstRunes returns the letters and signs that a match of the tree may begin with, those
// of classes with few of them included.
func firstRunes(re *syntax.Regexp) map[rune]bool {
	out := map[rune]bool{}
	switch re.Op {
	case syntax.OpLiteral:
		out[re.Rune[0]] = true
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune) && len(re.Rune) <= 8; i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1] && r-re.Rune[i] < 8; r++ {
				out[r] = true
			}
		}
	case syntax.OpAlternate, syntax.OpCapture:
		for _, sub := range re.Sub {
			for r := range firstRunes(sub) {
				out[r] = true
			}
		}
	case syntax.OpConcat:
		return firstRunes(re.Sub[0])
	}
	return out
}
