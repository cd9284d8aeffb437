package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mcpledger/events"
)

// The values of Server.Era. Legacy begins with initialize, up to revision 2025-11-25;
// modern with server/discover, from 2026-07-28.
const (
	EraLegacy = "legacy"
	EraModern = "modern"
)

// InheritAll in Server.InheritEnv stands for all of the service's variables.
const InheritAll = "*"

// Server is one entry of the config, ready to use: aliases resolved, references
// expanded. With a Problem it must not be started or dialled.
type Server struct {
	Name events.ServerName
	// Key identifies the connection; with other config it is another one.
	Key       events.ConfigKey
	Transport events.Transport // empty if the entry is malformed

	Command string
	Args    []string
	Env     map[string]string // of env and envFile; env wins
	Cwd     string            // absolute; empty: the service's own

	URL     string
	Headers map[string]string // by name in lower case

	// InheritEnv names the variables a process gets from the service's environment
	// beyond the few that every process gets; InheritAll stands for all, except our
	// own. Sorted.
	InheritEnv []string
	Timeouts   Timeouts
	// Era is the protocol era to begin with: EraLegacy, EraModern, or empty to find
	// out and remember.
	Era string

	// Runner is the package runner that Command is, such as "npx" or "docker run",
	// and Package what it runs; both empty for another program.
	Runner  string
	Package string

	Description string
	Disabled    bool
	Settings    events.Settings
	// Written is the entry as its file has it, aliases and all, with secrets masked.
	Written    json.RawMessage
	SourceFile string
	// Problem is why the server cannot be attempted, nil if it can.
	Problem *events.EntryProblem
	// Redactor knows the secrets of this entry. Never nil.
	Redactor *Redactor
}

// build expands an entry. The paths of files it read, or would have, are in watched.
func build(e *entry, opts Options) (s *Server, warnings []events.ConfigProblem, watched []string) {
	var known secrets
	base := filepath.Dir(e.doc.path)
	x := &expander{
		lookupEnv: opts.LookupEnv, folder: workspaceFolder(base), base: base,
		inputs: e.doc.inputs, secrets: &known,
	}
	s = &Server{
		Name: e.name, Transport: e.transport, InheritEnv: e.inheritEnv, Timeouts: e.timeouts, Era: e.era,
		Description: e.description, Disabled: e.disabled, Settings: e.settings, SourceFile: e.doc.path,
	}
	fromFile := x.readEnvFile(e.envFile)
	s.Command = x.expand(e.command)
	for _, arg := range e.args {
		s.Args = append(s.Args, x.expand(arg))
	}
	s.Env = x.expandAll(e.env)
	for name, value := range fromFile {
		if _, own := s.Env[name]; !own {
			s.Env[name] = value
		}
	}
	s.Cwd = x.path(x.expand(e.cwd))
	s.URL = x.expand(e.url)
	s.Headers = x.expandAll(e.headers)
	s.Runner, s.Package = packageRunner(s.Command, s.Args)
	s.Key = configKey(opts.Key, e, x.readings)

	known.addServer(s)
	if s.Transport == events.TransportStdio {
		known.addInherited(s.InheritEnv, opts.Environ())
	}
	known.addLeaves("oauth", "oauth", e.oauth)
	s.Redactor = NewRedactor(known.all...)
	s.Description = s.Redactor.String(s.Description)
	s.Written = s.Redactor.JSON(written(e))
	s.Problem = e.problem(x, s)
	for _, label := range x.unknown {
		e.warn(e.value.StartOffset, label+" is no reference known here and stays as written")
	}
	return s, e.warnings, x.files
}

// problem says why the entry cannot be attempted; nil if it can. Being malformed goes
// before missing a value.
func (e *entry) problem(x *expander, s *Server) *events.EntryProblem {
	if len(e.faults) == 0 && len(x.unset) == 0 {
		e.checkExpanded(s)
	}
	switch {
	case len(e.faults) > 0:
		return &events.EntryProblem{Code: events.ProblemMalformed, Detail: s.Redactor.Text(e.faults[0].Detail, events.MaxErrorBytes)}
	case len(x.unset) > 0:
		return &events.EntryProblem{
			Code:   events.ProblemVariableUnset,
			Detail: s.Redactor.Text(strings.Join(x.details, "; "), events.MaxErrorBytes),
			Names:  x.unset,
		}
	}
	return nil
}

// checkExpanded looks at what only the expanded values show.
func (e *entry) checkExpanded(s *Server) {
	at := e.value.StartOffset
	switch {
	case s.Transport == events.TransportStdio && strings.TrimSpace(s.Command) == "":
		e.fault(at, `"command" is empty once its variables are filled in: set them, or write the program's name`)
	case s.Transport != events.TransportStdio:
		if detail := checkURL(s.URL); detail != "" {
			e.fault(at, detail)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if strings.ContainsFunc(s.Headers[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			e.fault(at, fmt.Sprintf("the header %s holds a line break or another control character: remove it", quoted(name)))
		}
	}
}

// expandAll expands the values of m, in order of their names.
func (x *expander) expandAll(m map[string]string) map[string]string {
	all := make(map[string]string, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all[name] = x.expand(m[name])
	}
	return all
}

// readEnvFile reads the variables of an envFile. What is wrong with the file counts
// as a missing value.
func (x *expander) readEnvFile(written string) map[string]string {
	if written == "" {
		return nil
	}
	path := x.path(x.expand(written))
	x.files = appendOnce(x.files, path)
	content, err := readValueFile(path)
	var vars map[string]string
	if err == nil {
		vars, err = parseDotenv(string(content))
	}
	if err != nil {
		x.unset = append(x.unset, "envFile")
		x.details = append(x.details, fmt.Sprintf("the envFile %s cannot be read: %s", path, reason(err)))
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		x.readings = append(x.readings, reading{name: "envFile:" + name, value: vars[name], set: true})
	}
	return vars
}

// workspaceFolder returns the folder an editor would have open for a config file in
// dir: dir itself, or the one above where dir is an editor's own.
func workspaceFolder(dir string) string {
	switch filepath.Base(dir) {
	case ".vscode", ".cursor":
		return filepath.Dir(dir)
	}
	return dir
}

// addServer notes the secrets of a server's expanded values.
func (s *secrets) addServer(srv *Server) {
	for _, name := range slices.Sorted(maps.Keys(srv.Env)) {
		s.add(name, srv.Env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(srv.Headers)) {
		s.add(name, srv.Headers[name])
	}
	s.addURL("url", srv.URL)
	for _, a := range classifyArgs(srv.Args) {
		if a.name != "" {
			s.add(a.name, a.value)
		} else {
			s.addURL("url", a.value)
		}
	}
}

// addInherited notes the secrets among the variables that a process inherits: of those
// inherited by name as if they stood in the entry; of all others by their names, and
// what addresses hold, as those of proxies do, which every process gets.
func (s *secrets) addInherited(names, environ []string) {
	all := slices.Contains(names, InheritAll)
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case strings.HasPrefix(name, OwnPrefix):
		case slices.Contains(names, name), all && isSensitive(name):
			s.add(name, value)
		case all, strings.HasSuffix(strings.ToLower(name), "_proxy"):
			s.addURL(name, value)
		}
	}
}
