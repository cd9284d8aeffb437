package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

// Whatever a file holds, loading it gives a config whose servers can be recorded, or
// problems with a place; and the same again.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"mcpServers": {"s": {"command": "${A:-${B}}", "args": ["$${", "${file:/x}", "${"], "env": {"": 1}}}}`))
	f.Add([]byte(`{"servers": {"s": {"url": "https://u:p@h/?q#f", "headers": {"A": "Basic YTpi"}, "mcpledger": {"timeouts": []}}}}`))
	path := filepath.Join(f.TempDir(), "fuzz.json")
	lookup := environ("A", "a-value-1", "HOME", "/home/kim")
	f.Fuzz(func(t *testing.T, content []byte) {
		must(t, os.WriteFile(path, content, 0o600))
		opts := config.Options{Files: []string{path}, Key: testKey, LookupEnv: lookup}
		c, err := config.Load(opts)
		if err != nil {
			var bad *config.ProblemError
			if !errors.As(err, &bad) || len(bad.Problems) == 0 || bad.Problems[0].File != path || bad.Problems[0].Line < 1 {
				t.Fatalf("%q gave %v", content, err)
			}
			return
		}
		for _, e := range config.LoadedEvents(c, config.Diff(nil, c)) {
			b, err := json.Marshal(e)
			if err != nil || !utf8.Valid(b) || len(e.Subject) > events.MaxIDBytes {
				t.Fatalf("%q gave an event that cannot be recorded: %v", content, err)
			}
		}
		again, err := config.Load(opts)
		if err != nil {
			t.Fatal(err)
		}
		if d := config.Diff(applied(c), again); len(d.Changed)+len(d.Removed) > 0 {
			t.Fatalf("%q differs from itself: %+v", content, d)
		}
	})
}

// A stream split anywhere equals the whole, and no planted secret gets through.
func FuzzRedactor(f *testing.F) {
	f.Add([]byte("text with s3cret-value in it"), "s3cret-value", uint(12))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"), "12345678", uint(20))
	f.Add([]byte("postgres://u:pw@h Bearer abcd1234efgh"), "abcd1234", uint(3))
	f.Fuzz(func(t *testing.T, text []byte, secret string, at uint) {
		r := config.NewRedactor(config.Secret{Name: "K", Value: secret})
		whole := r.Bytes(text)
		cut := int(at % uint(len(text)+1))
		var out bytes.Buffer
		w := r.Stream(&out)
		for _, p := range [][]byte{text[:cut], text[cut:]} {
			if _, err := w.Write(p); err != nil {
				t.Fatal(err)
			}
		}
		must(t, w.Close())
		if !bytes.Equal(whole, out.Bytes()) {
			t.Fatalf("%q at %d: %q as one, %q split", text, cut, whole, out.Bytes())
		}
		// A secret that is part of a mark cannot but be there.
		const marks = "«K» «redacted» «url-credentials» «private-key» «credential» «api-key» «github-token»"
		if len(secret) >= config.MinSecretBytes && !strings.Contains(marks, secret) && !strings.Contains(secret, "«") &&
			bytes.Contains(whole, []byte(secret)) {
			t.Fatalf("%q survives in %q", secret, whole)
		}
	})
}
