package rules

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxAnswerBytes bounds what is taken from one body, in bytes.
const maxAnswerBytes = 400

// bodyIn returns where a JSON value or HTML begins in a client's text; -1 when none
// does.
func bodyIn(text []byte) int {
	for at := 0; ; at++ {
		next := bytes.IndexAny(text[at:], "{[<")
		if next < 0 {
			return -1
		}
		at += next
		if startsBody(text[at:]) {
			return at
		}
	}
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
// to the bracket that closes it.
func lenBody(text []byte) int {
	if text[0] == '<' {
		return len(text)
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
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
		return append(dst, body[:min(len(body), maxAnswerBytes)]...)
	}
}

// tellingKeys are the keys under which JSON bodies say what failed.
var tellingKeys = map[string]bool{
	"error": true, "message": true, "error_description": true, "detail": true, "details": true,
	"title": true, "reason": true, "code": true, "type": true, "description": true, "msg": true,
	"errors": true, "fault": true, "faultstring": true, "errormessage": true, "error_message": true,
	"error_msg": true, "err": true, "cause": true, "text": true, "hint": true, "error_code": true,
	"errorcode": true, "errormessages": true, "errorsummary": true, "error_summary": true, "exception": true,
	"exceptionmessage": true, "developermessage": true, "statustext": true, "status": true, "statusmessage": true, "path": true, "field": true, "required": true, "scope": true, "param": true, "loc": true,
}

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
				telling = all || len(value) <= 20 && tellingKeys[lowerASCII(string(value))]
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

// appendUnescaped appends a JSON string's value on one line.
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
			if i+5 <= len(value) {
				if r, err := strconv.ParseUint(string(value[i+1:i+5]), 16, 32); err == nil && r >= ' ' {
					dst = utf8.AppendRune(dst, rune(r))
				}
				i += 4
			}
		default:
			dst = append(dst, value[i])
		}
	}
	return dst
}

// unseenTags are the elements whose content a browser does not show.
var unseenTags = []string{"script", "style", "svg", "noscript"}

// appendHTMLWords appends the visible text of HTML, on one line.
func appendHTMLWords(dst, body []byte) []byte {
	start := len(dst)
	space := false
	for i := 0; i < len(body) && len(dst)-start < maxAnswerBytes; i++ {
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
	stop := ">"
	if bytes.HasPrefix(html, []byte("<!--")) {
		stop = "-->"
	} else {
		for _, tag := range unseenTags {
			if len(html) > len(tag) && strings.EqualFold(string(html[1:1+len(tag)]), tag) {
				stop = "</" + tag + ">"
			}
		}
	}
	end := bytes.Index(html, []byte(stop))
	if end < 0 {
		return len(html)
	}
	return end + len(stop)
}
