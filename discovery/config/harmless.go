package config

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// sensitiveEndings end a word that makes a name one of a secret: key, apikey.
	sensitiveEndings = []string{"key", "keys", "token", "secret", "secrets", "password", "passwords", "passwd", "passphrase", "credential", "credentials", "cookie", "auth"}
	// sensitiveWords do so by themselves.
	sensitiveWords = []string{"pass", "pwd", "pat", "jwt", "bearer", "passcode"}
)

// isSensitive reports whether a variable, header, flag or member called name holds a
// secret, judging by its words: API_KEY, accessToken, --db-password, Authorization.
func isSensitive(name string) bool {
	return slices.ContainsFunc(nameWords(name), func(word string) bool {
		return slices.Contains(sensitiveWords, word) ||
			slices.ContainsFunc(sensitiveEndings, func(end string) bool { return strings.HasSuffix(word, end) }) ||
			strings.HasPrefix(word, "authoriz") || strings.HasPrefix(word, "authent")
	})
}

// nameWords splits a name at what is no letter, and where lower case turns into
// upper, and lowers it.
func nameWords(name string) []string {
	var words []string
	start := 0
	for i := 0; i <= len(name); i++ {
		letter := i < len(name) && isLetter(name[i])
		hump := letter && i > start && isUpper(name[i]) && !isUpper(name[i-1])
		if letter && !hump {
			continue
		}
		if i > start {
			words = append(words, strings.ToLower(name[start:i]))
		}
		if start = i; !letter {
			start++
		}
	}
	return words
}

func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return isUpper(c) || 'a' <= c && c <= 'z' }

var (
	plainPart = regexp.MustCompile(`^(?:[a-z]*|[A-Z]+|(?:[a-z]{2,}|[A-Z][a-z]+)(?:[A-Z][a-z]+)*|[A-Za-z][a-z]*[0-9]{1,3}|v?[0-9]{1,8}|[0-9]{1,4}[a-zA-Z]{1,2})$`)
	hostPort  = regexp.MustCompile(`^(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$`)
	knownHost = regexp.MustCompile(`(?:^localhost|[0-9]|\.(?:com|org|net|io|dev|ai|app|cloud|local|internal|localhost|example|test|svc))(?::[0-9]+)?$`)
	extension = regexp.MustCompile(`\.[a-z]{2,4}$`)
	drive     = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
)

const maxPlainPart = 24 // letters of the longest plain word

// isWordy reports a text made of plain words and small numbers, such as
// "production", "us-east-1" or "gpt-4o", which no random token looks like.
func isWordy(s string) bool {
	parts := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t._-:/,=@+?&()", r) })
	for _, part := range parts {
		if len(part) > maxPlainPart || !plainPart.MatchString(part) {
			return false
		}
	}
	return true
}

// commonWords are harmless even as a password: masking them would make every text
// unreadable that happens to hold one.
var commonWords = []string{
	"password", "postgres", "anonymous", "username", "changeme", "database", "localhost", "production",
	"development", "disabled", "required", "optional", "undefined", "default", "security",
}

func isCommon(v string) bool { return slices.Contains(commonWords, strings.ToLower(v)) }

// isHarmless reports values that tell nobody anything: flags and small words, plain
// words, numbers, hosts and ports, paths, URLs without credentials. Under a
// sensitive name plain words and numbers are taken for secrets, but for the most
// common.
func isHarmless(v string, sensitive bool) bool {
	switch strings.ToLower(v) {
	case "", "true", "false", "yes", "no", "on", "off", "null", "none":
		return true
	}
	if scheme, rest, ok := strings.Cut(v, "://"); ok && isWordy(scheme) {
		return isHarmlessURL(rest, sensitive)
	}
	if sensitive {
		return isPath(v, true) || isHost(v, true) || isCommon(v)
	}
	return isPath(v, false) || isHost(v, false) || isWordy(v)
}

func isHarmlessURL(rest string, sensitive bool) bool {
	u := splitURL("x://" + rest)
	if u.userinfo != "" || !isHost(u.host, sensitive) && !isWordy(u.host) {
		return false
	}
	for _, p := range u.query {
		if isSensitive(p.name) && p.value != "" || !isHarmless(p.value, false) || p.value == "" && !isWordy(p.name) {
			return false
		}
	}
	return len(secretSegments(u.path)) == 0 && isWordy(u.fragment)
}

func isHost(v string, sensitive bool) bool {
	if sensitive {
		return hostPort.MatchString(v) && isWordy(v) && knownHost.MatchString(v)
	}
	return hostPort.MatchString(v) && !hasRandomPart(v, ".")
}

// isPath reports absolute and relative paths. A part without words makes a short
// path of its own no path, since base64 has slashes too.
func isPath(v string, sensitive bool) bool {
	rooted := strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") ||
		strings.HasPrefix(v, "~/") || drive.MatchString(v)
	if !rooted {
		return strings.ContainsAny(v, `/\`) && isWordy(strings.ReplaceAll(v, `\`, "/")) && (!sensitive || extension.MatchString(v))
	}
	if sensitive {
		return isWordy(strings.NewReplacer(`\`, "/", "~", "").Replace(v))
	}
	return !hasRandomPart(v, `/\`)
}

// hasRandomPart reports a part between separators that is long and no words.
func hasRandomPart(v, separators string) bool {
	parts := strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(separators, r) })
	return slices.ContainsFunc(parts, isRandom)
}

func isRandom(part string) bool { return len(part) >= 16 && !isWordy(part) }

// secretSegments returns the segments of a URL's path that look like credentials,
// as hosted servers and webhooks carry them.
func secretSegments(path string) []string {
	var found []string
	for segment := range strings.SplitSeq(path, "/") {
		if isRandom(segment) && !strings.Contains(segment, "${") {
			found = append(found, segment)
		}
	}
	return found
}
