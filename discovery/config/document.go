package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"mcpledger/events"
)

// maxDepth bounds how deep objects and lists nest. The parser recurses, and would
// exhaust the stack on a file of nothing but brackets.
const maxDepth = 100

// document is one config file, parsed.
type document struct {
	path     string // absolute
	src      []byte
	entries  []member
	inputs   map[string]question // by id
	warnings []events.ConfigProblem
}

// member is one name and value of an object.
type member struct {
	name  string
	at    int // offset of the name
	value hujson.Value
}

// readDocument reads the file at path and finds its servers. What is wrong with the
// file as a whole comes back as problems.
func readDocument(path string) (*document, []events.ConfigProblem) {
	d := &document{path: path, inputs: map[string]question{}}
	src, err := readFile(path, MaxConfigBytes)
	if err != nil {
		return nil, []events.ConfigProblem{{File: path, Detail: "cannot be read: " + reason(err)}}
	}
	return d, d.parse(src)
}

func (d *document) parse(src []byte) []events.ConfigProblem {
	// A last line that is a comment may lack its line break.
	d.src = append(src[:len(src):len(src)], '\n')
	if len(bytes.TrimSpace(src)) == 0 {
		return []events.ConfigProblem{d.problemAt(0, "the file is empty")}
	}
	if at := invalidUTF8(src); at >= 0 {
		return []events.ConfigProblem{d.problemAt(at, "the file is not UTF-8: save it in that encoding")}
	}
	if at := tooDeep(src); at >= 0 {
		return []events.ConfigProblem{d.problemAt(at, fmt.Sprintf("nested more than %d deep", maxDepth))}
	}
	root, err := hujson.Parse(d.src)
	if err != nil {
		return []events.ConfigProblem{d.syntaxProblem(err)}
	}
	return d.findServers(root)
}

// findServers takes the entries from where the known clients keep them.
func (d *document) findServers(root hujson.Value) []events.ConfigProblem {
	top, problems := d.members(root)
	if top == nil && problems == nil {
		return []events.ConfigProblem{d.problemAt(root.StartOffset, `the file holds no object: write {"mcpServers": {...}}`)}
	}
	found := false
	for _, m := range top {
		switch m.name {
		case "mcpServers", "servers":
			found = true
			problems = append(problems, d.addServers(m)...)
		case "inputs":
			d.readInputs(m.value)
		}
	}
	if found || len(problems) > 0 {
		return problems
	}
	switch {
	case isBareMap(top):
		d.entries = withoutSchema(top)
	case isEntry(root):
		return []events.ConfigProblem{d.problemAt(root.StartOffset, `this is a single server's entry: put it under a name in {"mcpServers": {...}}`)}
	default:
		return []events.ConfigProblem{d.problemAt(root.StartOffset, `neither "mcpServers" nor "servers" is in the file`)}
	}
	return nil
}

// addServers takes the members of m as entries. The same name twice is a fault of
// the file: one of the two would be lost in silence.
func (d *document) addServers(m member) []events.ConfigProblem {
	servers, problems := d.members(m.value)
	if servers == nil && problems == nil {
		return []events.ConfigProblem{d.problemAt(m.value.StartOffset, fmt.Sprintf("%q must be an object of servers by name", m.name))}
	}
	for _, s := range servers {
		for _, other := range d.entries {
			if other.name == s.name {
				problems = append(problems, d.duplicate(s, other))
			}
		}
	}
	d.entries = append(d.entries, servers...)
	return problems
}

// members returns the members of an object, nil for another value, and a problem for
// each name that stands there twice.
func (d *document) members(v hujson.Value) ([]member, []events.ConfigProblem) {
	ms, repeated := members(v)
	var problems []events.ConfigProblem
	for _, r := range repeated {
		problems = append(problems, d.duplicate(r, ms[indexOf(ms, r.name)]))
	}
	return ms, problems
}

func (d *document) duplicate(m, first member) events.ConfigProblem {
	line, _ := position(d.src, first.at)
	return d.problemAt(m.at, fmt.Sprintf("%s is there twice, first in line %d: rename or remove one", quoted(m.name), line))
}

// members returns the members of an object in order, with an empty list for an empty
// object and nil for another value. Of a name that stands there more than once the
// first is in ms, at its place but with the last value, and the others in repeated.
func members(v hujson.Value) (ms, repeated []member) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, nil
	}
	ms = make([]member, 0, len(obj.Members))
	index := make(map[string]int, len(obj.Members))
	for _, om := range obj.Members {
		m := member{name: text(om.Name), at: om.Name.StartOffset, value: om.Value}
		if i, seen := index[m.name]; seen {
			repeated = append(repeated, m)
			ms[i].value = m.value
			continue
		}
		index[m.name] = len(ms)
		ms = append(ms, m)
	}
	return ms, repeated
}

