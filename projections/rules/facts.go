package rules

import "mcpledger/events"

// facts is what the evidence of one failure holds that is not text, by the fields that a
// rule may match.
type facts struct {
	enums   [enumFieldCount]string // "": not seen
	numbers [numberFieldCount]number
	flags   [flagFieldCount]bool
}

// number is one number of the evidence, 0 when it was not seen.
type number struct {
	value int64
	seen  bool
}

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
	f.numbers = [numberFieldCount]number{}
	if e.ExitCode != nil {
		f.numbers[numberExitCode] = number{int64(*e.ExitCode), true}
	}
	f.numbers[numberHTTPStatus] = number{int64(e.HTTPStatus), e.HTTPStatus != 0}
	if e.JSONRPCCode != nil {
		f.numbers[numberJSONRPCCode] = number{int64(*e.JSONRPCCode), true}
	}
	f.numbers[numberElapsedMS] = number{e.ElapsedMS, e.ElapsedMS != 0}
	f.numbers[numberLimitMS] = number{e.LimitMS, e.LimitMS != 0}
	f.numbers[numberStderrBytes] = number{e.StderrBytes, true}
	if e.StderrLastMS != nil {
		f.numbers[numberStderrLastMS] = number{*e.StderrLastMS, true}
	}
	f.numbers[numberRetryAfterMS] = number{e.RetryAfterMS, e.RetryAfterMS != 0}
	f.numbers[numberJunkLines].seen = true
	if e.StdoutJunk != nil {
		f.numbers[numberJunkLines].value = e.StdoutJunk.Count
	}
	f.flags[flagSessionSent], f.flags[flagDispatched] = e.SessionSent, e.Dispatched
}

func (f *facts) phase() events.Phase { return events.Phase(f.enums[enumPhase]) }

func (f *facts) kind() events.ErrorKind { return events.ErrorKind(f.enums[enumErrorKind]) }

// exited reports that a process ended with an exit code.
func (f *facts) exited() bool { return f.numbers[numberExitCode].seen }

// signalled reports that a process was ended by a signal.
func (f *facts) signalled() bool { return f.enums[enumSignal] != "" }
