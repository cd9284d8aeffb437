package config

import (
	"bytes"
	"strings"
)

// maxWordBytes bounds what a shapeFilter holds back. A longer word is judged in
// parts of this length.
const maxWordBytes = 4 << 10

// maxPrivateKeyBytes bounds how much is masked after the header of a private key
// whose end does not come.
const maxPrivateKeyBytes = 16 << 10

// shapeFilter masks what looks like a token in a text that comes in pieces. It
// judges one word at a time, a word being what stands between spaces, quotes,
// brackets and the like, with little memory of the words before.
type shapeFilter struct {
	word      []byte
	skipping  bool // the word goes on behind maxWordBytes, and its end was masked
	scheme    bool // the word before was Bearer or Basic
	header    pemHeader
	keyMasked int // bytes masked of a private key so far; 0: not in one
}

// pemHeader is how far "-----BEGIN ... PRIVATE KEY-----" has been seen.
type pemHeader int

const (
	pemNone pemHeader = iota
	pemBegun
	pemPrivate
)

func (f *shapeFilter) write(dst, p []byte) []byte {
	for len(p) > 0 {
		n := 0
		for n < len(p) && isWordByte[p[n]] {
			n++
		}
		for n > 0 {
			take := min(n, maxWordBytes-len(f.word))
			f.word = append(f.word, p[:take]...)
			p, n = p[take:], n-take
			if len(f.word) == maxWordBytes {
				dst = f.endWord(dst, true)
			}
		}
		if len(p) > 0 {
			dst = f.endWord(dst, false)
			dst = f.delimit(dst, p[0])
			p = p[1:]
		}
	}
	return dst
}

func (f *shapeFilter) finish(dst []byte) []byte {
	dst = f.endWord(dst, false)
	*f = shapeFilter{}
	return dst
}

// isWordByte has true for what words are made of: printable ASCII without spaces,
// quotes, brackets and other separators.
var isWordByte = func() (is [256]bool) {
	for c := '!'; c <= '~'; c++ {
		is[c] = !strings.ContainsRune("\"'`<>(){}[],;|\\", c)
	}
	return is
}()

// delimit passes on one byte that is no part of a word.
func (f *shapeFilter) delimit(dst []byte, c byte) []byte {
	if f.keyMasked > 0 {
		f.countKey(1)
		return dst
	}
	if c != ' ' && c != '\t' {
		f.scheme = false
	}
	return append(dst, c)
}

// endWord judges the word and appends what comes of it. If it goes on, what follows
// is judged as another word, or masked with this one.
func (f *shapeFilter) endWord(dst []byte, goesOn bool) []byte {
	word := f.word
	f.word = f.word[:0]
	if len(word) == 0 {
		f.skipping = f.skipping && goesOn
		return dst
	}
	if f.keyMasked > 0 {
		end := bytes.Index(word, []byte("-----END"))
		if end < 0 {
			f.countKey(len(word))
			return dst
		}
		f.keyMasked = 0
		return append(dst, word[end:]...)
	}
	if f.skipping {
		f.skipping = goesOn
		return dst
	}
	dst, masked := f.judge(dst, word)
	f.skipping = goesOn && masked == len(word)
	return dst
}

func (f *shapeFilter) countKey(n int) {
	if f.keyMasked += n; f.keyMasked > maxPrivateKeyBytes {
		f.keyMasked = 0
	}
}

// judge appends word with its tokens masked, and returns where the last of them
// ended.
func (f *shapeFilter) judge(dst, word []byte) (out []byte, masked int) {
	afterScheme := f.scheme
	f.scheme = endsInScheme(word)
	if dst, ok := f.judgeHeader(dst, word); ok {
		return dst, 0
	}
	if len(word) < MinSecretBytes {
		return append(dst, word...), 0
	}
	if afterScheme {
		if n := credentialLen(word); n >= MinSecretBytes {
			dst = append(dst, "«credential»"...)
			return append(dst, word[n:]...), n
		}
	}
	done := 0
	for i := 0; i < len(word); i++ {
		if i > 0 && isAlnum(word[i-1]) && word[i] != ':' && word[i] != '=' {
			continue
		}
		start, end, kind := tokenAt(word, i)
		if kind == "" {
			continue
		}
		dst = append(dst, word[done:start]...)
		dst = append(dst, mark(kind)...)
		done, masked = end, end
		i = end - 1
	}
	return append(dst, word[done:]...), masked
}

