package rules

import (
	"bytes"

	"mcpledger/events"
)

// block is a run of lines that says what failed.
type block struct {
	from, to int  // lines of the reading; none when from == to
	best     int  // the line that says most
	frame    span // the stack frame it comes from, if one is shown
}

// maxBlockLines bounds a block.
const maxBlockLines = 48

// quietScore is the score of a line that is no part of any block.
const quietScore = 10

// score says how much a line tells of what failed. The numbers matter by their
// order alone: a cause named before an announced error before any other line, an
// answer of the server before its standard error before the client's words.
func (l *line) score(inCall bool) int {
	score := 0
	switch l.kind {
	case kindRoot:
		score = 60
	case kindThrown:
		score = 54
	case kindError:
		score = 50
	case kindPlain:
		score = 20
		if l.cues&cueCause != 0 {
			score = 40
		}
	case kindInfo:
		return quietScore
	case kindHollow:
		return quietScore / 2
	default:
		return -1
	}
	switch {
	case l.cues&cueCause != 0:
		score += 8
	case l.cues&cueGeneric != 0:
		score -= 12
	case l.cues&cueFailure != 0:
		score += 2
	}
	switch l.from {
	case fromStdout:
		score -= 2
	case fromMessage:
		score += 20
	case fromBody:
		score += 6
	case fromError:
		score -= 6
		if inCall {
			score += 20 // and its server lives, so that its standard error is old
		}
	}
	return score
}

// decide returns the block of the line that tells most, of equal ones the last: what
// a program says last is what ended it. When no line says anything the block is
// empty and best is the last report of work done, or -1.
func (r *reading) decide() block {
	best, top := -1, 0
	inCall := r.phase() == events.PhaseCallTool && !r.exited() && !r.signalled() && !r.numbers[numberHTTPStatus].seen()
	hangs := false
	for i := range r.lines {
		score := r.lines[i].score(inCall)
		if hangs = r.hangs(i, hangs); hangs {
			score-- // the line above announces it
		}
		if score >= top && score > 0 {
			best, top = i, score
		}
	}
	if top <= quietScore {
		return block{best: best}
	}
	if inCall && r.isAboutCall(&r.lines[best]) {
		r.silenceStderr()
	}
	return r.blockAt(best)
}

// vagueWords stand in what a tool says when the cause lies behind it, in what it asked or
// ran, so that standard error may tell more.
var vagueWords = newWordSet(`connect connection connecting connected reach fetch fetching network host unavailable internal timeout timed
	request response server service api backend upstream wrong unknown unexpected error failed exit code status process command
	closed disconnected driver database login auth authentication token`)

// isAboutCall reports the words of a tool whose server lives, none of which is vague.
// They are about what the call asked for: what stands in standard error was said about
// something else.
func (r *reading) isAboutCall(l *line) bool {
	if l.from <= fromStderr {
		return false
	}
	low := bytes.TrimPrefix(r.lower(l.said()), []byte("error: "))
	for len(low) > 0 {
		n := lenToken(low)
		if vagueWords.has(low[:n]) {
			return false
		}
		low = low[max(n, 1):]
	}
	return true
}

// silenceStderr takes the lines of standard error out of what may tell a cause.
func (r *reading) silenceStderr() {
	for i := range r.lines {
		if l := &r.lines[i]; l.from == fromStderr && l.inBlock() {
			l.kind = kindNoise
		}
	}
}

// hangs reports a plain line that is indented below one that says something; above
// says whether the line above it hangs too.
func (r *reading) hangs(i int, above bool) bool {
	if i == 0 || r.lines[i].kind != kindPlain || r.lines[i].stamped {
		return false
	}
	l, head := &r.lines[i], &r.lines[i-1]
	return head.from == l.from && head.says() && (head.indent < l.indent || head.indent == l.indent && above)
}

// blockAt returns the block around a line that says something.
func (r *reading) blockAt(best int) block {
	b := block{from: best, to: best + 1, best: best}
	if tree := r.treeAbove(best); tree >= 0 {
		b.from = tree
	}
	for b.from > 0 && b.to-b.from < maxBlockLines && r.leads(b.from-1, b.from) {
		b.from--
	}
	for b.to < len(r.lines) && b.to-b.from < maxBlockLines && r.follows(b.to, b.from) {
		b.to++
	}
	b.frame = r.frameOf(b)
	return b
}

