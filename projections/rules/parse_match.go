package rules

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"mcpledger/events"
)

// Words for a field that was seen, with whatever value, and for one that was not.
const (
	wordAny  = "any"
	wordNone = "none"
)

// enumWords are the values of the fields that have a closed list of them.
var enumWords = map[enumField][]string{
	enumPhase: words(events.PhaseConfig, events.PhaseSpawn, events.PhaseConnect, events.PhaseHandshake,
		events.PhaseInitialized, events.PhaseListTools, events.PhaseCallTool),
	enumTransport: words(events.TransportStdio, events.TransportHTTP, events.TransportSSE),
	enumErrorKind: words(events.KindExecNotFound, events.KindPermission, events.KindExit, events.KindSignal,
		events.KindDNS, events.KindRefused, events.KindReset, events.KindUnreachable, events.KindTLS,
		events.KindTimeoutConnect, events.KindTimeoutHeaders, events.KindTimeoutBody, events.KindTimeoutStart,
		events.KindEOF, events.KindMalformed, events.KindOversized, events.KindRedirect, events.KindHTTPStatus,
		events.KindJSONRPC, events.KindToolError, events.KindCancelled),
	enumEndedBy: words(events.EndedByServer, events.EndedByUs),
}

func words[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// signalName is the form of a signal's name.
var signalName = regexp.MustCompile(`^SIG[A-Z0-9+-]{1,12}$`)

// match reads a mapping of conditions, all of which must hold.
func (p *parser) match(n *yaml.Node) matcher {
	var m matcher
	known := map[string]func(*yaml.Node){}
	for key, field := range enumFields {
		known[key] = func(n *yaml.Node) { m.enums = append(m.enums, p.enum(n, key, field)) }
	}
	for key, field := range numberFields {
		known[key] = func(n *yaml.Node) { m.numbers = append(m.numbers, p.numbers(n, field)) }
	}
	for key, field := range flagFields {
		known[key] = func(n *yaml.Node) { m.flags = append(m.flags, flagCondition{field, p.boolean(n)}) }
	}
	for key, field := range textFieldNames {
		known[key] = func(n *yaml.Node) { m.texts = append(m.texts, p.patterns(n, field)) }
	}
	p.fields(n, nil, known)
	if len(n.Content) == 0 {
		p.fail(n, "a match without a condition; leave it out to match everything")
	}
	return m
}

func (p *parser) enum(n *yaml.Node, key string, field enumField) enumCondition {
	c := enumCondition{field: field}
	p.list(n, func(n *yaml.Node) {
		word := p.text(n)
		switch {
		case word == wordNone:
			word = ""
		case field == enumPhase && word == "initialize":
			word = string(events.PhaseHandshake)
		case field == enumSignal && !signalName.MatchString(word):
			p.fail(n, "%q is no signal; SIGKILL is one", word)
		case field != enumSignal:
			word = oneOf(p, n, key, enumWords[field])
		}
		c.values = append(c.values, word)
	})
	return c
}

// numbers reads numbers and ranges, such as 401, 500..599 or 126.. without an end.
func (p *parser) numbers(n *yaml.Node, field numberField) numberCondition {
	c := numberCondition{field: field}
	p.list(n, func(n *yaml.Node) {
		switch word := p.text(n); word {
		case wordNone:
			c.absent = true
			if field == numberStderrBytes || field == numberJunkLines {
				c.ranges = append(c.ranges, numberRange{}) // what is counted is known always
			}
		case wordAny:
			c.ranges = append(c.ranges, numberRange{math.MinInt64, math.MaxInt64})
		default:
			r, ok := parseRange(word)
			if !ok {
				p.fail(n, "%q is no number and no range; 401, 500..599, none and any are allowed", word)
			}
			c.ranges = append(c.ranges, r)
		}
	})
	return c
}

func parseRange(word string) (numberRange, bool) {
	low, high, isRange := strings.Cut(word, "..")
	if !isRange {
		v, err := strconv.ParseInt(word, 10, 64)
		return numberRange{v, v}, err == nil
	}
	r := numberRange{math.MinInt64, math.MaxInt64}
	var err1, err2 error
	if low != "" {
		r.from, err1 = strconv.ParseInt(low, 10, 64)
	}
	if high != "" {
		r.to, err2 = strconv.ParseInt(high, 10, 64)
	}
	return r, err1 == nil && err2 == nil && r.from <= r.to && low+high != ""
}

func (p *parser) patterns(n *yaml.Node, field textField) textCondition {
	c := textCondition{field: field}
	p.list(n, func(n *yaml.Node) {
		alternatives, err := compilePattern(p.text(n))
		if err != nil {
			p.fail(n, "%v", err)
			return
		}
		c.patterns = append(c.patterns, alternatives...)
	})
	return c
}
