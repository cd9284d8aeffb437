package rules

import (
	"bytes"
	"slices"
)

// has reports whether b begins with prefix.
func has(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// endsIn reports whether b ends with suffix.
func endsIn(b []byte, suffix string) bool {
	return len(b) >= len(suffix) && string(b[len(b)-len(suffix):]) == suffix
}

// isCarets reports the marks that point at a place in the source line above.
func isCarets(low []byte) bool { return onlyOf(low, "^~ -") && low[0] != '-' }

// isPunctuation reports brackets and the like, as they close a printed object.
func isPunctuation(low []byte) bool { return onlyOf(low, "{}[](),;. ") }

func onlyOf(low []byte, chars string) bool {
	for _, c := range low {
		if bytes.IndexByte([]byte(chars), c) < 0 {
			return false
		}
	}
	return true
}

// isFieldList reports a line such as "2 validation errors for Order", below which the
// fields are listed.
func isFieldList(low []byte) bool {
	return bytes.Contains(low, []byte("validation error for ")) || bytes.Contains(low, []byte("validation errors for "))
}

// isNumbered reports a line such as "3: core::panicking::panic" of a backtrace.
func isNumbered(low []byte) bool {
	i := 0
	for i < len(low) && isDigit(low[i]) {
		i++
	}
	return i > 0 && i+1 < len(low) && low[i] == ':' && low[i+1] == ' '
}

// isCall reports a frame of a JavaScript, Java or .NET stack, "at f (file.js:1:2)".
func isCall(low []byte) bool {
	last := low[len(low)-1]
	return has(low, "at ") && (last == ')' || isDigit(last) || last == '{' || last == '>' || has(low, "at async ")) && bytes.ContainsAny(low, "(:/.<")
}

// isCallNumber reports a line such as "#0 /srv/app.php(3): main()" of a stack trace.
func isCallNumber(low []byte) bool {
	return len(low) > 2 && low[0] == '#' && isDigit(low[1])
}

// isPlace reports a line that is a file with a line number and no more, as Node
// prints it above the source line that threw.
func isPlace(low []byte) bool {
	i := len(low)
	for i > 0 && isDigit(low[i-1]) {
		i--
	}
	if i == len(low) || i < 3 || low[i-1] != ':' || bytes.IndexByte(low, ' ') >= 0 {
		return false
	}
	return has(low, "node:") || has(low, "file:") || has(low, "/") || low[1] == ':'
}

// The words of settings as programs show them when they start: settings end their names,
// states are values of any, and amounts stand behind a number.
var (
	settings = newWordSet(`timeout limit limits limiting interval ttl size retries attempts quota budget threshold delay throttling version versions`)
	states   = newWordSet(`0 on off none enabled disabled`)
	amounts  = newWordSet(`ms s sec secs second seconds m min mins minute minutes h hour hours day days kb mb gb kib mib gib bytes
		requests calls queries messages tokens connections files workers times per`)
)

// isSetting reports a line that shows a setting or that there is none of something, such
// as "Request timeout: 30 s" and "Errors: 0". Its words are those of causes.
func isSetting(low []byte) bool {
	name, value, ok := bytes.Cut(low, []byte(": "))
	if !ok || len(name) == 0 || bytes.ContainsFunc(name, func(r rune) bool { return r != ' ' && r != '-' && r != '_' && (r < 'a' || r > 'z') }) {
		return false
	}
	if states.has(value) {
		return true
	}
	name = name[bytes.LastIndexAny(name, " -_")+1:]
	return settings.has(name) && len(value) > 0 && isDigit(value[0]) && onlyAmounts(value)
}

// onlyAmounts reports numbers, dates and versions, with what they count, such as
// "100 requests per minute".
func onlyAmounts(value []byte) bool {
	for word := range bytes.FieldsSeq(value) {
		unit := bytes.TrimLeft(word, "0123456789.,-")
		if len(unit) > 0 && !amounts.has(bytes.TrimRight(unit, ",")) {
			return false
		}
	}
	return true
}

// isThrown reports the first line of an exception: the name of its type, then a
// colon, a code in brackets or the end of the line.
func isThrown(l *line, low []byte) bool {
	if l.cues&cueThrown != 0 {
		return true
	}
	i := 0
	for i < len(low) && (isWordByte(low[i]) || low[i] == '.' || low[i] == '$') {
		i++
	}
	name := low[:i]
	if !endsIn(name, "error") && !endsIn(name, "exception") &&
		!endsIn(name, "exceptiongroup") {
		return false
	}
	rest := low[i:]
	return len(rest) == 0 && len(name) > len("exception") || has(rest, " [") || has(rest, " (") ||
		has(rest, ":") && len(name) > len("error")
}

// hollowWords are what clients make of an end or a timeout whose cause they do not
// know. A text of these words alone says nothing.
var hollowWords = newWordSet(`
	a after and at been before by call calling child client close closed code connect connected connecting connection
	context deadline did discover disconnected during elapsed end ended eof epipe error exceeded exit exited exits failed failure file
	for from get handshake has have http in initialize initialized initializing is it its list lost mcp message method
	ms not notification no of on operation pipe prematurely process read reader receive received remote
	request requests respond response result s sec seconds send sending server session signal start started status stderr stdin stdio stdout
	out stream subprocess terminated terminating the time timed timeout to tool tools transport unexpected unexpectedly
	waiting was while with within without write writing already broken cancelled canceled over peer pid null undefined
	system io ioexception early due likely this mcpexception transportexception
	brokenresourceerror closedresourceerror endofstream anyio mcperror exception`)

// endWords are the hollow words of which one at least must be there.
var endWords = newWordSet(`
	closed close eof epipe broken exit exited exits terminated disconnected timeout canceled timed ended end deadline lost pipe
	cancelled canceled closedresourceerror brokenresourceerror endofstream`)

// advices begin what clients say, behind their first sentence, to everybody whose
// server ended.
var advices = []string{
	"for troubleshooting", "for more information", "for more details", "if you are developing", "check the log", "check logs",
	"check your log", "see the log", "see logs",
}

func isAdvice(low []byte) bool {
	return slices.ContainsFunc(advices, func(words string) bool { return has(low, words) })
}

// isHollow reports a text that says that something ended or took too long, and
// nothing of why. The name of a server, in quotes behind that word, is passed over,
// as is advice.
func isHollow(low []byte) bool {
	if sentence, rest, ok := bytes.Cut(low, []byte(". ")); ok && isAdvice(rest) {
		low = sentence
	}
	ends := false
	for i := 0; i < len(low); {
		if low[i] < 'a' || low[i] > 'z' {
			if low[i] >= 0x80 {
				return false
			}
			if (low[i] == '"' || low[i] == '\'') && endsIn(low[:i], "server ") {
				i = min(closingQuote(low, i), len(low)-1)
			}
			i++
			continue
		}
		from := i
		for i < len(low) && 'a' <= low[i] && low[i] <= 'z' {
			i++
		}
		if !hollowWords.has(low[from:i]) {
			return false
		}
		ends = ends || endWords.has(low[from:i])
	}
	return ends
}