// treeAbove returns the line of a drawn chain of causes that line i hangs below,
// indented, as the output of a build does; -1 when there is none.
func (r *reading) treeAbove(i int) int {
	for j := i; j >= 0 && i-j < maxBlockLines && r.lines[j].from == r.lines[i].from; j-- {
		switch l := &r.lines[j]; {
		case l.tree:
			return j
		case l.kind != kindBlank && l.indent < 4:
			return -1
		}
	}
	return -1
}

// leads reports whether line i belongs to the block that begins with the next line.
func (r *reading) leads(i, next int) bool {
	above, below := &r.lines[i], &r.lines[next]
	if above.from != below.from || !above.inBlock() {
		return false
	}
	switch {
	case above.tree || below.tree:
		return above.tree && (below.tree || below.indent > above.indent)
	case r.isNPM(i):
		return r.isNPM(next)
	case below.kind == kindRoot:
		return above.says() && above.indent <= below.indent
	default: // an item of a list, below which its trouble is told
		return above.kind == kindPlain && above.indent < below.indent && has(r.low[above.content:above.end], "* ")
	}
}

// follows reports whether line i continues the block that begins at line from.
func (r *reading) follows(i, from int) bool {
	l, head := &r.lines[i], &r.lines[from]
	if l.from != head.from {
		return false
	}
	switch npm := r.isNPM(from); {
	case npm || head.tree:
		return r.isNPM(i) == npm && (l.tree || npm || l.indent > head.indent)
	case l.kind == kindFrame || l.kind == kindProp:
		return true
	case l.from == fromError && isFieldList(r.low[head.content:head.end]):
		return i == from+1 && l.indent == 0 // a field's name; below it stands a value, which varies
	case l.kind == kindBlank:
		return i+1 < len(r.lines) && r.goesOn(i+1, from)
	case l.kind == kindPlain:
		tells := l.cues&cueGeneric == 0 || l.cues&cueCause != 0
		return tells && !l.stamped && (!head.stamped || l.indent > 0)
	default: // another error, or noise
		return l.indent > head.indent && l.says() && !l.stamped
	}
}

// goesOn reports whether line i, behind a blank one, still belongs to the block that
// begins at line from: it is indented, the first of a list of causes, or a named
// value.
func (r *reading) goesOn(i, from int) bool {
	l, head := &r.lines[i], &r.lines[from]
	if l.from != head.from || l.stamped || l.kind != kindPlain && l.kind != kindProp {
		return false
	}
	low := r.low[l.content:l.end]
	colon := bytes.IndexByte(low, ':')
	return l.indent > 0 || has(low, "caused by:") || 0 < colon && colon <= 24
}

func (r *reading) isNPM(i int) bool {
	return has(r.low[r.lines[i].content:], "npm error")
}

// innerFrames begin frames of a runtime, which say nothing of the program.
var innerFrames = []string{"at node:", "at internal/", "at module.", "at java.base", "at system.", "runtime.", "panic(", "goroutine ", "/"}

// frameOf returns the frame the block comes from: for Python, whose innermost frame
// stands last, the one above; else the first below that is not the runtime's own.
func (r *reading) frameOf(b block) span {
	above := span{}
	for i := b.from - 1; i >= 0 && r.lines[i].kind == kindFrame; i-- {
		l := &r.lines[i]
		if low := r.low[l.content:l.end]; has(low, `file "`) {
			return span{l.content, l.end}
		} else if isPlace(low) {
			above = span{l.content, l.end}
		}
	}
	for i := b.best + 1; i < len(r.lines) && r.lines[i].from == r.lines[b.best].from; i++ {
		l := &r.lines[i]
		if low := r.low[l.content:l.end]; l.kind == kindFrame && !isInner(low) && !isCarets(low) {
			return span{l.content, l.end}
		}
	}
	return above
}

func isInner(low []byte) bool {
	for _, prefix := range innerFrames {
		if has(low, prefix) {
			return true
		}
	}
	return bytes.Contains(low, []byte("(node:"))
}
