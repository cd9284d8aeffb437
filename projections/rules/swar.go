package rules

import "encoding/binary"

// What follows looks at eight bytes at once, as one number: SIMD within a register. Each
// byte's upper bit serves as the answer for it, so that a sum must not carry into the next
// byte; bytes beyond ASCII, which have that bit, are told apart first.
const (
	eachByte = 0x0101010101010101 // times a byte: that byte eight times
	eachTop  = 0x80 * eachByte
)

// lowerBytes writes src with ASCII letters in lower case to dst, which is as long.
func lowerBytes(dst, src []byte) {
	dst = dst[:len(src)]
	for len(src) >= 8 {
		binary.LittleEndian.PutUint64(dst, lowerEight(binary.LittleEndian.Uint64(src)))
		dst, src = dst[8:], src[8:]
	}
	for i, c := range src {
		if isUpper(c) {
			c |= ' '
		}
		dst[i] = c
	}
}

// lowerEight is lowerBytes for eight bytes.
func lowerEight(b uint64) uint64 {
	rest := b &^ eachTop
	fromA := rest + (0x80-'A')*eachByte
	beyondZ := rest + (0x80-'Z'-1)*eachByte
	return b | fromA&^beyondZ&^b&eachTop>>2 // the bit by which a small letter differs
}

// allPlain reports whether eight bytes are printable ASCII and none of them is a bracket.
func allPlain(b uint64) bool {
	fromSpace := b + (0x80-' ')*eachByte
	isDelete := b + eachByte
	noBracket := (b ^ '['*eachByte) + 0x7f*eachByte
	return fromSpace&^isDelete&noBracket&^b&eachTop == eachTop
}

// eightOf returns the eight bytes of a text from an offset on, which it has.
func eightOf(text string, at int) uint64 {
	t := text[at : at+8]
	return uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
		uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
}
