package upstream

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpledger/events"
)

// npmLogMark begins a stderr_tail that did not come from stderr.
const npmLogMark = "[from npm's debug log]\n"

// Bounds on looking for that log.
const (
	npmLogFiles = 16
	npmLogBytes = 256 << 10
)

// npmReason finds the lines of a debug log that tell what went wrong: errors, and
// scripts of a package that did not end with 0.
var npmReason = regexp.MustCompile(`(?m)^\d+ (?:error (.+)|info (run \S+ \S+ \{ code: (?:[1-9]|null).*\}))$`)

// npmLog returns why npm gave up, marked and masked, if the command is npm's and the
// reason is in a debug log that this very command wrote since started; else "". When
// a package's install script fails, npx says nothing, and the log is all there is.
func (t Target) npmLog(started time.Time) string {
	program := filepath.Base(t.Command)
	i := slices.IndexFunc(t.Args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if program != "npx" && program != "npm" || i < 0 {
		return ""
	}
	folder := t.npmLogFolder()
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ""
	}
	// Names begin with the time, so the newest come last.
	for _, entry := range slices.Backward(entries[max(0, len(entries)-npmLogFiles):]) {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(started) {
			continue
		}
		text := readStart(filepath.Join(folder, entry.Name()), npmLogBytes)
		if reason := npmReasons(text, t.Args[i]); reason != "" {
			return t.Redactor.Text(npmLogMark+reason, events.MaxStderrTailBytes)
		}
	}
	return ""
}

// npmReasons returns the telling lines of a debug log, "" if it is not that of a
// command with this argument.
func npmReasons(log, arg string) string {
	_, rest, found := strings.Cut(log, " verbose argv ")
	argv, _, _ := strings.Cut(rest, "\n")
	if !found || !strings.Contains(argv, strconv.Quote(arg)) {
		return ""
	}
	var lines []string
	for _, match := range npmReason.FindAllStringSubmatch(log, -1) {
		lines = append(lines, "npm error "+match[1]+match[2])
	}
	return strings.Join(lines, "\n")
}

func (t Target) npmLogFolder() string {
	if folder := lookupEnv(t.Env, "npm_config_logs_dir"); folder != "" {
		return folder
	}
	cache := lookupEnv(t.Env, "npm_config_cache")
	if cache == "" {
		cache = filepath.Join(lookupEnv(t.Env, "HOME"), ".npm")
	}
	return filepath.Join(cache, "_logs")
}

func readStart(path string, limit int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	text, _ := io.ReadAll(io.LimitReader(file, limit))
	return string(text)
}
