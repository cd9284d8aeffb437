package rules

import "slices"

// cue is what a literal says about the line it stands in.
type cue uint16

const (
	cueNoise   cue = 1 << iota // a warning, a progress line, a footer: never a cause
	cueBanner                  // what a healthy server says of itself
	cueInfo                    // a report of work done
	cueCause                   // names a cause
	cueFailure                 // says that something failed
	cueError                   // announces an error
	cueGeneric                 // says that all failed, and not why
	cueRoot                    // announces the cause behind an error
	cueProp                    // a property of an error object, or a part of one
	cueThrown                  // begins the first line of an error that ended a program
)

// word is an entry of the lexicon, in lower case.
type word struct {
	literal string
	cue     cue
	// first says that it counts at the beginning of a line's content alone.
	first bool
}

// lexicon has the words by which the decisive line is told from the others. The
// words are those of many programs; whole sentences of one program do not belong
// here but in a rule set.
var lexicon = slices.Concat(
	group(cueNoise, false,
		"deprecat", "experimentalwarning", "npm warn", "npm notice", "trace-warnings", "a complete log of this run",
		"futurewarning", "userwarning", "runtimewarning", "resourcewarning", "syntaxwarning", "importwarning", "sslwarning", "requestwarning",
		"dependencywarning", "pydantic.dev/", "update available",
		"looking for funding", "run 'docker run --help'", "see 'docker ", "[notice]", "does not match the detected host platform",
		"rust_backtrace", "mark-compact", "last few gcs", "native stack trace", "js stacktrace", "most recent call last",
		"direct cause of the following", "another exception occurred", "--trace-uncaught", "level=warn", `"level":"warn`, `"level":40`,
		"(sub-exception", ") warning: ", "listenersexceededwarning", "debugger attached", "tip:", "emitted 'error' event on", "trace-deprecation", "run 'npm help",
		"this is a problem related to network", "in most cases you", "a package version that doesn't exist", "a package version that is forbidden by", "on a server you do not have access to",
		"it's possible that the file was already in use", "or that you lack permissions to access it", "telemetry disabled", "send telemetry",
		"if you are behind a proxy", "note that you can also install from", "tarball, folder, http url",
		"you may need additional", "failed to remove some directories",
		"failed to connect to the bus", "failed to call method: org.freedesktop", "exiting gpu process", "libva error", "libegl warning", "gtk-message", "gtk-warning", // of browsers without a desktop
		"pulling fs layer", ": download complete", ": pull complete", ": verifying checksum"),
	group(cueNoise, true,
		"warning", "warn:", "warn ", "node.js v", "note:", "unable to find image", "pulling from", "digest:", "status: downloaded",
		"hint:", "help:", "---", "===", "***", "exit status ", "stack trace:", "call stack:", "at process", "from /"),
	group(cueNoise, true, "warnung", "avertissement", "advertencia", "aviso", "avviso", "предупреждение", "Предупреждение", "ostrzeżenie", "uyarı", "警告", "경고"),
	group(cueBanner, false,
		"running on stdio", "running on http", "server running", "server is running", "server started", "started and connected",
		"connected successfully", "listening on", "listening at", "using transport", "server ready", "ready to accept",
		"waiting for", "initialized", "up and running"),
	group(cueBanner, true, "starting", "started", "loading", "loaded", "initializing", "connecting to", "welcome", "ready", "warming up", "still loading"),
	group(cueInfo, false,
		"npm http", "npm info", "npm verb", "npm sill", "level=info", "level=debug", `"level":"info`, `"level":"debug`,
		`"level":30`, `"level":20`, "cache miss", "cache hit", "processing request of type",
		"using default", ", using ", ", defaulting", ", assuming", ", running without", ", running in ", "falling back to", ", creating", "creating it", "will be created", ", rebuilding", ", ignoring", ", skipping",
		"not required", "requires no ", "no authentication required", "no api key required", "no token required", "no login required",
		"no .env file", ".env file not found", "timeout set to", "only public", "running in read-only mode", "tools disabled",
		"tools are disabled", "search disabled", "support disabled", "features disabled", "features are disabled",
		", using anonymous", "continuing without", "proceeding without", "will be disabled", "demo mode", "requests are limited",
		"lower rate limit", "tracing disabled", "metrics disabled", "caching disabled", "optional dependency"),
	group(cueNoise, true, "downloading", "downloaded", "installed ", "resolved ", "prepared ", "building ", "built ", "audited ", "uninstalled ",
		"added ", "fetching ", "using cpython", "creating virtual", "npx: installed", "collecting ", "requirement already", "extracting"),
	group(cueInfo, true, "need to install the following", "skipping ", "optional ", "fixed:", "changelog:", "release notes",
		"if you see ", "if this ", "if the error ", "if the problem ", "when the ", "when a ", "see the ", "see http", "for more ",
		"read more", "learn ", "report bugs", "try again with"),
	group(cueCause, false,
		"is required", "are required", "required ", "requires ", "missing", "not set", "not found", "no such", "not defined", "is not a ",
		"must be", "must set", "must provide", "must specify", "must install", "must supply", "please set", "please provide", "please install",
		"please log", "please visit", "please open", "please auth", "cannot find", "can't find", "could not find", "couldn't find", "cannot open",
		"can't open", "cannot read", "cannot import", "cannot load", "cannot connect", "denied", "refused", "unauthori", "forbidden", "not allowed",
		"not permitted", "invalid", "expired", "revoked", "no module", "does not exist", "doesn't exist", "not exist", "undefined", "not supported",
		"unsupported", "incompatible", "mismatch", "in use", "already ", "exceeded", "too many", "too large", "too old", "out of memory", "no space",
		"not recognized", "not installed", "not loaded", "unknown", "unexpected", "unrecognized", "timed out", "timeout", "unreachable", "could not resolve",
		"name resolution", "enotfound", "eai_again", "econn", "eacces", "eperm", "enoent", "enospc", "emfile", "winerror ", "only one usage", "certificate", "handshake",
		"self-signed", "self signed", "usage:", "ok to proceed", "killed", "segmentation", "address already", "exec format", "permission",
		"authenticat", "authoriz", "log in", "login", "logged in", "quota", "rate limit", "does not provide", "no version", "cannot be", "could not be",
		"expected ", "conflict", "corrupt", "locked", "could not connect", "couldn't connect", "can't connect", "overflow", "nil pointer", "null reference", "is not",
		"no longer", "did you forget", "did you mean", "unsatisfiable", "no matching", "etarget", "ebadengine", "e404", "e401", "e403",
		"api key", "api_key", "apikey", "token", "credential", "password", "secret", "no solution", "cannot ", "can't ", "could not ", "unable to", "access"),
	group(cueCause, false, // in the languages of systems
		"nicht gefunden", "nicht finden", "verweiger", "abgelehnt", "fehlgeschlagen", "introuvable", "impossible", "échou", "no encontrad", "no se puede",
		"no se pudo", "denegad", "rechazad", "não encontrad", "não pode", "não foi possível", "recusad", "non trovat", "impossibile", "rifiutat",
		"не найден", "не уда", "отказано", "nie znaleziono", "nie można", "nie udało", "odmow", "odrzucon", "bulunamad", "redded", "engellend",
		"找不到", "未找到", "拒绝", "拒絕", "失败", "失敗", "无法", "無法", "見つかりません", "できません", "拒否", "찾을 수 없", "거부", "실패"),
	group(cueError, true, "fehler", "erreur", "błąd", "ошибка", "Ошибка", "ОШИБКА", "错误", "錯誤", "エラー", "오류"),
	group(cueFailure, false,
		"error", "exception", "fail", "fatal", "panic", "crash", "abort", "traceback"),
	group(cueError, true,
		"error", "fatal", "panic", "critical", "uncaught", "unhandled", "exception", "npm error", "failed", "failure", "terminate called",
		"thread '", "err:", "err!", "php fatal", "sigsegv", "segmentation fault", "gyp err", "what():", "abort"),
	group(cueError, false, "level=error", "level=fatal", `"level":"error`, `"level":"fatal`, `"level":50`, `"level":60`,
		"' panicked at", "error)", "exception)", "lvl=eror"),
	group(cueGeneric, false,
		"unhandled errors in a taskgroup", "failed to start", "could not start", "server failed", "exiting", "shutting down", "lifecycle script",
		"server error", "in main()", "fatal error in main", "process exited", "failed to run server", "error starting", "startup failed",
		"terminating", "initialization failed", "failed to initialize", "stopping", "connection closed", "command failed", "server crashed", "errno"),
	group(cueRoot, true, "[cause]:", "caused by:", "--->", "root cause:", "http response body:"),
	group(cueThrown, true,
		"panic:", "fatal error:", "uncaught ", "unhandled exception", "unhandled rejection", "exception in thread",
		"terminate called", "thread '", "[error:", "unhandledpromiserejection"),
	group(cueProp, true, "code: '", "errno:", "syscall:", "path: '", "requirestack:", "address: '", "port:", "hostname: '", "dest: '",
		"url: '", "type: '", "stdio:", "options:", "spawnargs:", "npm error errno", "npm error   ", "npm error }", "debug_error_string"),
)

