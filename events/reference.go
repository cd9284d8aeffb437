package events

import (
	"bytes"
	"crypto/sha256"
)

// A stored payload refers to what was moved out of it by an object of one member: a
// prefix, the lower-case hex hash, and RefEnd.
const (
	TextRef     = `{"$text":"`
	DocumentRef = `{"$json":"`
	RefEnd      = `"}`
	// RefLen is the length of a reference in bytes, the same for both kinds.
	RefLen  = len(TextRef) + hashLen + len(RefEnd)
	hashLen = 2 * sha256.Size
)

// CutRef reads the reference at the beginning of b. It does not look whether the hash
// is one.
func CutRef(b []byte) (hash string, isText, ok bool) {
	if len(b) < RefLen || string(b[RefLen-len(RefEnd):RefLen]) != RefEnd {
		return "", false, false
	}
	isText = string(b[:len(TextRef)]) == TextRef
	if !isText && string(b[:len(DocumentRef)]) != DocumentRef {
		return "", false, false
	}
	return string(b[len(TextRef) : len(TextRef)+hashLen]), isText, true
}

func appendRef(out []byte, prefix, hash string) []byte {
	out = append(out, prefix...)
	out = append(out, hash...)
	return append(out, RefEnd...)
}

// isReserved reports whether a member's name is "$text" or "$json", with any number
// of dollars before it.
func isReserved(quoted []byte) bool {
	name := quoted[1 : len(quoted)-1]
	bare := bytes.TrimLeft(name, "$")
	return len(bare) < len(name) && (string(bare) == "text" || string(bare) == "json")
}
