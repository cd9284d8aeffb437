package config_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpledger/discovery/config"
)

func TestASecretIsMaskedHoweverItIsWritten(t *testing.T) {
	const secret = `pä55/w&rd "q"+\x9`
	r := config.NewRedactor(config.Secret{Name: "PW", Value: secret})
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text string }{
		{"plain", secret},
		{"in a query", url.QueryEscape(secret)},
		{"in a path", url.PathEscape(secret)},
		{"with lower-case escapes", strings.NewReplacer("%C3%A4", "%c3%a4", "%2F", "%2f", "%5C", "%5c").Replace(url.PathEscape(secret))},
		{"in JSON", strings.Trim(string(quoted), `"`)},
		{"in base64", base64.StdEncoding.EncodeToString([]byte(secret))},
		{"in base64 without padding", base64.RawStdEncoding.EncodeToString([]byte(secret))},
		{"in base64 for URLs", base64.URLEncoding.EncodeToString([]byte(secret))},
	} {
		if got := r.String("<" + tt.text + ">"); got != "<«PW»>" {
			t.Errorf("%s: %s became %s", tt.name, tt.text, got)
		}
	}
	for _, user := range []string{"u", "me", "kim"} {
		line := base64.StdEncoding.EncodeToString([]byte(user + ":" + secret + "!"))
		got := r.String(line)
		plain, _, _ := strings.Cut(got, "«")
		if !strings.Contains(got, "«PW»") || len(got)-len("«PW»") > 8+len(plain) {
			t.Errorf("the secret after %s: %s became %s", user, line, got)
		}
	}
}