// judgeHeader follows the header of a private key over its words. At its end the
// body begins, which is masked; then ok is true.
func (f *shapeFilter) judgeHeader(dst, word []byte) (out []byte, ok bool) {
	if bytes.HasSuffix(word, []byte("-----BEGIN")) {
		f.header = pemBegun
		return dst, false
	}
	if f.header == pemNone {
		return dst, false
	}
	if string(word) == "PRIVATE" {
		f.header = pemPrivate
	}
	end := bytes.Index(word, []byte("-----"))
	if end < 0 {
		return dst, false
	}
	private := f.header == pemPrivate
	f.header = pemNone
	if !private {
		return dst, false
	}
	end += len("-----")
	dst = append(dst, word[:end]...)
	dst = append(dst, "«private-key»"...)
	f.keyMasked = max(1, len(word)-end)
	return dst, true
}

// tokenAt looks for a token that word[i] gives away; kind is empty if there is none.
func tokenAt(word []byte, i int) (start, end int, kind string) {
	rest := word[i:]
	switch {
	case rest[0] == ':' && bytes.HasPrefix(rest, []byte("://")):
		if start, end := userinfo(rest[3:]); end > 0 {
			return i + 3 + start, i + 3 + end, "url-credentials"
		}
	case rest[0] == '=':
		name := word[nameStart(word[:i]):i]
		value, _, _ := bytes.Cut(rest[1:], []byte("&"))
		value = bytes.TrimRight(value, ".,:!?")
		if n, _ := shapeLen(value); n > 0 {
			return 0, 0, "" // its own first byte gives it away
		}
		if len(value) >= MinSecretBytes && isSensitive(string(name)) && !isHarmless(string(value), false) {
			return i + 1, i + 1 + len(value), "redacted"
		}
	}
	n, kind := shapeLen(rest)
	return i, i + n, kind
}

// userinfo returns the secret part of what follows "://": the password, or all of
// the userinfo if it is long enough for a token. end is 0 if there is none.
func userinfo(rest []byte) (start, end int) {
	if n := bytes.IndexAny(rest, "/?#"); n >= 0 {
		rest = rest[:n]
	}
	end = bytes.LastIndexByte(rest, '@')
	if end < 0 {
		return 0, 0
	}
	if colon := bytes.IndexByte(rest[:end], ':'); colon >= 0 && colon+1 < end {
		return colon + 1, end
	}
	if end < MinSecretBytes || isHarmless(string(rest[:end]), false) {
		return 0, 0
	}
	return 0, end
}

// credentialLen returns how much of the word after Bearer or Basic is a credential;
// 0 if it is a parameter of a challenge or prose.
func credentialLen(word []byte) int {
	word = bytes.TrimRight(word, ".,:!?")
	unpadded := bytes.TrimRight(word, "=")
	if bytes.IndexByte(unpadded, '=') >= 0 || isHarmless(string(unpadded), false) {
		return 0
	}
	return len(word)
}

// endsInScheme reports a word that ends in the name of an HTTP authentication
// scheme, as "Bearer" and "Authorization:Bearer" do.
func endsInScheme(word []byte) bool {
	for _, scheme := range []string{"bearer", "basic"} {
		n := len(word) - len(scheme)
		if n >= 0 && strings.EqualFold(string(word[n:]), scheme) && (n == 0 || !isAlnum(word[n-1])) {
			return true
		}
	}
	return false
}

// nameStart returns where the name that ends b begins.
func nameStart(b []byte) int {
	i := len(b)
	for i > 0 && (isAlnum(b[i-1]) || b[i-1] == '_' || b[i-1] == '-') {
		i--
	}
	return i
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
