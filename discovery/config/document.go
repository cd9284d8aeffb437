package config

import (
	"bytes"
	"fmt"

	"github.com/tailscale/hujson"

	"mcpledger/events"
)

// maxDepth bounds how deep objects and lists nest. The parser recurses, and would
// exhaust the stack on a file of nothing but brackets.
const maxDepth = 100

// document is one config file, parsed.
type document struct {
	path    string // absolute
	src     []byte
	entries []member
	inputs  map[string]question // by id
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