func indexOf(ms []member, name string) int {
	for i, m := range ms {
		if m.name == name {
			return i
		}
	}
	return -1
}

// question is one of VS Code's inputs, which its users are asked for.
type question struct {
	fallback string
	optional bool // there is a fallback
	secret   bool
}

// readInputs takes what counts of the inputs here; the rest of them is for people.
func (d *document) readInputs(v hujson.Value) {
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		return
	}
	for _, item := range list.Elements {
		var id string
		var q question
		ms, _ := members(item)
		for _, m := range ms {
			kind := m.value.Value.Kind()
			switch {
			case m.name == "id" && kind == '"':
				id = text(m.value)
			case m.name == "default" && kind == '"':
				q.fallback, q.optional = text(m.value), true
			case m.name == "password" && kind == 't':
				q.secret = true
			}
		}
		d.inputs[id] = q
	}
}

// isBareMap reports a file that is nothing but a map of servers: all members are
// objects, and one at least says what to start or dial. An empty one is a map of no
// servers.
func isBareMap(top []member) bool {
	servers := withoutSchema(top)
	known := len(servers) == 0
	for _, m := range servers {
		if m.value.Value.Kind() != '{' {
			return false
		}
		known = known || isEntry(m.value)
	}
	return known
}

func withoutSchema(top []member) []member {
	var servers []member
	for _, m := range top {
		if m.name != "$schema" {
			servers = append(servers, m)
		}
	}
	return servers
}

// isEntry reports an object that says what to start or dial.
func isEntry(v hujson.Value) bool {
	ms, _ := members(v)
	for _, m := range ms {
		if f := fieldOf(m.name); (f == fieldCommand || f == fieldURL) && m.value.Value.Kind() == '"' {
			return true
		}
	}
	return false
}

func (d *document) problemAt(offset int, detail string) events.ConfigProblem {
	line, column := position(d.src, offset)
	return events.ConfigProblem{File: d.path, Line: line, Column: column, Detail: detail}
}

// syntaxProblem puts the parser's error into our words. The parser quotes what it
// could not read, which may be a secret.
func (d *document) syntaxProblem(err error) events.ConfigProblem {
	p := events.ConfigProblem{File: d.path}
	// The parser gives the place in its text alone.
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &p.Line, &p.Column); scanErr != nil {
		p.Line, p.Column = 0, 0
	}
	cause := err
	if inner := errors.Unwrap(err); inner != nil {
		cause = inner
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		p.Detail = "the file ends before its last bracket, string or comment is closed"
	case strings.HasPrefix(cause.Error(), "invalid literal"):
		p.Detail = `neither a valid string, number, true, false nor null: text needs quotes, and a backslash in it is written \\`
	default:
		p.Detail = cause.Error()
	}
	return p
}

// position returns line and column, both from 1, of the byte at offset.
func position(src []byte, offset int) (line, column int) {
	before := src[:min(offset, len(src))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// text returns the text of a string, or the spelling of another literal.
func text(v hujson.Value) string {
	lit, _ := v.Value.(hujson.Literal)
	return lit.String()
}

func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 || r == 0 {
			return i
		}
		i += size
	}
	return -1
}

// tooDeep returns where brackets nest deeper than maxDepth, -1 if they do not.
func tooDeep(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(b) && b[i] != '"' && b[i] != '\n'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '/':
			i += commentLen(b[i:])
		}
	}
	return -1
}

// commentLen returns the length, without its last byte, of the comment at the start
// of b; 0 if there is none.
func commentLen(b []byte) int {
	end := -1
	switch {
	case bytes.HasPrefix(b, []byte("//")):
		end = bytes.IndexByte(b, '\n')
	case bytes.HasPrefix(b, []byte("/*")):
		if end = bytes.Index(b[2:], []byte("*/")); end >= 0 {
			end += 3
		}
	default:
		return 0
	}
	if end < 0 {
		return len(b) - 1
	}
	return end
}

// quoted shows a name of the file, bounded and clean.
func quoted(name string) string {
	return `"` + Cut(Sanitize(name), 80) + `"`
}

// absolute makes path absolute; one that cannot be made so stays.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
