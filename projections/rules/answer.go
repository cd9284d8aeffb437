package rules

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxAnswerBytes is how much of a body is enough, in bytes: no further value of JSON is
// taken, and of another text no further character.
const maxAnswerBytes = 400

// maxShownBytes is how much of what it could not read a parser shows at most, in bytes.
const maxShownBytes = 40

// bodyIn returns where a JSON value or HTML begins in a client's text, behind the label of
// the body where there is one; -1 when none does. A few bytes of HTML in quotes are the
// beginning of a page that a parser shows, and no body.
func bodyIn(text []byte) int {
	from := max(0, bytes.Index(text, []byte(bodyLabel))) // the headers before it look like a body
	for i, c := range text[from:] {
		if c != '{' && c != '[' && c != '<' {
			continue
		}
		at := from + i
		shown := c == '<' && at > 0 && text[at-1] == '"' && closingQuote(text, at-1)-at <= maxShownBytes
		if !shown && startsBody(text[at:]) {
			return at
		}
	}
	return -1
}

func startsBody(text []byte) bool {
	if len(text) < 3 {
		return false
	}
	switch text[0] {
	case '<':
		return startsHTML(text)
	case '[':
		text = bytes.TrimLeft(text[1:], " \n")
		if len(text) == 0 || text[0] != '{' {
			return false
		}
	}
	rest := bytes.TrimLeft(text[1:], " \n")
	return len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'')
}

