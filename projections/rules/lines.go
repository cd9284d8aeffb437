package rules

import "bytes"

// source says which text of the evidence a line is from.
type source uint8

const (
	fromStdout source = iota // lines that are no messages
	fromStderr
	fromMessage
	fromBody
	fromError
)

// lineKind says what a line is.
type lineKind uint8

const (
	kindBlank  lineKind = iota
	kindFrame           // a stack frame, or the source code shown with it
	kindNoise           // a warning, a banner, a footer
	kindInfo            // a report of work done
	kindHollow          // a client's word for an end or a timeout: no cause
	kindProp            // a property of an error object
	kindPlain           // none of the others
	kindError           // announces an error
	kindThrown          // an exception by its type, or a panic
	kindRoot            // the cause behind an error
)

// line is one line of a text that may say what failed.
type line struct {
	span         // in the reading's buffer
	content int  // where what it says begins: behind indent, times and tags
	indent  int  // in bytes
	stamped bool // has a time, tag or level, so that it begins a log record
	tree    bool // part of a drawn chain of causes
	from    source
	kind    lineKind
	cues    cue
	found   span // in the reading's list of literals
	copy    int  // where copyBlocks put its content; 0: nowhere
}

// said returns where what the line says lies.
func (l *line) said() span { return span{l.content, l.end} }

// inBlock reports whether the line can be part of a block that says what failed.
func (l *line) inBlock() bool { return l.kind >= kindProp }

// says reports whether the line is part of what a signature is made of.
func (l *line) says() bool { return l.kind > kindProp }

// cut appends the lines of a span of the buffer.
func (r *reading) cut(s span, from source) {
	for at := s.start; at < s.end; {
		end := s.end
		if i := bytes.IndexByte(r.buf[at:s.end], '\n'); i >= 0 {
			end = at + i
		}
		r.lines = append(r.lines, line{span: span{at, end}, from: from})
		at = end + 1
	}
}

// judgeLines gives every line its kind, and finds literals on it. What it is can depend
// on the lines above.
func (r *reading) judgeLines(v *vocabulary) {
	var t tracker
	for i := range r.lines {
		l := &r.lines[i]
		if i > 0 && r.lines[i-1].from != l.from {
			t = tracker{}
		}
		raw := r.buf[l.start:l.end]
		at, level, stamped, relayed := stripHost(raw)
		if n := lenTreeMark(raw[at:]); n > 0 {
			at += n
			l.tree = true
		}
		l.indent, l.content, l.stamped = indentOf(raw), l.start+at, stamped
		low := r.low[l.content:l.end]
		l.found.start = len(r.occurrences)
		r.occurrences = v.finder.find(r.occurrences, r.lower(l.span), l.start)
		l.found.end = len(r.occurrences)
		for _, o := range r.occurrences[l.found.start:] {
			if !relayed || int(o.start) >= l.content {
				l.cues |= v.cue(o, l.content)
			}
		}
		switch {
		case len(low) == 0:
			l.kind = kindBlank
			t = tracker{}
		case t.quotes(raw[l.indent:], r.low[l.start+l.indent:l.end]):
			l.kind = kindNoise
		case t.frame(l, low):
			l.kind = kindFrame
		case l.from <= fromStderr:
			l.kind = t.stderrKind(l, level, low)
		default:
			l.kind = t.spokenKind(l, low)
		}
	}
}

// tracker remembers what the lines above mean for the next one.
type tracker struct {
	quoting
	source  int  // 1 + the indent of a Python frame, whose source code may follow
	python  bool // below the frames of a Python traceback
	shown   int  // lines of source code that may follow the name of their place
	goStack bool // inside the stack of a goroutine
	stack   bool // inside a numbered backtrace
}

// frame reports a stack frame, or source code and carets shown with one.
func (t *tracker) frame(l *line, low []byte) bool {
	switch {
	case t.source > 0 && l.indent >= t.source+1:
		return true
	case has(low, `file "`) && bytes.Contains(low, []byte(`", line `)):
		t.source, t.python = l.indent+1, true
		return true
	}
	t.source = 0
	switch {
	case t.goStack, isCarets(low), isCall(low):
		return true
	case has(low, "goroutine ") && endsIn(low, "]:"):
		t.goStack = true
		return true
	case has(low, "stack backtrace:"):
		t.stack = true
		return true
	case t.stack && isNumbered(low), isNumbered(low) && bytes.Contains(low, []byte(": 0x")):
		return true
	case isCallNumber(low), has(low, "... ") && endsIn(low, " more"):
		return true
	case has(low, "from ") && bytes.Contains(low, []byte(":in ")):
		return true
	case isPlace(low):
		t.shown = 2
		return true
	case t.shown > 0 && !isThrown(l, low) && l.cues&cueError == 0:
		t.shown--
		return true
	}
	t.shown, t.stack = 0, false
	return false
}

// stderrKind says what a line of standard error is that is no frame.
func (t *tracker) stderrKind(l *line, lvl level, low []byte) lineKind {
	python := t.python
	t.python = false
	switch {
	case isRoot(l, low):
		return kindRoot
	case python || isThrown(l, low):
		return kindThrown
	case l.cues&cueProp != 0 || isPunctuation(low):
		return kindProp
	case l.cues&cueNoise != 0 || lvl == levelWarn:
		return kindNoise
	case lvl == levelInfo, lvl == levelNone && isSetting(low):
		return kindInfo
	case lvl == levelError || l.cues&cueError != 0:
		return kindError
	case l.cues&cueBanner != 0 && l.cues&(cueCause|cueFailure) == 0:
		return kindNoise
	case l.cues&cueInfo != 0:
		return kindInfo
	default:
		return kindPlain
	}
}

// spokenKind says what a line of a client's or a server's answer is. Such a text is
// about the failure, so that it has no noise but ids.
func (t *tracker) spokenKind(l *line, low []byte) lineKind {
	switch {
	case isID(low):
		return kindNoise
	case isHollow(low):
		return kindHollow
	case isRoot(l, low):
		return kindRoot
	case l.from == fromError && isThrown(l, low):
		return kindThrown
	case l.from == fromError && (l.cues&cueProp != 0 || isPunctuation(low)):
		return kindProp
	default:
		return kindError
	}
}

// isRoot reports the cause behind an error, named on the same line.
func isRoot(l *line, low []byte) bool {
	return l.cues&cueRoot != 0 && !endsIn(bytes.TrimRight(low, " "), ":")
}
