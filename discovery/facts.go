package discovery

import (
	"os"
	"path/filepath"

	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// localFacts looks at the files the start of a stdio server rests on: its program,
// and each argument that is an existing file. A package runner's own program says
// nothing of the package, so it counts only while it is missing.
func localFacts(srv *config.Server) []events.LocalFact {
	if srv.Transport != events.TransportStdio {
		return nil
	}
	facts := []events.LocalFact{}
	program := programFact(srv)
	if srv.Runner == "" || !program.Found {
		facts = append(facts, program)
	}
	for _, arg := range srv.Args {
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(srv.Cwd, path)
		}
		if fact, ok := fileFact(path); ok {
			facts = append(facts, fact)
		}
	}
	return facts
}

func programFact(srv *config.Server) events.LocalFact {
	path, err := upstream.LookPath(srv.Command, srv.Cwd, environ(srv))
	if err != nil {
		return events.LocalFact{Path: srv.Command}
	}
	fact, ok := fileFact(path)
	if !ok {
		return events.LocalFact{Path: srv.Command}
	}
	return fact
}

// fileFact returns the fact of a regular file, following links; false if there is
// none.
func fileFact(path string) (events.LocalFact, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return events.LocalFact{}, false
	}
	return events.LocalFact{Path: path, Found: true, Size: info.Size(), MTime: info.ModTime().UTC()}, true
}

// changedFact returns the first fact that differs between the two looks, with what
// it was before; false when none does.
func changedFact(before, after []events.LocalFact) (was, is events.LocalFact, changed bool) {
	for i := range max(len(before), len(after)) {
		var a, b events.LocalFact
		if i < len(before) {
			a = before[i]
		}
		if i < len(after) {
			b = after[i]
		}
		if a.Path != b.Path || a.Found != b.Found || a.Size != b.Size || !a.MTime.Equal(b.MTime) {
			return a, b, true
		}
	}
	return events.LocalFact{}, events.LocalFact{}, false
}
