package rules_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

func TestAnAnswerIsReadAsAPersonReadsIt(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"an escaped letter", `{"error":"No Stra\u00dfe here"}`, "No Straße here"},
		{"a character of two escapes", `{"error":"No room \ud83d\ude00 left"}`, "No room 😀 left"},
		{"half of such a character", `{"error":"No room \ud83d left"}`, "No room \ufffd left"},
		{"an escape of a line break", `{"error":"No\u000aroom\u2028left"}`, "No room left"},
		{"an escape that is cut", `{"error":"No room \u00`, `No room 00`},
		{"escapes of what may make a terminal or a text lie", `{"error":"No \u001b\u009b\u202eroom\u200b left"}`, "No room left"},
		{"a letter that folds to one of ASCII", `{"error":"No \u212aey \u017fet"}`, "No Key set"},
		{"a style in capitals", "<HTML><STYLE>b{}</STYLE><BODY>No room left</BODY></HTML>", "No room left"},
		{"a script whose end has a space", "<html><script>x</script ><body>No room left</body></html>", "No room left"},
		{"a script with a tag in it", "<html><script>a('</b>')</script><body>No room left</body></html>", "No room left"},
		{"an element with the beginning of its name", "<div><styled-box>No room left</styled-box></div>", "No room left"},
		{"a picture without content", `<div><svg class="x"/>No room left</div>`, "No room left"},
		{"a script without an end", "<div>No room left<script>x", "No room left"},
		{"a Python dictionary", `{'error': "No room for {it's} yet", 'x': 'y'}`, "No room for {it's} yet"},
	} {
		if got := rules.Default().Classify(events.Evidence{HTTPStatus: 400, BodyExcerpt: tc.body}).Text; got != tc.want {
			t.Errorf("%s: got %q of %s, want %q", tc.name, got, tc.body, tc.want)
		}
	}
}

func TestAnAnswerInsideAClientsTextEndsAtItsBracket(t *testing.T) {
	for text, want := range map[string]string{
		`failed: {'error': 'no room } here'} in 3 ms`: "failed: no room } here in 3 ms",
		`failed: {"error": "no room } here"} in 3 ms`: "failed: no room } here in 3 ms",
	} {
		if got := rules.Default().Classify(events.Evidence{Phase: events.PhaseCallTool, Error: text}).Text; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// An answer is cut where enough of it is read, which may be anywhere.
func TestAnAnswerIsCutBetweenCharacters(t *testing.T) {
	for shift := range len("é") {
		lines := strings.Repeat("a\n", 190) + strings.Repeat("b", shift) + "Error: " + strings.Repeat("é", 40)
		v := rules.Default().Classify(events.Evidence{HTTPStatus: 400, BodyExcerpt: lines})
		if !strings.Contains(v.Text, "Error: é") || !utf8.ValidString(v.Text) {
			t.Errorf("got text %q, want whole characters behind the word Error", v.Text)
		}
	}
}
