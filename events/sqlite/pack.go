package sqlite

import (
	"encoding/hex"
	"fmt"
	"slices"

	"mcpledger/events"
)

// Packed JSON is compact JSON with the words of our payloads, and references to
// contents, in a byte or a few. It makes a repeated failure cost a third, and is
// read back with one copy. Compact JSON has no byte below 0x20, so those lead:
//
//	0x01 0x02       a reference to a text, a document; 32 bytes of hash follow
//	0x03 .. 0x1b    a word of one byte
//	0x1c .. 0x1f    a word of two bytes
//
// A word that ends in a colon is a member's name; the comma before it is implied.
const (
	packedText     = 0x01
	packedDocument = 0x02
	shortWord      = 0x03
	longWord       = 0x1c
	shortWords     = longWord - shortWord
)

// wordIndex finds the place of a word in words.
var wordIndex = func() map[string]int {
	index := make(map[string]int, len(words))
	for i, w := range words {
		index[w] = i
	}
	return index
}()

// pack gives the packed form of compact JSON.
func pack(src []byte) []byte {
	out := make([]byte, 0, len(src))
	for i := 0; i < len(src); {
		switch c := src[i]; c {
		case '{':
			if packed, ok := packRef(out, src[i:]); ok {
				out = packed
				i += events.RefLen
				continue
			}
			out = append(out, c)
			i++
		case ',', '"':
			start := i
			if c == ',' {
				start++
			}
			if start == len(src) || src[start] != '"' {
				out = append(out, c)
				i++
				continue
			}
			end := events.StringEnd(src, start)
			isName := end < len(src) && src[end] == ':'
			if isName {
				end++
			}
			if word, ok := wordIndex[string(src[start:end])]; ok {
				if c == ',' && !isName {
					out = append(out, ',')
				}
				out = appendWord(out, word)
			} else {
				out = append(out, src[i:end]...)
			}
			i = end
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// unpack is the inverse of pack. It writes to buf where that has room. Its error
// means that packed is damaged, or that a newer program wrote it.
func unpack(packed, buf []byte) ([]byte, error) {
	out := slices.Grow(buf[:0], 3*len(packed)+64)
	for i := 0; i < len(packed); i++ {
		c := packed[i]
		if c >= 0x20 {
			out = append(out, c)
			continue
		}
		switch {
		case c == packedText || c == packedDocument:
			end := i + 1 + len(digest{})
			if end > len(packed) {
				return nil, fmt.Errorf("packed reference is cut at byte %d", i)
			}
			prefix := events.TextRef
			if c == packedDocument {
				prefix = events.DocumentRef
			}
			out = append(out, prefix...)
			out = hex.AppendEncode(out, packed[i+1:end])
			out = append(out, events.RefEnd...)
			i = end - 1
		case c == 0:
			return nil, fmt.Errorf("packed byte %d is zero", i)
		default:
			word := int(c) - shortWord
			if c >= longWord {
				i++
				if i == len(packed) {
					return nil, fmt.Errorf("packed word is cut at byte %d", i)
				}
				word = shortWords + int(c-longWord)<<8 + int(packed[i])
			}
			if word >= len(words) {
				return nil, fmt.Errorf("packed word %d is not known", word)
			}
			w := words[word]
			if w[len(w)-1] == ':' && len(out) > 0 && out[len(out)-1] != '{' {
				out = append(out, ',')
			}
			out = append(out, w...)
		}
	}
	return out, nil
}

func packRef(out, src []byte) ([]byte, bool) {
	text, isText, ok := events.CutRef(src)
	if !ok {
		return nil, false
	}
	hash, err := parseDigest(text)
	if err != nil || hexText(hash) != text {
		return nil, false
	}
	code := byte(packedDocument)
	if isText {
		code = packedText
	}
	return append(append(out, code), hash[:]...), true
}

func appendWord(out []byte, word int) []byte {
	if word < shortWords {
		return append(out, byte(shortWord+word))
	}
	word -= shortWords
	return append(out, byte(longWord+word>>8), byte(word))
}
