package config

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// secrets gathers the secrets of one server.
type secrets struct {
	all []Secret
}

// add notes a value under a name, and the secrets inside it: of a URL, of a JSON
// document, of a header with a scheme, of a connection string, of several lines.
func (s *secrets) add(name, value string) {
	s.note(name, value, isSensitive(name))
}

// sure notes a value that is secret for certain, whatever it looks like.
func (s *secrets) sure(name, value string) {
	value = strings.TrimSpace(value)
	if isCommon(value) {
		return
	}
	s.all = append(s.all, Secret{Name: name, Value: value})
	s.note(name, value, true)
}

// note is add where it is known already whether the name says that it is a secret.
func (s *secrets) note(name, value string, sensitive bool) {
	value = strings.TrimSpace(value)
	if len(value) < MinSecretBytes {
		return
	}
	if s.addDocument(name, value) || s.addURL(name, value) {
		return
	}
	if scheme, rest, ok := cutScheme(value); ok {
		s.sure(name, rest)
		if strings.EqualFold(scheme, "basic") {
			s.addBasic(name, rest)
		}
		return
	}
	if !isHarmless(value, sensitive) {
		s.all = append(s.all, Secret{Name: name, Value: value})
	}
	s.addParts(name, value, sensitive)
}

// addParts notes the lines of a value of several lines, and what a connection string
// or a cookie assigns.
func (s *secrets) addParts(name, value string, sensitive bool) {
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= 2*MinSecretBytes && !isHarmless(line, false) {
				s.all = append(s.all, Secret{Name: name, Value: line})
			}
		}
		return
	}
	if !strings.ContainsAny(value, "; &") {
		return
	}
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("; &", r) }) {
		key, v, ok := strings.Cut(part, "=")
		if !ok || len(v) < MinSecretBytes {
			continue
		}
		if inner := sensitive || isSensitive(key); !isHarmless(v, inner) {
			s.all = append(s.all, Secret{Name: name, Value: v})
		}
	}
}

// schemes are the words before a credential in a header.
var schemes = []string{"bearer", "basic", "token", "apikey", "api-key", "key", "bot", "digest", "dpop", "negotiate"}

// cutScheme parts a header's value into scheme and credential.
func cutScheme(value string) (scheme, credential string, ok bool) {
	scheme, credential, ok = strings.Cut(strings.TrimSpace(value), " ")
	credential = strings.TrimSpace(credential)
	return scheme, credential, ok && credential != "" && slices.Contains(schemes, strings.ToLower(scheme))
}

// addBasic notes what a Basic credential holds.
func (s *secrets) addBasic(name, credential string) {
	plain, err := base64.StdEncoding.DecodeString(credential)
	if err != nil {
		return
	}
	if _, password, ok := strings.Cut(string(plain), ":"); ok {
		s.sure(name, string(plain))
		s.sure(name, password)
	}
}

// addDocument notes the strings of a value that is a JSON object or array, and the
// value itself.
func (s *secrets) addDocument(name, value string) bool {
	trimmed := strings.TrimSpace(value)
	if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		return false
	}
	var doc any
	if json.Unmarshal([]byte(trimmed), &doc) != nil {
		return false
	}
	before := len(s.all)
	s.addLeaves(name, name, doc)
	if len(s.all) > before {
		s.all = append(s.all, Secret{Name: name, Value: value})
	}
	return true
}

// addLeaves notes the strings of doc under name; key is the member that holds doc.
func (s *secrets) addLeaves(name, key string, doc any) {
	switch doc := doc.(type) {
	case map[string]any:
		for key, v := range doc {
			s.addLeaves(name, key, v)
		}
	case []any:
		for _, v := range doc {
			s.addLeaves(name, key, v)
		}
	case string:
		s.note(name, doc, isSensitive(key))
	}
}

// forSpellings calls fn with a part of a URL as written and, if that differs, with
// its escapes undone.
func forSpellings(part string, fn func(string)) {
	fn(part)
	if plain, err := url.PathUnescape(part); err == nil && plain != part {
		fn(plain)
	}
}

// addURL notes the credentials of a value that is a URL.
func (s *secrets) addURL(name, value string) bool {
	u := splitURL(value)
	if u.scheme == "" {
		return false
	}
	user, password, _ := strings.Cut(u.userinfo, ":")
	forSpellings(user, func(v string) { s.add(name, v) })
	forSpellings(password, func(v string) { s.sure(name, v) })
	forSpellings(u.userinfo, func(v string) { s.sure(name, v) })
	for _, p := range u.query {
		if p.value == "" {
			forSpellings(p.name, func(v string) { s.add(name, v) })
			continue
		}
		forSpellings(p.value, func(v string) { s.add(p.name, v) })
	}
	for _, segment := range secretSegments(u.path) {
		forSpellings(segment, func(v string) { s.sure(name, v) })
	}
	forSpellings(u.fragment, func(v string) { s.add(name, v) })
	return true
}
