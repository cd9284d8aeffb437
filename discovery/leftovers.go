package discovery

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

// envMark is the environment variable that carries Options.Mark into servers'
// processes, and from there into what they start.
const envMark = config.OwnPrefix + "INSTANCE"

// marked returns the environment of a server's process with the mark, if there is one.
func (s *Service) marked(environ []string) []string {
	if s.mark == "" {
		return environ
	}
	return append(environ, envMark+"="+s.mark)
}

// endLeftovers ends the processes that bear our mark, if the last start did not end in
// good order. A server dies with us, but not always what it has started in turn. It is
// called before anything is started, so none of them is in use.
func (s *Service) endLeftovers(ctx context.Context) {
	if s.mark == "" || !s.crashed(ctx) {
		return
	}
	left := leftovers(s.mark)
	for _, pid := range left {
		// It may have ended meanwhile.
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if len(left) > 0 {
		s.logger.WarnContext(ctx, "ended what a crash left running", slog.Int("processes", len(left)))
	}
}

// crashed reports whether the log's last start has no stop. It is asked before the
// present start is recorded.
func (s *Service) crashed(ctx context.Context) bool {
	q := events.Query{
		Source: s.source, Types: []events.Type{events.TypeServiceStarted, events.TypeServiceStopped}, Desc: true, Limit: 1,
	}
	for e, err := range s.log.Read(ctx, q) {
		return err == nil && e.Type == events.TypeServiceStarted
	}
	return false
}

// leftovers returns the processes with the mark in their environment. Where there is
// no /proc, or the processes are somebody else's, it finds none.
func leftovers(mark string) []int {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	var pids []int
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !hasVariable(environ, envMark+"="+mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// hasVariable reports whether a process's environment has the pair.
func hasVariable(environ []byte, pair string) bool {
	for one := range bytes.SplitSeq(environ, []byte{0}) {
		if string(one) == pair {
			return true
		}
	}
	return false
}