// group gives one cue to several literals.
func group(c cue, first bool, literals ...string) []word {
	out := make([]word, len(literals))
	for i, lit := range literals {
		out[i] = word{literal: lit, cue: c, first: first}
	}
	return out
}

// vocabulary is what is looked for in one pass over a line: the words of the lexicon and
// the literals of a set of rules.
type vocabulary struct {
	finder *finder
	cues   []cues // by literal
}

// cues are what a literal says of the line it stands in, by where it stands.
type cues struct{ first, anywhere cue }

// noRules is the vocabulary of no rules at all.
var noRules = newVocabulary(nil)

// newVocabulary returns the vocabulary with the literals, which may be some of its words.
func newVocabulary(literals []string) *vocabulary {
	literals = slices.Clone(literals)
	for _, w := range lexicon {
		literals = append(literals, w.literal)
	}
	slices.Sort(literals)
	literals = slices.Compact(literals)
	v := &vocabulary{finder: newFinder(literals), cues: make([]cues, len(literals))}
	for _, w := range lexicon {
		i, _ := slices.BinarySearch(literals, w.literal)
		v.cues[i].first |= w.cue
		if !w.first {
			v.cues[i].anywhere |= w.cue
		}
	}
	return v
}

// cue returns what an occurrence says of a line whose content begins at an offset.
func (v *vocabulary) cue(o occurrence, content int) cue {
	switch c := v.cues[o.literal]; {
	case int(o.start) < content:
		return 0
	case int(o.start) == content:
		return c.first
	default:
		return c.anywhere
	}
}
