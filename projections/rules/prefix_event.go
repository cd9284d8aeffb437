package rules

import "bytes"

// event passes over the columns before the message of a cluster's event, as kubectl prints
// them: "Warning  Failed  12s (x3 over 58s)  kubelet  " below the description of an object,
// "58s  Warning  Failed  pod/crm-0  " in a list. What is called a warning there is why
// something does not run.
func (p *prefix) event() bool {
	if first := p.raw[p.at]; p.stamped || !isDigit(first) && first != 'N' && first != 'W' && first != '<' {
		return false // as most lines
	}
	c := columns{rest: p.raw[p.at:]}
	listed := c.age()
	lvl := eventLevel(c.word())
	if lvl == levelNone || !isReason(c.word()) || c.age() == listed {
		return false
	}
	if from := c.word(); endsIn(from, ",") { // and its node, as older versions write it
		c.word()
	}
	if len(c.rest) == 0 {
		return false
	}
	p.level, p.stamped = lvl, true
	p.at = len(p.raw) - len(c.rest)
	return true
}

// eventLevel returns the level of a type of events.
func eventLevel(t []byte) level {
	switch string(t) {
	case "Normal":
		return levelInfo
	case "Warning":
		return levelError
	default:
		return levelNone
	}
}

// isReason reports the reason of an event, one word of letters such as FailedScheduling.
func isReason(w []byte) bool {
	if len(w) == 0 || !isUpper(w[0]) {
		return false
	}
	for _, c := range w {
		if !isLetter(c) {
			return false
		}
	}
	return true
}

// columns walks the columns of a line, between which there are spaces.
type columns struct{ rest []byte }

// word passes over the next column and returns it.
func (c *columns) word() []byte {
	w, rest, _ := bytes.Cut(c.rest, []byte(" "))
	c.rest = bytes.TrimLeft(rest, " ")
	return w
}

// age passes over how long ago something was, and how often since, "12s (x3 over 2m5s)";
// false when that is not the next column.
func (c *columns) age() bool {
	w, rest, _ := bytes.Cut(c.rest, []byte(" "))
	if len(w) < 2 || string(w) != "<unknown>" && (!isDigit(w[0]) || !onlyOf(w, "0123456789dhms")) {
		return false
	}
	rest = bytes.TrimLeft(rest, " ")
	if has(rest, "(x") {
		if _, behind, ok := bytes.Cut(rest, []byte(") ")); ok {
			rest = bytes.TrimLeft(behind, " ")
		}
	}
	c.rest = rest
	return true
}