func TestTheLongestSecretIsNamedAndNothingOfAnOverlapIsLeft(t *testing.T) {
	r := config.NewRedactor(
		config.Secret{Name: "SHORT", Value: "abcd1234"},
		config.Secret{Name: "LONG", Value: "abcd1234-efgh"},
		config.Secret{Name: "TAIL", Value: "4-efgh-5678"},
		config.Secret{Name: "TINY", Value: "abcd123"},
	)
	for text, want := range map[string]string{
		"abcd1234":                  "«SHORT»",
		"abcd123":                   "abcd123",
		"xabcd1234-efghx":           "x«LONG»x",
		"abcd1234-efgh-5678.":       "«LONG».",
		"abcd1234abcd1234":          "«SHORT»",
		"abcd12344-efgh-5678":       "«SHORT»«TAIL»",
		"abcd1234 abcd1234":         "«SHORT» «SHORT»",
		"4-efgh-567 and abcd1234-e": "4-efgh-567 and «SHORT»-e",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestALongSecretIsMaskedWhole(t *testing.T) {
	for _, n := range []int{256, 257, 511, 512, 600, 5000} {
		secret := strings.Repeat("0123456789abcdefghij", n/20+1)[:n-4] + "wxyz"
		r := config.NewRedactor(config.Secret{Name: "BIG", Value: secret})
		if got := r.String("a" + secret + "b"); got != "a«BIG»b" {
			t.Errorf("%d bytes became %s", n, got)
		}
	}
}

func TestWhatLooksLikeATokenIsMasked(t *testing.T) {
	const b40 = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"
	var r *config.Redactor
	for text, want := range map[string]string{
		"key sk-" + b40 + ".":                               "key «api-key».",
		"key=sk-proj-" + b40[:30] + "_-x":                   "key=«api-key»",
		"ghp_" + b40[:36]:                                   "«github-token»",
		"'github_pat_" + b40[:22] + "_" + b40 + "'":         "'«github-token»'",
		"glpat-" + b40[:20]:                                 "«gitlab-token»",
		"xoxb-123456789012-" + b40[:24]:                     "«slack-token»",
		"AKIA" + "IOSFODNN7EXAMPLE" + " x":                  "«aws-key-id» x",
		"AIza" + b40[:35]:                                   "«google-key»",
		`{"a":"eyJ` + b40 + `.eyJ` + b40 + `.` + b40 + `"}`: `{"a":"«jwt»"}`,
		"Authorization: Bearer " + b40[:12] + ",":           "Authorization: Bearer «credential»,",
		"authorization:bearer  " + b40[:12]:                 "authorization:bearer  «credential»",
		"Basic dXNlcjpwYXNz==":                              "Basic «credential»",
		"postgres://app:s3cret@db.example.com/x":            "postgres://app:«url-credentials»@db.example.com/x",
		"https://" + b40 + "@example.com/":                  "https://«url-credentials»@example.com/",
		"GET /x?api_key=" + b40[:12] + "&page=2":            "GET /x?api_key=«redacted»&page=2",
		"CLIENT_SECRET=" + b40[:12]:                         "CLIENT_SECRET=«redacted»",
		"-----BEGIN PRIVATE KEY-----\nMIIE" + b40 + "\n" + b40 + "==\n-----END PRIVATE KEY-----\nok": "-----BEGIN PRIVATE KEY-----«private-key»-----END PRIVATE KEY-----\nok",
		`k: "-----BEGIN RSA PRIVATE KEY-----\nMIIE` + b40 + `\n-----END RSA PRIVATE KEY-----\n"`:     `k: "-----BEGIN RSA PRIVATE KEY-----«private-key»-----END RSA PRIVATE KEY-----\n"`,
	} {
		if got := r.String(text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestAPrivateKeyWithoutItsEndDoesNotSwallowTheRest(t *testing.T) {
	var r *config.Redactor
	body := strings.Repeat("MIIEabcdefgh\n", 2000)
	got := r.String("-----BEGIN EC PRIVATE KEY-----\n" + body + "the end\n")
	if !strings.HasPrefix(got, "-----BEGIN EC PRIVATE KEY-----«private-key»") || !strings.HasSuffix(got, "the end\n") || len(got) > len(body)/2 {
		t.Errorf("%d bytes became %d: %.80s", len(body), len(got), got)
	}
}

func TestASecretWithoutANameIsCalledRedacted(t *testing.T) {
	if got := config.NewRedactor(config.Secret{Value: "s3cret-value"}).String("s3cret-value"); got != "«redacted»" {
		t.Errorf("got %s", got)
	}
}

func TestJSONStaysJSON(t *testing.T) {
	r := config.NewRedactor(config.Secret{Name: "K", Value: `s"cret\value`}, config.Secret{Name: "N", Value: "12345678"})
	for raw, want := range map[string]string{
		`{"a": "s\"cret\\value", "n": [12345678, 1e5, true]}`: `{"a": "«K»", "n": ["«N»", 1e5, true]}`,
		`{"s\u0022cret\\value":  null}`:                       `{"«K»":  null}`,
		`"\u0073\"cret\\value"`:                               `"«K»"`,
		`{"big": 9007199254740993, "x": "\u003c"}`:            `{"big": 9007199254740993, "x": "\u003c"}`,
		`no json s"cret\value`:                                `"no json «K»"`,
		``:                                                    `""`,
	} {
		if got := string(r.JSON(json.RawMessage(raw))); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func TestARedactorOfNothingMasksShapes(t *testing.T) {
	for _, r := range []*config.Redactor{nil, config.NewRedactor(), config.Merge(), config.Merge(nil, config.NewRedactor()), {}} {
		if got := r.String("plain ghp_A1b2C3d4E5f6G7h8I9j0"); got != "plain «github-token»" {
			t.Errorf("got %s", got)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestAStreamPassesOnTheErrorOfItsWriter(t *testing.T) {
	full := errors.New("disk full")
	w := config.NewRedactor().Stream(failingWriter{full})
	if _, err := w.Write([]byte("a line\n")); !errors.Is(err, full) {
		t.Errorf("the first write gave %v", err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, full) {
		t.Errorf("the second write gave %v", err)
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("close gave %v", err)
	}
}

func TestAClosedStreamTakesNothingMore(t *testing.T) {
	var out bytes.Buffer
	w := config.NewRedactor().Stream(&out)
	if _, err := w.Write([]byte("word")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Errorf("close gave %v", err)
		}
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a write after close gave %v", err)
	}
	if out.String() != "word" {
		t.Errorf("got %q", out.String())
	}
}

func TestAStreamHoldsBackLittle(t *testing.T) {
	var out bytes.Buffer
	w := config.NewRedactor(config.Secret{Name: "K", Value: strings.Repeat("s3cret", 50)}).Stream(&out)
	text := []byte(strings.Repeat("a", 100<<10))
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if held := len(text) - out.Len(); held > 6<<10 {
		t.Errorf("%d bytes are held back", held)
	}
}

// secretGen draws values that no rule takes for words.
func secretGen() *rapid.Generator[string] {
	return rapid.StringMatching(`[0-9]x[a-zA-Z0-9/+&"\\ =%é-]{6,20}`)
}

// textGen draws texts of secrets, their encodings, tokens and what may stand between.
func textGen(secrets []string) *rapid.Generator[string] {
	pieces := []string{
		" ", "\n", `"`, "a", "Bearer ", "://", "@", ":", "=", "&", "token=", "sk-", "ghp_", "eyJ", "A1b2C3d4E5f6G7h8I9j0",
		"-----BEGIN ", "PRIVATE ", "KEY-----", "-----END ", "é", "\xff", strings.Repeat("x9", 2100),
	}
	for _, s := range secrets {
		pieces = append(pieces, s, s[:len(s)/2], s[len(s)/2:], url.QueryEscape(s), base64.StdEncoding.EncodeToString([]byte(s)))
	}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
	})
}

func TestAnySplitIntoWritesGivesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(secretGen(), 0, 3).Draw(t, "secrets")
		var secrets []config.Secret
		for _, v := range values {
			secrets = append(secrets, config.Secret{Name: "S", Value: v})
		}
		r := config.NewRedactor(secrets...)
		text := textGen(values).Draw(t, "text")
		var out bytes.Buffer
		w := r.Stream(&out)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), rapid.SampledFrom([]int{1, 9, 5000}).Draw(t, "max"))).Draw(t, "n")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := r.String(text); got != out.String() {
			t.Fatalf("%q\nas one: %q\nsplit:  %q", text, got, out.String())
		}
	})
}

func TestNoPlantedSecretSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(secretGen(), 1, 3).Draw(t, "secrets")
		var secrets []config.Secret
		for _, v := range values {
			secrets = append(secrets, config.Secret{Name: "S", Value: v})
		}
		r := config.NewRedactor(secrets...)
		text := textGen(values).Draw(t, "text")
		got := r.String(text)
		raw := string(r.JSON(mustJSON(t, map[string]string{text: text})))
		for _, v := range values {
			for _, form := range []string{v, url.QueryEscape(v), base64.RawStdEncoding.EncodeToString([]byte(v))} {
				if strings.Contains(got, form) || strings.Contains(raw, form) {
					t.Fatalf("%q survives in %q and %s", form, got, raw)
				}
			}
		}
	})
}

func mustJSON(t *rapid.T, v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func BenchmarkRedactor(b *testing.B) {
	var many []config.Secret
	for i := range 5000 {
		many = append(many, config.Secret{Name: "K", Value: strings.Repeat(string(rune('a'+i%26)), i%7+1) + "-s3cret-" + url.QueryEscape(string(rune(i+0x100)))})
	}
	text := []byte(strings.Repeat("2026-05-19T13:44:08Z [info] server started on http://127.0.0.1:8080/mcp pid=4312\n", 1000))
	for name, r := range map[string]*config.Redactor{"none": nil, "one server": config.NewRedactor(many[:5]...), "all servers": config.NewRedactor(many...)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Bytes(text)
			}
		})
	}
}
