package rules

import (
	"math/bits"
	"slices"
)

// matcher is the compiled match of a rule, which holds when every condition does, or
// its unless, which holds when one does.
type matcher struct {
	enums   []enumCondition
	numbers []numberCondition
	flags   []flagCondition
	texts   []textCondition
}

// enumCondition holds when the field has one of the values; "" is a field not seen.
type enumCondition struct {
	field  enumField
	values []string
}

// numberCondition holds when the number lies in one of the ranges, or when it was
// not seen and absent is set.
type numberCondition struct {
	field  numberField
	ranges []numberRange
	absent bool
}

// numberRange is inclusive at both ends.
type numberRange struct{ from, to int64 }

type flagCondition struct {
	field flagField
	want  bool
}

// textCondition holds when one of the patterns matches the field's text.
type textCondition struct {
	field    textField
	patterns []*pattern
	part     int32 // of the set's filter: the first one of its patterns
}

// look says what the field text stands for.
type look uint8

const (
	lookDecisive look = iota // the decisive block
	lookAll                  // every block of every text
	lookCodes                // the codes of errors, spelled out; the field any, too
)

// matches reports whether every condition holds. If so, r.found says where those on
// texts do, in their order.
func (m *matcher) matches(r *reading, at look) bool {
	for i := range m.enums {
		if !m.enums[i].holds(r) {
			return false
		}
	}
	for i := range m.numbers {
		if !m.numbers[i].holds(r) {
			return false
		}
	}
	for _, c := range m.flags {
		if r.flags[c.field] != c.want {
			return false
		}
	}
	r.found = r.found[:0]
	for i := range m.texts {
		f := m.texts[i].first(r, at)
		if f.pattern == nil {
			return false
		}
		r.found = append(r.found, f)
	}
	return true
}

// matchesAny reports whether one of the conditions holds; it is how unless is read.
func (m *matcher) matchesAny(r *reading, at look) bool {
	for i := range m.enums {
		if m.enums[i].holds(r) {
			return true
		}
	}
	for i := range m.numbers {
		if m.numbers[i].holds(r) {
			return true
		}
	}
	for _, c := range m.flags {
		if r.flags[c.field] == c.want {
			return true
		}
	}
	for i := range m.texts {
		if m.texts[i].first(r, at).pattern != nil {
			return true
		}
	}
	return false
}

func (c *enumCondition) holds(r *reading) bool {
	return slices.Contains(c.values, r.enums[c.field])
}

func (c *numberCondition) holds(r *reading) bool { return c.has(r.numbers[c.field]) }

// has reports whether the condition holds for a number, or for one that was not seen.
func (c *numberCondition) has(n number) bool {
	if !n.seen() {
		return c.absent
	}
	for _, rng := range c.ranges {
		if rng.from <= int64(n) && int64(n) <= rng.to {
			return true
		}
	}
	return false
}

// first returns where the first pattern that matches the field does.
func (c *textCondition) first(r *reading, at look) found {
	s := r.span(c.field, at)
	for part, from := c.part, 0; from < len(c.patterns); part, from = part+1, from+partSize {
		for worth := r.hits.worth(part); worth != 0; worth &= worth - 1 {
			i := from + bits.TrailingZeros64(worth)
			if i >= len(c.patterns) {
				break
			}
			if m := r.hits.match(c.patterns[i], r, c.field, s); m.pattern != nil {
				return m
			}
		}
	}
	return found{}
}

// empty reports whether the matcher has no condition and so matches everything.
func (m *matcher) empty() bool {
	return len(m.enums)+len(m.numbers)+len(m.flags)+len(m.texts) == 0
}

// The fields of evidence a rule may match, by kind. The names are those of the
// evidence's JSON; text, any and frame are views of its texts.
type (
	enumField   uint8
	numberField uint8
	flagField   uint8
	textField   uint8
)

const (
	enumPhase enumField = iota
	enumTransport
	enumErrorKind
	enumSignal
	enumEndedBy
	enumFieldCount
)

const (
	numberExitCode numberField = iota
	numberHTTPStatus
	numberJSONRPCCode
	numberElapsedMS
	numberLimitMS
	numberStderrBytes
	numberStderrLastMS
	numberRetryAfterMS
	numberJunkLines
	numberFieldCount
)

const (
	flagSessionSent flagField = iota
	flagDispatched
	flagFieldCount
)

const (
	textDecisive textField = iota
	textAny
	textFrame
	textError
	textStderr
	textBody
	textMessage
	textData
	textChallenge
	textLocation
	textContentType
	textStdout
	textCommand
	textProtocol
	textBlocks  // what textDecisive stands for at the second look; no key of match
	textSpelled // and at the third, with textAny
	textFieldCount
)

// enumFields, numberFields, flagFields and textFields are the keys of match.
var (
	enumFields = map[string]enumField{
		"phase": enumPhase, "transport": enumTransport, "error_kind": enumErrorKind,
		"signal": enumSignal, "ended_by": enumEndedBy,
	}
	numberFields = map[string]numberField{
		"exit_code": numberExitCode, "http_status": numberHTTPStatus, "jsonrpc_code": numberJSONRPCCode,
		"elapsed_ms": numberElapsedMS, "limit_ms": numberLimitMS, "stderr_bytes": numberStderrBytes,
		"stderr_last_ms": numberStderrLastMS, "retry_after_ms": numberRetryAfterMS, "junk_lines": numberJunkLines,
	}
	flagFields = map[string]flagField{
		"session_sent": flagSessionSent, "dispatched": flagDispatched,
	}
	textFieldNames = map[string]textField{
		"text": textDecisive, "any": textAny, "frame": textFrame, "error": textError,
		"stderr": textStderr, "body_excerpt": textBody, "jsonrpc_message": textMessage,
		"jsonrpc_data": textData, "www_authenticate": textChallenge, "location": textLocation,
		"content_type": textContentType, "stdout_junk": textStdout, "command": textCommand,
		"protocol_version": textProtocol,
	}
)
