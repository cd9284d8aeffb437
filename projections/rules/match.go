package rules

import "slices"

// matcher is the compiled match of a rule: it matches when every condition holds.
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
}

// look says what the field text stands for.
type look bool

const (
	lookDecisive look = false // the decisive block
	lookAll      look = true  // every block of every text
)

func (m *matcher) matches(r *reading, at look) bool {
	for i := range m.enums {
		if c := &m.enums[i]; !slices.Contains(c.values, r.enum(c.field)) {
			return false
		}
	}
	for i := range m.numbers {
		if !m.numbers[i].holds(r) {
			return false
		}
	}
	for _, c := range m.flags {
		if r.flag(c.field) != c.want {
			return false
		}
	}
	for i := range m.texts {
		if c := &m.texts[i]; c.first(r.text(c.field, at)) == nil {
			return false
		}
	}
	return true
}

func (c *numberCondition) holds(r *reading) bool {
	n, seen := r.number(c.field)
	if !seen {
		return c.absent
	}
	for _, rng := range c.ranges {
		if rng.from <= n && n <= rng.to {
			return true
		}
	}
	return false
}

// first returns the first pattern that matches t, or nil.
func (c *textCondition) first(t text) *pattern {
	for _, p := range c.patterns {
		if p.match(t) {
			return p
		}
	}
	return nil
}

// empty reports whether the matcher has no condition and so matches everything.
func (m *matcher) empty() bool {
	return len(m.enums)+len(m.numbers)+len(m.flags)+len(m.texts) == 0
}

// literals returns lower-case strings of which one occurs in every evidence that the
// matcher matches, taken from the condition with the best ones; nil when there are
// none. A pattern that matches the empty text has no literals, so a field not seen
// needs no care.
func (m *matcher) literals() []string {
	var best []string
	for i := range m.texts {
		var all []string
		for _, p := range m.texts[i].patterns {
			if p.literals == nil {
				all = nil
				break
			}
			all = append(all, p.literals...)
		}
		if shortest(all) > shortest(best) {
			best = all
		}
	}
	return best
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
