package simulate

import (
	"fmt"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
)

// The failures of the fleets, with evidence as it is taken from real servers.

// exited is a process that ends with code 1.
func exited(stderr string, took time.Duration) Failure {
	code, spoke := 1, int64(20)
	return Failure{Took: took, Evidence: events.Evidence{
		Phase: events.PhaseHandshake, Transport: events.TransportStdio, Error: "transport closed",
		ErrorKind: events.KindExit, ExitCode: &code, EndedBy: events.EndedByServer,
		StderrTail: stderr, StderrBytes: int64(len(stderr)), StderrLastMS: &spoke, ElapsedMS: took.Milliseconds(),
	}}
}

func missingModule(module string) Failure {
	return exited("Traceback (most recent call last):\n  File \"/srv/app/server.py\", line 3, in <module>\n    import "+module+
		"\nModuleNotFoundError: No module named '"+module+"'", 800*time.Millisecond)
}

// silentExit is a process that ends without a word.
func silentExit() Failure {
	f := exited("", 500*time.Millisecond)
	f.Evidence.StderrLastMS = nil
	return f
}

func missingCommand(name string) Failure {
	return Failure{Took: time.Millisecond, Evidence: events.Evidence{
		Phase: events.PhaseSpawn, Transport: events.TransportStdio, ErrorKind: events.KindExecNotFound, Command: name,
		Error: "exec: \"" + name + "\": executable file not found in $PATH", ElapsedMS: 1,
	}}
}

// stillDownloading is a package runner at work when its whole budget was used up.
func stillDownloading() Failure {
	spoke, took := int64(400), projections.PackageRunnerBudget
	return Failure{Took: took, Evidence: events.Evidence{
		Phase: events.PhaseHandshake, Transport: events.TransportStdio, ErrorKind: events.KindTimeoutStart, Command: "npx @acme/reports",
		Error: "no answer to initialize", EndedBy: events.EndedByUs, StderrTail: "npm http fetch GET 200 https://packages.example/acme-reports 5120ms",
		StderrLastMS: &spoke, ElapsedMS: took.Milliseconds(), LimitMS: took.Milliseconds(),
	}}
}

func overHTTP(phase events.Phase, kind events.ErrorKind, text string, took time.Duration) Failure {
	return Failure{Took: took, Evidence: events.Evidence{
		Phase: phase, Transport: events.TransportHTTP, ErrorKind: kind, Error: text, ElapsedMS: took.Milliseconds(),
	}}
}

func refused(host int) Failure {
	text := fmt.Sprintf("dial tcp 192.0.2.%d:443: connect: connection refused", host)
	return overHTTP(events.PhaseConnect, events.KindRefused, text, 20*time.Millisecond)
}

func unreachable(host int) Failure {
	text := fmt.Sprintf("dial tcp 192.0.2.%d:443: connect: network is unreachable", host)
	return overHTTP(events.PhaseConnect, events.KindUnreachable, text, 5*time.Millisecond)
}

func status(code int, challenge string) Failure {
	f := overHTTP(events.PhaseHandshake, events.KindHTTPStatus, fmt.Sprintf("server answered %d", code), 90*time.Millisecond)
	f.Evidence.HTTPStatus, f.Evidence.WWWAuthenticate = code, challenge
	return f
}

func expiredToken() Failure {
	return status(401, `Bearer error="invalid_token", error_description="The access token expired"`)
}

// maintenance is the page of a service that is down on purpose.
func maintenance() Failure {
	f := status(503, "")
	f.Evidence.ContentType, f.Evidence.BodyExcerpt = "text/plain", "Down for maintenance, back in half an hour."
	return f
}

// unanswered is a request that nothing came back to.
func unanswered() Failure {
	f := overHTTP(events.PhaseCallTool, events.KindTimeoutHeaders, "no answer within 1m0s", time.Minute)
	f.Evidence.LimitMS = f.Took.Milliseconds()
	return f
}

// rpcError is a JSON-RPC error.
func rpcError(message string) Failure {
	f, code := overHTTP(events.PhaseCallTool, events.KindJSONRPC, message, 120*time.Millisecond), -32000
	f.Evidence.JSONRPCCode, f.Evidence.JSONRPCMessage = &code, message
	return f
}

// inCall is a failure as a call meets it.
func inCall(f Failure) Failure {
	f.Evidence.Phase = events.PhaseCallTool
	return f
}
