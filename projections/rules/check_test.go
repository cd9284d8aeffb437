package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// phrases are what drawn texts are made of, and patterns what drawn rules ask of them.
var (
	phrases  = []string{"no module named foo", "modules: 3", "Error: refused", "warning: module", "    at module.js:3"}
	patterns = []string{"module", "module|refused", "modules", "no module named (?P<m>f)", "^no", "refused$", "(?-i:Error)", `\Ano`, "foo$|module"}
)

// drawConditions draws conditions of a match that share few values, so that rules often
// stand in each other's way.
func drawConditions(t *rapid.T) string {
	draw := map[string]*rapid.Generator[string]{
		"phase":        rapid.SampledFrom([]string{"spawn", "connect", "none"}),
		"transport":    rapid.SampledFrom([]string{"stdio", "http"}),
		"http_status":  rapid.SampledFrom([]string{"none", "any", "401", "400..402", "402..404", "403", "'..400'", "5000"}),
		"junk_lines":   rapid.SampledFrom([]string{"none", "0", "1..", "-1"}),
		"session_sent": rapid.SampledFrom([]string{"true", "false"}),
		"text":         rapid.Map(rapid.SampledFrom(patterns), func(p string) string { return "'" + p + "'" }),
		"any":          rapid.Map(rapid.SampledFrom(patterns), func(p string) string { return "'" + p + "'" }),
	}
	keys := []string{"phase", "transport", "http_status", "junk_lines", "session_sent", "text", "any"}
	var all []string
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 1, 3, rapid.ID).Draw(t, "fields") {
		if key == "session_sent" { // takes no list
			all = append(all, key+": "+draw[key].Draw(t, key))
			continue
		}
		all = append(all, key+": ["+strings.Join(rapid.SliceOfN(draw[key], 1, 3).Draw(t, key), ", ")+"]")
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func drawEvidence(t *rapid.T) events.Evidence {
	words := rapid.SliceOfN(rapid.SampledFrom(phrases), 0, 3)
	e := events.Evidence{
		Phase:       rapid.SampledFrom([]events.Phase{"", events.PhaseSpawn, events.PhaseConnect}).Draw(t, "phase"),
		Transport:   rapid.SampledFrom([]events.Transport{events.TransportStdio, events.TransportHTTP}).Draw(t, "transport"),
		SessionSent: rapid.Bool().Draw(t, "session"),
		Error:       strings.Join(words.Draw(t, "error"), "\n"),
		StderrTail:  strings.Join(words.Draw(t, "stderr"), "\n"),
	}
	if e.Transport == events.TransportHTTP {
		e.HTTPStatus = rapid.SampledFrom([]int{0, 400, 401, 402, 403, 404}).Draw(t, "status")
	}
	if rapid.Bool().Draw(t, "junk") {
		e.StdoutJunk = &events.Junk{Count: 1}
	}
	return e
}

// A rule that is said to match never does not, and a gate sets nothing.
func TestWhatIsWarnedOfNeverMatches(t *testing.T) {
	warned := 0
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		match := func() {
			fmt.Fprintf(&text, ", match: %s", drawConditions(t))
			if rapid.IntRange(0, 3).Draw(t, "unless") == 0 {
				fmt.Fprintf(&text, ", unless: %s", drawConditions(t))
			}
		}
		text.WriteString("name: drawn\nversion: 1\nrules:\n")
		for i := range rapid.IntRange(1, 6).Draw(t, "rules") {
			fmt.Fprintf(&text, "  - {id: rule-%d, weak: %v, class: %s, disposition: transient", i,
				rapid.IntRange(0, 3).Draw(t, "weak") == 0, rapid.SampledFrom([]string{"auth", "network"}).Draw(t, "class"))
			match()
			text.WriteString("}\n")
		}
		text.WriteString("  - {id: last, class: unknown, disposition: transient}\ngates:\n")
		// The last of the gates, if it is warned of, is the only one that asks for a scope.
		for i := range 3 {
			gate := "auth_required"
			if i == 2 {
				gate = "insufficient_scope"
			}
			fmt.Fprintf(&text, "  - {id: gate-%d, gate: %s", i, gate)
			if class := rapid.SampledFrom([]string{"", "auth", "timeout"}).Draw(t, "gated"); class != "" {
				text.WriteString(", class: " + class)
			}
			match()
			text.WriteString("}\n")
		}
		set, err := rules.Parse("drawn", []byte(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		never := map[string]string{}
		for _, w := range set.Check() {
			if strings.HasPrefix(w.Detail, "can never match") {
				never[w.Rule] = w.Detail
				warned++
			}
		}
		for range 50 {
			e := drawEvidence(t)
			v := set.Classify(e)
			if why := never[v.Rule]; why != "" {
				t.Fatalf("%s %s, and judges %+v in\n%s", v.Rule, why, e, text.String())
			}
			if why := never["gate-2"]; why != "" && v.Gate == rules.GateInsufficientScope {
				t.Fatalf("gate-2 %s, and is set by %+v in\n%s", why, e, text.String())
			}
		}
	})
	if warned == 0 {
		t.Error("nothing drawn was warned of")
	}
}