// lenBody returns how far the body goes that text begins with: HTML to the end, JSON
// or a Python dictionary to the bracket that closes it.
func lenBody(text []byte) int {
	if text[0] == '<' {
		return len(text)
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			i = min(closingQuote(text, i), len(text)-1)
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// openings are the tags a page or a part of one begins with.
var openings = []string{"!doctype", "html", "head", "title", "body", "pre", "h1", "center", "div", "?xml", "p>", "!--"}

func startsHTML(text []byte) bool {
	for _, tag := range openings {
		if len(text) > len(tag) && strings.EqualFold(string(text[1:1+len(tag)]), tag) {
			return true
		}
	}
	return false
}

// appendAnswer appends what a body says in words, on one line: the telling values of
// JSON, or all if those are no words, the visible text of HTML, else the text itself.
func appendAnswer(dst, body []byte) []byte {
	body = bytes.TrimLeft(body, " \n")
	switch {
	case len(body) == 0:
		return dst
	case body[0] == '{' || body[0] == '[':
		told := appendJSONWords(dst, body, false)
		if bytes.ContainsFunc(told[len(dst):], unicode.IsLetter) {
			return told
		}
		return appendJSONWords(dst, body, true)
	case startsHTML(body):
		return appendHTMLWords(dst, body)
	default:
		return append(dst, head(body, maxAnswerBytes)...)
	}
}

// The keys of JSON bodies, in lower case: tellingKeys are those under which they say in
// words what failed, statusKeys those under which they hold an HTTP status, and kindKeys
// those of codes that are no words to be shown.
var (
	tellingKeys = newWordSet(`error errors err error_description error_code errorcode error_message errormessage error_msg errormessages
		error_summary errorsummary message msg statusmessage developermessage exceptionmessage detail details title reason code type
		description fault faultstring cause text hint exception status statustext path field required scope param loc
		userpresentablemessage usermessage user_message friendlymessage friendly_message localizedmessage displaymessage explanation`)
	statusKeys = newWordSet(`status code statuscode status_code httpstatus http_status httpcode http_code httpstatuscode cod`)
	kindKeys   = newWordSet(`category errortype error_type subcode sub_code errorname error_name errorkey error_key subtype`)
)

// appendJSONWords appends the string values of telling keys, or of all, at any depth, in
// their order. It walks the tokens without a tree, since a body may be cut anywhere or be
// a Python dictionary in single quotes.
func appendJSONWords(dst, body []byte, all bool) []byte {
	start := len(dst)
	telling := all
	for i := 0; i < len(body) && len(dst)-start < maxAnswerBytes; i++ {
		switch c := body[i]; c {
		case '"', '\'':
			end := closingQuote(body, i)
			value := body[i+1 : end]
			i = end
			if rest := bytes.TrimLeft(body[min(end+1, len(body)):], " \n"); len(rest) > 0 && rest[0] == ':' {
				telling = all || tellingKeys.hasFold(value)
			} else if telling {
				dst = appendWord(dst, start, value)
			}
		case '}':
			telling = all
		}
	}
	return dst
}

// closingQuote returns the index of the quote that ends the string opened at i, or
// the length of body.
func closingQuote(body []byte, i int) int {
	for j := i + 1; j < len(body); j++ {
		switch body[j] {
		case '\\':
			j++
		case body[i]:
			return j
		}
	}
	return len(body)
}

// appendWord appends a JSON string's value unless dst holds it already.
func appendWord(dst []byte, start int, value []byte) []byte {
	at := len(dst)
	if at > start {
		dst = append(dst, ": "...)
	}
	from := len(dst)
	dst = appendUnescaped(dst, value)
	word := dst[from:]
	if len(word) == 0 || string(word) == "text" || bytes.Contains(dst[start:at], word) {
		return dst[:at]
	}
	return dst
}

// appendUnescaped appends a JSON string's value on one line, without the characters
// that an escape may hide from whoever cleaned the text: those of no shape, which may
// make a text read other than it is, and those that fold to a letter of ASCII.
func appendUnescaped(dst, value []byte) []byte {
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c != '\\' || i+1 == len(value) {
			if c == '\n' {
				c = ' '
			}
			dst = append(dst, c)
			continue
		}
		i++
		switch value[i] {
		case 'n', 'r', 't':
			dst = append(dst, ' ')
		case 'u':
			r, n := unescaped(value[i-1:])
			i += n - len(`\u`)
			switch {
			case unicode.IsSpace(r):
				dst = append(dst, ' ')
			case unicode.IsGraphic(r):
				dst, _ = appendPlain(dst, string(r))
			}
		default:
			dst = append(dst, value[i])
		}
	}
	return dst
}

// unescaped returns the character of the escape that text begins with, as \u00e9 is one,
// and the length of the escape, or of the two that stand for one character together.
// Where four digits do not follow, it is no character to be shown.
func unescaped(text []byte) (r rune, n int) {
	r, n = codeUnit(text)
	if !utf16.IsSurrogate(r) {
		return r, n
	}
	low, more := codeUnit(text[n:])
	if r = utf16.DecodeRune(r, low); r == unicode.ReplacementChar {
		return r, n
	}
	return r, n + more
}

// codeUnit is unescaped for one escape alone.
func codeUnit(text []byte) (r rune, n int) {
	const form = `\u0000`
	if len(text) >= len(form) && has(text, `\u`) {
		if v, err := strconv.ParseUint(string(text[len(`\u`):len(form)]), 16, 16); err == nil {
			return rune(v), len(form)
		}
	}
	return 0, len(`\u`)
}

// unseenTags are the elements whose content a browser does not show.
var unseenTags = newWordSet(`script style svg noscript`)

// appendHTMLWords appends the visible text of HTML, on one line.
func appendHTMLWords(dst, body []byte) []byte {
	start := len(dst)
	space := false
	for i := 0; i < len(body) && (len(dst)-start < maxAnswerBytes || !utf8.RuneStart(body[i])); i++ {
		switch c := body[i]; {
		case c == '<':
			i += lenTag(body[i:]) - 1
			space = true
		case c == ' ' || c == '\n':
			space = true
		default:
			if space && len(dst) > start {
				dst = append(dst, ' ')
			}
			space = false
			dst = append(dst, c)
		}
	}
	return dst
}

// lenTag returns the length of the tag or comment that html begins with, with the
// content of an element that is not shown.
func lenTag(html []byte) int {
	if has(html, "<!--") {
		return lenThrough(html, "-->")
	}
	n := lenThrough(html, ">")
	name := bytes.ToLower(html[1 : 1+lenToken(html[1:])])
	if !unseenTags.has(name) || bytes.HasSuffix(html[:n], []byte("/>")) {
		return n
	}
	for n < len(html) {
		n += lenThrough(html[n:], "</")
		if rest := html[n:]; bytes.Equal(bytes.ToLower(rest[:lenToken(rest)]), name) {
			return n + lenThrough(rest, ">")
		}
	}
	return n
}

// lenThrough returns the length of text up to the first end in it and with that; all
// of it if there is none.
func lenThrough(text []byte, end string) int {
	if i := bytes.Index(text, []byte(end)); i >= 0 {
		return i + len(end)
	}
	return len(text)
}

// head returns the first n bytes of text at most, less the part of a character that
// they would end in.
func head[T string | []byte](text T, n int) T {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
