package rules

import (
	"strconv"
	"strings"

	"mcpledger/events"
)

// fewBytes is the length below which a single word in an HTTP answer, such as a body
// of "nf", tells a person too little without the status.
const fewBytes = 20

// withEnding returns the decisive words as people are shown them: with how it ended
// where there are none, or too few to be understood, or they are mere chatter.
func withEnding(e *events.Evidence, words string, chatter bool) string {
	switch {
	case words == "":
		return endingOf(e)
	case chatter && (e.ExitCode != nil || e.Signal != ""):
		return cutText(endingOf(e) + ", after it said: " + words)
	case e.HTTPStatus >= 400 && isBare(words, strconv.Itoa(e.HTTPStatus)):
		return cutText(endingOf(e) + ": " + words)
	}
	return words
}

// chatty reports whether the words of a block are what a program wrote to standard
// output, where nothing but messages belongs, and do not tell of a failure.
func (r *reading) chatty(d block) bool {
	return d.best >= 0 && r.lines[d.best].from == fromStdout && r.lines[d.best].cues == 0
}

// isBare reports a single short word that does not name the status itself.
func isBare(words, status string) bool {
	return len(words) < fewBytes && !strings.Contains(words, " ") && !strings.Contains(words, status)
}

// endingOf says how a failure ended, from its numbers and names alone; empty if there
// are none.
func endingOf(e *events.Evidence) string {
	switch {
	case e.HTTPStatus != 0:
		return "HTTP status " + strconv.Itoa(e.HTTPStatus)
	case e.JSONRPCCode != nil:
		return "JSON-RPC error " + strconv.Itoa(*e.JSONRPCCode)
	case e.ExitCode != nil:
		return "process exited with code " + strconv.Itoa(*e.ExitCode)
	case e.Signal != "":
		return "process ended by " + e.Signal
	}
	return strings.ReplaceAll(string(e.ErrorKind), "_", " ")
}
