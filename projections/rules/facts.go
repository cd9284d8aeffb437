package rules

import (
	"math"

	"mcpledger/events"
)

// facts is what the evidence of one failure holds that is not text, by the fields that a
// rule may match.
type facts struct {
	enums   [enumFieldCount]string // "": not seen
	numbers [numberFieldCount]number
	flags   [flagFieldCount]bool
}

// number is a number of the evidence, or unseen.
type number int64

// unseen stands for a number that was not seen.
const unseen number = math.MinInt64

func (n number) seen() bool { return n != unseen }

// take fills f with the facts of evidence.
func (f *facts) take(e *events.Evidence) {
	f.enums[enumPhase] = string(e.Phase)
	if e.Phase == "initialize" { // what hosts call the handshake
		f.enums[enumPhase] = string(events.PhaseHandshake)
	}
	f.enums[enumTransport] = string(e.Transport)
	f.enums[enumErrorKind] = string(e.ErrorKind)
	f.enums[enumSignal] = e.Signal
	f.enums[enumEndedBy] = string(e.EndedBy)
	f.numbers[numberExitCode] = numberAt(e.ExitCode)
	f.numbers[numberHTTPStatus] = numberBut0(e.HTTPStatus)
	f.numbers[numberJSONRPCCode] = numberAt(e.JSONRPCCode)
	f.numbers[numberElapsedMS] = numberBut0(e.ElapsedMS)
	f.numbers[numberLimitMS] = numberBut0(e.LimitMS)
	f.numbers[numberStderrBytes] = number(e.StderrBytes)
	f.numbers[numberStderrLastMS] = numberAt(e.StderrLastMS)
	f.numbers[numberRetryAfterMS] = numberBut0(e.RetryAfterMS)
	f.numbers[numberJunkLines] = 0
	if e.StdoutJunk != nil {
		f.numbers[numberJunkLines] = number(e.StdoutJunk.Count)
	}
	f.flags[flagSessionSent], f.flags[flagDispatched] = e.SessionSent, e.Dispatched
}

// numberAt returns a number that is nil when it was not seen.
func numberAt[T int | int64](n *T) number {
	if n == nil {
		return unseen
	}
	return number(*n)
}

// numberBut0 returns a number that is 0 when it was not seen.
func numberBut0[T int | int64](n T) number {
	if n == 0 {
		return unseen
	}
	return number(n)
}

func (f *facts) phase() events.Phase { return events.Phase(f.enums[enumPhase]) }

func (f *facts) kind() events.ErrorKind { return events.ErrorKind(f.enums[enumErrorKind]) }

// stderrIsOld reports that a server, which lives, was silent while a call went on: what it
// wrote to standard error before is not about the call.
func (f *facts) stderrIsOld() bool {
	last, elapsed := f.numbers[numberStderrLastMS], f.numbers[numberElapsedMS]
	lives := !f.exited() && !f.signalled() && f.kind() != events.KindEOF
	return f.phase() == events.PhaseCallTool && lives && elapsed.seen() && last > elapsed
}

// exited reports that a process ended with an exit code.
func (f *facts) exited() bool { return f.numbers[numberExitCode].seen() }

// signalled reports that a process was ended by a signal.
func (f *facts) signalled() bool { return f.enums[enumSignal] != "" }
