package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// LongTextBytes is the length of a JSON string, quotes included, from which
// Externalize moves it out of a payload.
const LongTextBytes = 256

// Content is a long text or document kept beside the events.
type Content struct {
	Hash string // lower-case hex SHA-256 of Body
	Body []byte // the text itself for a text, JSON for a document
}

// ContentHash returns the hash under which body is kept.
func ContentHash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// documentKeys names the top-level member of a payload that is moved out whole, by
// type: what is long, or repeats, and is no text.
var documentKeys = map[Type]string{
	TypeCatalogueChanged: "tools",
	TypeDiscoveryStarted: "facts",
}

// Externalize gives the form in which a log stores a payload, which must be valid
// JSON, and what it keeps beside it: each string of LongTextBytes or more becomes
// {"$text":"HASH"}, and a catalogue's tools and an attempt's facts become
// {"$json":"HASH"}. A member name of the payload that looks like one of these gets a
// second "$", so no outside JSON can refer to a content. Inline gives back the
// payload without white space, byte for byte.
func Externalize(t Type, raw json.RawMessage) (stored []byte, contents []Content, err error) {
	src := []byte(raw)
	if !isCompact(src) {
		var compact bytes.Buffer
		if err := json.Compact(&compact, src); err != nil {
			return nil, nil, fmt.Errorf("encode %s: %w", t, err)
		}
		src = compact.Bytes()
	}
	document := documentKeys[t]
	var out []byte
	start := 0 // of what is yet to be written
	depth := 0
	moveOut := func(from, to int, prefix string, body []byte) {
		c := Content{Hash: ContentHash(body), Body: body}
		contents = append(contents, c)
		out = appendRef(append(out, src[start:from]...), prefix, c.Hash)
		start = to
	}
	for i := 0; i < len(src); {
		switch src[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if src[i] != '"' {
			i++
			continue
		}
		at, end := i, StringEnd(src, i)
		quoted := src[at:end]
		i = end
		if end == len(src) || src[end] != ':' {
			if text, moves := longText(quoted); moves {
				moveOut(at, end, TextRef, text)
			}
			continue
		}
		if isReserved(quoted) {
			out = append(append(out, src[start:at]...), `"$`...)
			start = at + 1
		}
		if depth == 1 && document != "" && string(quoted[1:len(quoted)-1]) == document {
			i = valueEnd(src, end+1)
			moveOut(end+1, i, DocumentRef, src[end+1:i])
		}
	}
	if start == 0 {
		return src, nil, nil
	}
	return append(out, src[start:]...), contents, nil
}

// longText returns the text of a JSON string that is moved out. One that is not
// spelled as EncodeData spells it stays, for it would come back otherwise.
func longText(quoted []byte) (text []byte, moves bool) {
	if len(quoted) < LongTextBytes {
		return nil, false
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return nil, false
	}
	text = []byte(s)
	return text, bytes.Equal(appendQuoted(nil, text), quoted)
}

// Loaded is a content at hand, to be put into any number of payloads. It is safe for
// concurrent use.
type Loaded struct {
	text   string
	once   sync.Once
	quoted string // text as a JSON string
}

// Load returns the content with that body.
func Load(body []byte) *Loaded { return &Loaded{text: string(body)} }

// Body returns the content's body.
func (l *Loaded) Body() []byte { return []byte(l.text) }

// Len returns the length of the body in bytes.
func (l *Loaded) Len() int { return len(l.text) }

// asString returns the content as a JSON string.
func (l *Loaded) asString() string {
	l.once.Do(func() { l.quoted = string(appendQuoted(nil, []byte(l.text))) })
	return l.quoted
}

// Restore gives back what Externalize stored: the payload, decoded, and its JSON.
// resolve returns a content by its hash; its error ends the work. Texts are shared
// with the contents, not copied.
func Restore(t Type, stored []byte, resolve func(hash string) (*Loaded, error)) (Data, json.RawMessage, error) {
	raw, err := Inline(stored, resolve)
	if err != nil {
		return nil, nil, err
	}
	if data, ok := restoreQuickly(t, stored, resolve); ok {
		return data, raw, nil
	}
	data, err := DecodeData(t, raw)
	return data, raw, err
}

// RestoreData is Restore without the payload's JSON, which is seldom put together
// then. Nothing it returns is part of stored.
func RestoreData(t Type, stored []byte, resolve func(hash string) (*Loaded, error)) (Data, error) {
	if data, ok := restoreQuickly(t, stored, resolve); ok {
		return data, nil
	}
	raw, err := Inline(stored, resolve)
	if err != nil {
		return nil, err
	}
	return DecodeData(t, bytes.Clone(raw))
}

func restoreQuickly(t Type, stored []byte, resolve func(hash string) (*Loaded, error)) (Data, bool) {
	_, _, isRef := CutRef(stored) // a payload that is one long string, not an object
	c, known := codecs[t]
	if !known || isRef {
		return nil, false
	}
	return c.quickly(&decoder{resolve: resolve}, stored)
}

// Inline puts back what Externalize moved out. resolve returns a content by its
// hash; its error ends the work.
func Inline(stored []byte, resolve func(hash string) (*Loaded, error)) (json.RawMessage, error) {
	var out []byte
	start := 0 // of what is yet to be written
	for i := 0; ; {
		at := bytes.Index(stored[i:], []byte(`"$`))
		if at < 0 {
			break
		}
		at += i
		if at > 0 && stored[at-1] == '\\' { // inside a string; any other begins one
			i = at + 1
			continue
		}
		i = StringEnd(stored, at)
		hash, isText, isRef := CutRef(stored[max(at-1, 0):])
		switch {
		case isRef:
			content, err := resolve(hash)
			if err != nil {
				return nil, err
			}
			body := content.text
			if isText {
				body = content.asString()
			}
			out = slices.Grow(out, len(body)+len(stored)-start)
			out = append(append(out, stored[start:at-1]...), body...)
			i = at - 1 + RefLen
			start = i
		case i < len(stored) && stored[i] == ':' && isReserved(stored[at:i]):
			out = append(append(out, stored[start:at]...), '"')
			start = at + len(`"$`)
		}
	}
	if start == 0 {
		return stored, nil
	}
	return append(out, stored[start:]...), nil
}

// References returns the hashes a stored payload refers to, in order.
func References(stored []byte) []string {
	var hashes []string
	nothing := Load(nil)
	_, _ = Inline(stored, func(hash string) (*Loaded, error) {
		hashes = append(hashes, hash)
		return nothing, nil
	})
	return hashes
}
