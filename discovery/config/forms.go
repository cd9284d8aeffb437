package config

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// pieceBytes is the length of the pieces in which a longer secret is looked for, so
// that what a stream holds back stays bounded.
const pieceBytes = 256

// forms returns the spellings under which a secret may turn up: as it is, and as
// URLs, JSON and base64 write it. A long secret gives those of its pieces.
func forms(secret string) []string {
	var all []string
	for _, piece := range pieces(secret) {
		all = append(all, piece)
		if strings.ContainsFunc(piece, isEscaped) {
			all = append(all, urlForms(piece)...)
			all = append(all, jsonForms(piece)...)
		}
		all = append(all, base64Forms(piece)...)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(f string) bool { return len(f) < MinSecretBytes })
}

// isEscaped reports characters that a URL or JSON may write in another way.
func isEscaped(r rune) bool {
	return r >= 0x80 || !isAlnum(byte(r)) && r != '-' && r != '_' && r != '.'
}

// pieces cuts s; the last piece overlaps the one before so that it is not short.
func pieces(s string) []string {
	var all []string
	for len(s) > pieceBytes {
		all = append(all, s[:pieceBytes])
		s = s[min(pieceBytes, len(s)-pieceBytes):]
	}
	return append(all, s)
}

// scriptUnescaped turns a query escape into what JavaScript's encodeURIComponent
// gives.
var scriptUnescaped = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

func urlForms(s string) []string {
	query := url.QueryEscape(s)
	all := []string{query, url.PathEscape(s), scriptUnescaped.Replace(query)}
	for _, f := range all {
		all = append(all, lowerEscapes(f))
	}
	return all
}

// lowerEscapes writes the hex digits of %XX in lower case.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(b)
}

// jsonForms gives the ways in which the usual encoders write s in JSON: with HTML's
// characters escaped or not, all in ASCII or not, with a slash escaped or not.
func jsonForms(s string) []string {
	var all []string
	for _, html := range []bool{false, true} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(s) != nil {
			continue
		}
		plain := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), "\""), "\"")
		for _, form := range []string{plain, inASCII(plain, "\\u%04x"), inASCII(plain, "\\u%04X")} {
			all = append(all, form, strings.ReplaceAll(form, "/", `\/`))
		}
	}
	return all
}

// inASCII writes every character beyond ASCII as JSON escapes, one for each UTF-16
// unit.
func inASCII(s, escape string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, escape, unit)
		}
	}
	return b.String()
}

// base64Forms gives the whole of s encoded, and the digits that s determines by
// itself at each of the three places where it can start inside a longer text, as a
// password does in "user:password".
func base64Forms(s string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		whole := enc.EncodeToString([]byte(s))
		all = append(all, whole)
		if padding := (3 - len(s)%3) % 3; padding > 0 {
			all = append(all, whole+"==="[:padding])
		}
		for before := range 3 {
			digits := enc.EncodeToString([]byte("\x00\x00\x00"[:before] + s))
			first := (before*8 + 5) / 6      // the first digit without a bit of what is before
			end := (before + len(s)) * 8 / 6 // after the last one without a bit of what follows
			all = append(all, digits[first:end])
		}
	}
	return all
}
