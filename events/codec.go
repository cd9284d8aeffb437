package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// decoders has one entry per known type of event.
var decoders = map[Type]func(json.RawMessage) (Data, error){}

func init() {
	register[ServiceStarted]()
	register[ServiceStopped]()
	register[ConfigLoaded]()
	register[ConfigRejected]()
	register[ServerConfigured]()
	register[ServerRemoved]()
	register[DiscoveryRunStarted]()
	register[DiscoveryRunCompleted]()
	register[DiscoveryStarted]()
	register[DiscoverySucceeded]()
	register[DiscoveryFailed]()
	register[DiscoveryCancelled]()
	register[DiscoveryAbandoned]()
	register[DiscoverySkipped]()
	register[CatalogueChanged]()
	register[ToolCallStarted]()
	register[ToolCallSucceeded]()
	register[ToolCallFailed]()
	register[ToolCallAbandoned]()
	register[ToolCallRefused]()
	register[SessionOpened]()
	register[SessionDiscarded]()
	register[SkipPinned]()
	register[SkipCleared]()
	register[SkipRequalified]()
	register[RulesActivated]()
	register[LogImported]()
}

func register[D Data]() {
	var zero D
	decoders[zero.EventType()] = func(raw json.RawMessage) (Data, error) {
		var d D
		if err := json.Unmarshal(raw, &d); err != nil {
			return nil, err
		}
		return d, nil
	}
}

// EncodeData writes a payload's JSON, long texts inline. Raw JSON inside the payload
// keeps its bytes but for white space.
func EncodeData(d Data) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("encode %s: %w", d.EventType(), err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// DecodeData reads a payload's JSON, long texts inline. A type it does not know
// gives Unknown and no error.
func DecodeData(t Type, raw json.RawMessage) (Data, error) {
	decode, known := decoders[t]
	if !known {
		return Unknown{Type: t, JSON: raw}, nil
	}
	d, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", t, err)
	}
	return d, nil
}

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

// A stored payload refers to what was moved out of it by an object of one member.
const (
	textRef     = `{"$text":"`
	documentRef = `{"$json":"`
	hashLen     = 2 * sha256.Size
	refLen      = len(textRef) + hashLen + len(`"}`)
)

// documentKeys names the top-level member of a payload that is moved out whole, by
// type: what is long, or repeats, and is no text.
var documentKeys = map[Type]string{
	TypeCatalogueChanged: "tools",
	TypeDiscoveryStarted: "facts",
}

// Externalize gives the form in which a log stores a payload, and what it keeps
// beside it: each string of LongTextBytes or more becomes {"$text":"HASH"}, and a
// catalogue's tools and an attempt's facts become {"$json":"HASH"}. A member name of
// the payload that looks like one of these gets a second "$", so no outside JSON can
// refer to a content. Inline gives back the compact payload, byte for byte.
func Externalize(t Type, raw json.RawMessage) (stored []byte, contents []Content, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, nil, fmt.Errorf("encode %s: %w", t, err)
	}
	src := compact.Bytes()
	document := documentKeys[t]
	out := make([]byte, 0, len(src))
	depth := 0
	for i := 0; i < len(src); {
		switch src[i] {
		case '"':
		case '{', '[':
			depth++
			out = append(out, src[i])
			i++
			continue
		case '}', ']':
			depth--
			fallthrough
		default:
			out = append(out, src[i])
			i++
			continue
		}
		end := stringEnd(src, i)
		quoted := src[i:end]
		i = end
		if i < len(src) && src[i] == ':' {
			out = appendKey(out, quoted)
			if depth == 1 && document != "" && string(quoted[1:len(quoted)-1]) == document {
				end := valueEnd(src, i+1)
				c := Content{Hash: ContentHash(src[i+1 : end]), Body: src[i+1 : end]}
				contents = append(contents, c)
				out = appendRef(append(out, ':'), documentRef, c.Hash)
				i = end
			}
			continue
		}
		text, moves, err := longText(quoted)
		if err != nil {
			return nil, nil, fmt.Errorf("encode %s: %w", t, err)
		}
		if !moves {
			out = append(out, quoted...)
			continue
		}
		c := Content{Hash: ContentHash(text), Body: text}
		contents = append(contents, c)
		out = appendRef(out, textRef, c.Hash)
	}
	return out, contents, nil
}

