package rules

import (
	"math"
	"math/bits"
	"regexp/syntax"
)

// program is a regular expression compiled for a backtracker. It is small, since most of
// what it takes to run one that was not run lately is to fetch it from memory. Any number
// of goroutines may run it.
type program struct {
	insts    []inst // the first one begins
	texts    []string
	slots    int  // two for the whole match, and two for each group
	anchored bool // it matches at the beginning of a text alone
}

// inst is one instruction of a program.
type inst struct {
	op      opcode
	asserts syntax.EmptyOp // of opAssert: what must hold
	ends    bool           // a match may end here, for all that is known, without another character
	out     int32          // the instruction that follows; of opAlt the one that is tried first
	arg     int32          // see opcode
	takes   *chars         // of opClass and of runs: the characters that they take
	first   *chars         // the characters with which a match may go on
}

// opcode says what an instruction does, and what its arg is.
type opcode uint8

const (
	opFail   opcode = iota // gives up this way
	opMatch                // ends the match
	opText                 // takes a text; arg is which
	opClass                // takes one character
	opGreedy               // takes a run of characters, as long as can be; arg bounds it
	opLazy                 // takes a run of characters, as short as can be; arg bounds it
	opAlt                  // goes on in one of two ways; arg is the instruction that is tried next
	opNote                 // notes where a group begins or ends; arg is the slot
	opAssert               // goes on where assertions hold
)

// chars is a set of characters, a bit each. Whether one beyond ASCII is among them is not
// known; if one may be, every first byte of such a character counts as being there.
type chars [4]uint64

// beyondASCII has the bytes beyond ASCII alone.
var beyondASCII = chars{2: math.MaxUint64, 3: math.MaxUint64}

func (s *chars) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *chars) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

func (s *chars) join(other *chars) {
	for i := range s {
		s[i] |= other[i]
	}
}

// only returns the one character of the set, if it is just one of ASCII.
func (s *chars) only() (c byte, ok bool) {
	switch {
	case s[2] != 0 || bits.OnesCount64(s[0])+bits.OnesCount64(s[1]) != 1:
		return 0, false
	case s[0] != 0:
		return byte(bits.TrailingZeros64(s[0])), true
	default:
		return byte(64 + bits.TrailingZeros64(s[1])), true
	}
}
