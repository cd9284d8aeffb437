package config_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mcpledger/discovery/config"
)

func TestOutsideTextIsMadeSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                        "plain\ttext\n",
		"Grüße, 世界":                            "Grüße, 世界",
		"\x1b[1;31mred\x1b[0m":                 "red",
		"\x1b]0;title\x07x\x1b]8;;u\x1b\\link": "xlink",
		"\x1b(Bx\x1b=y\x1bMz":                  "xyz",
		"lost \x1b[31":                         "lost [31",
		"end\x1b":                              "end",
		"\x1b]never closed\nnext":              "]never closed\nnext",
		"a\r\nb\rc\u2028d":                     "a\nb\nc\nd",
		"nul\x00 bell\x07 del\x7f c1\u009b":    "nul bell del c1",
		"bad\xffutf8":                          "bad\ufffdutf8",
		"safe\u202egnp.exe\u2066x\u2069":       "safegnp.exex",
		"zero\u200bwidth\ufeff tag\U000e0041":  "zerowidth tag",
	} {
		if got := config.Sanitize(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestSafeTextStaysSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.SampledFrom([]byte("ab\x1b[]0m\\\x07\r\n\xe2\x80\xae\xff"))).Draw(t, "in"))
		once := config.Sanitize(in)
		if !utf8.ValidString(once) || strings.ContainsAny(once, "\x1b\x07\r\u202e") {
			t.Fatalf("%q became %q", in, once)
		}
		if twice := config.Sanitize(once); twice != once {
			t.Fatalf("%q became %q, then %q", in, once, twice)
		}
	})
}

func TestACutTextSaysSoAndSplitsNoRune(t *testing.T) {
	for _, tt := range []struct {
		in    string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"longer", 5, "lo…"},
		{"ääää", 6, "ä…"},
		{"世界世界", 7, "世…"},
		{"longer", 3, "…"},
		{"longer", 2, ""},
		{"", 0, ""},
	} {
		if got := config.Cut(tt.in, tt.limit); got != tt.want || len(got) > max(tt.limit, 0) {
			t.Errorf("%q at %d: got %q, want %q", tt.in, tt.limit, got, tt.want)
		}
	}
}

func TestTextIsSanitisedBeforeItIsMasked(t *testing.T) {
	r := config.NewRedactor(config.Secret{Name: "K", Value: "s3cr3t-v4lue"})
	if got := r.Text("a s3cr\x1b[0m3t-v4\u200blue", 64); got != "a «K»" {
		t.Errorf("got %q", got)
	}
	if got := r.Text("s3cr3t-v4lue and more", 8); got != "«K»…" {
		t.Errorf("got %q", got)
	}
}