// longText returns the text of a JSON string that is moved out. One that is not
// spelled as EncodeData spells it stays, for it would come back otherwise.
func longText(quoted []byte) (text []byte, moves bool, err error) {
	if len(quoted) < LongTextBytes {
		return nil, false, nil
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return nil, false, err
	}
	text = []byte(s)
	return text, bytes.Equal(appendQuoted(nil, text), quoted), nil
}

// Inline puts back what Externalize moved out. resolve returns a content's body by
// its hash; its error ends the work.
func Inline(stored []byte, resolve func(hash string) ([]byte, error)) (json.RawMessage, error) {
	if !bytes.Contains(stored, []byte(`"$`)) {
		return stored, nil
	}
	out := make([]byte, 0, 2*len(stored))
	for i := 0; i < len(stored); {
		rest := stored[i:]
		if hash, ok := cutRef(rest, textRef); ok {
			body, err := resolve(hash)
			if err != nil {
				return nil, err
			}
			out = appendQuoted(out, body)
			i += refLen
			continue
		}
		if hash, ok := cutRef(rest, documentRef); ok {
			body, err := resolve(hash)
			if err != nil {
				return nil, err
			}
			out = append(out, body...)
			i += refLen
			continue
		}
		if stored[i] == '"' {
			end := stringEnd(stored, i)
			if end < len(stored) && stored[end] == ':' {
				out = appendOwnKey(out, stored[i:end])
			} else {
				out = append(out, stored[i:end]...)
			}
			i = end
			continue
		}
		out = append(out, stored[i])
		i++
	}
	return out, nil
}

// References returns the hashes a stored payload refers to, in order.
func References(stored []byte) []string {
	var hashes []string
	_, _ = Inline(stored, func(hash string) ([]byte, error) {
		hashes = append(hashes, hash)
		return []byte("0"), nil
	})
	return hashes
}

func appendRef(out []byte, prefix, hash string) []byte {
	out = append(out, prefix...)
	out = append(out, hash...)
	return append(out, `"}`...)
}

func cutRef(b []byte, prefix string) (hash string, ok bool) {
	if len(b) < refLen || !bytes.HasPrefix(b, []byte(prefix)) || string(b[refLen-2:refLen]) != `"}` {
		return "", false
	}
	return string(b[len(prefix) : len(prefix)+hashLen]), true
}

// appendQuoted writes text as a JSON string, spelled as EncodeData spells it.
func appendQuoted(out, text []byte) []byte {
	out = append(out, '"')
	start := 0 // of what is yet to be written
	escape := func(at, width int, as string) int {
		out = append(append(out, text[start:at]...), as...)
		start = at + width
		return start
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = escape(i, 1, `\"`)
		case c == '\\':
			i = escape(i, 1, `\\`)
		case c == '\b':
			i = escape(i, 1, `\b`)
		case c == '\f':
			i = escape(i, 1, `\f`)
		case c == '\n':
			i = escape(i, 1, `\n`)
		case c == '\r':
			i = escape(i, 1, `\r`)
		case c == '\t':
			i = escape(i, 1, `\t`)
		case c < ' ':
			i = escape(i, 1, fmt.Sprintf(`\u%04x`, c))
		case c < utf8.RuneSelf:
			i++
		default:
			r, width := utf8.DecodeRune(text[i:])
			switch {
			case r == utf8.RuneError && width == 1:
				i = escape(i, 1, `\ufffd`)
			case r == '\u2028' || r == '\u2029': // line ends in JavaScript
				i = escape(i, width, fmt.Sprintf(`\u%04x`, r))
			default:
				i += width
			}
		}
	}
	return append(append(out, text[start:]...), '"')
}

// stringEnd returns the index after the JSON string that starts at b[i].
func stringEnd(b []byte, i int) int {
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	return len(b)
}

// appendKey writes a member's name as it is stored.
func appendKey(out, quoted []byte) []byte {
	if isReserved(quoted) {
		out = append(out, `"$`...)
		quoted = quoted[1:]
	}
	return append(out, quoted...)
}

// appendOwnKey is the inverse of appendKey.
func appendOwnKey(out, quoted []byte) []byte {
	if isReserved(quoted) {
		out = append(out, '"')
		quoted = quoted[2:]
	}
	return append(out, quoted...)
}

// isReserved reports whether a member's name is "$text" or "$json", with any number
// of dollars before it.
func isReserved(quoted []byte) bool {
	name := quoted[1 : len(quoted)-1]
	bare := bytes.TrimLeft(name, "$")
	return len(bare) < len(name) && (string(bare) == "text" || string(bare) == "json")
}

// valueEnd returns the index after the JSON value that starts at b[i].
func valueEnd(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}
