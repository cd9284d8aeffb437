package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"mcpledger/events"
)

// ReservedName is what no server may be called: it stands in a server's place before the
// names of the service's own tools on its MCP endpoint.
const ReservedName = "ledger"

// Options say what to load.
type Options struct {
	// Files are the config files; of servers with the same name the later file's
	// entry holds, as a whole.
	Files []string
	// Key is the secret under which config keys are made. It must not be empty: with
	// another key every server is another connection.
	Key []byte
	// LookupEnv answers ${VAR}; nil: os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// Environ is what processes inherit from, as NAME=value; nil: os.Environ.
	Environ func() []string
}

// Config is what the files say. It is not changed after Load.
type Config struct {
	Files   []string // absolute, as given
	Servers []*Server
	// Warnings are about what has no effect. Faults are the problems of servers that
	// have one, with their place, and entries without a usable name, which are left
	// out. Both are sorted by place.
	Warnings []events.ConfigProblem
	Faults   []events.ConfigProblem
	// Watched are the files that the config rests on: Files, and what entries name as
	// envFile or ${file:}. Sorted.
	Watched []string
}

// ProblemError reports files that cannot be used. The last good config stays in
// force; nothing of a load that gave this error may be applied.
type ProblemError struct {
	Problems []events.ConfigProblem // at least one
}

// Error gives the first problem, with its place, and the number of the others.
func (e *ProblemError) Error() string {
	p := e.Problems[0]
	place := p.File
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
	if more := len(e.Problems) - 1; more > 0 {
		return fmt.Sprintf("%s: %s (and %d more)", place, p.Detail, more)
	}
	return place + ": " + p.Detail
}

// Load reads and merges the files. A file that is missing, empty, unreadable,
// writable by everybody, larger than MaxConfigBytes, no valid JSON with comments, or
// names a server twice gives a *ProblemError. A fault of a single entry gives that
// server a Problem and leaves the others alone.
func Load(opts Options) (*Config, error) {
	if len(opts.Key) == 0 {
		return nil, errors.New("load config: no secret for config keys")
	}
	if opts.LookupEnv == nil {
		opts.LookupEnv = os.LookupEnv
	}
	if opts.Environ == nil {
		opts.Environ = os.Environ
	}
	c := &Config{}
	var problems []events.ConfigProblem
	last := map[events.ServerName]*entry{}
	for _, file := range opts.Files {
		path := absolute(file)
		c.Files = append(c.Files, path)
		doc, bad := readDocument(path)
		problems = append(problems, bad...)
		if doc == nil || len(bad) > 0 {
			continue
		}
		for _, m := range doc.entries {
			if detail := badName(m.name); detail != "" {
				c.Faults = append(c.Faults, doc.problemAt(m.at, detail))
				continue
			}
			last[events.ServerName(m.name)] = parseEntry(doc, m)
		}
	}
	if len(problems) > 0 {
		return nil, &ProblemError{Problems: problems}
	}
	c.Watched = slices.Clone(c.Files)
	for _, e := range last {
		c.add(e, opts)
	}
	c.sort()
	return c, nil
}

// Server returns the server called name, nil if there is none.
func (c *Config) Server(name events.ServerName) *Server {
	i, ok := slices.BinarySearchFunc(c.Servers, name, func(s *Server, n events.ServerName) int {
		return strings.Compare(string(s.Name), string(n))
	})
	if !ok {
		return nil
	}
	return c.Servers[i]
}

// Redactor returns one that knows the secrets of all servers.
func (c *Config) Redactor() *Redactor {
	all := make([]*Redactor, len(c.Servers))
	for i, s := range c.Servers {
		all[i] = s.Redactor
	}
	return Merge(all...)
}

func (c *Config) add(e *entry, opts Options) {
	if e.name == ReservedName {
		e.fault(e.value.StartOffset, `"ledger" is the name of the service's own tools: give the server another name`)
	}
	s, warnings, watched := build(e, opts)
	c.Servers = append(c.Servers, s)
	c.Warnings = append(c.Warnings, warnings...)
	c.Watched = append(c.Watched, watched...)
	if s.Problem == nil {
		return
	}
	if len(e.faults) == 0 {
		e.fault(e.value.StartOffset, s.Problem.Detail)
	}
	s.Problem.Line, s.Problem.Column = e.faults[0].Line, e.faults[0].Column
	for _, f := range e.faults {
		f.Detail = s.Redactor.Text(f.Detail, events.MaxErrorBytes)
		c.Faults = append(c.Faults, f)
	}
}

func (c *Config) sort() {
	slices.SortFunc(c.Servers, func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) })
	byPlace := func(a, b events.ConfigProblem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Detail, b.Detail),
		)
	}
	slices.SortFunc(c.Warnings, byPlace)
	slices.SortFunc(c.Faults, byPlace)
	slices.Sort(c.Watched)
	c.Watched = slices.Compact(c.Watched)
}

// badName says why no server can be called name, which then can be the subject of no
// event; empty if one can.
func badName(name string) string {
	switch {
	case name == "":
		return "a server has no name: give it one"
	case len(name) > events.MaxIDBytes:
		return fmt.Sprintf("the name %s is longer than %d bytes: shorten it", quoted(name), events.MaxIDBytes)
	case Sanitize(name) != name || strings.ContainsAny(name, "\n\t"):
		return fmt.Sprintf("the name %s holds a control or invisible character: remove it", quoted(name))
	}
	return ""
}
