package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// OwnPrefix begins the service's own variables, which no server inherits.
const OwnPrefix = "MCPLEDGER_"

// reading is what one reference gave.
type reading struct {
	name  string // as the config key has it: "env:NAME", "file:PATH"
	value string
	set   bool
}

// expander fills in the references of one entry's values, and keeps what it read.
type expander struct {
	lookupEnv func(string) (string, bool)
	folder    string // ${workspaceFolder}
	base      string // where relative paths start
	inputs    map[string]question

	readings []reading
	unset    []string // names of what has no value, each once
	details  []string // a sentence on each of unset
	files    []string // read, or tried
	unknown  []string // labels of unsupported references
	secrets  *secrets
}

// expand returns written with its references filled in. One without a value gives
// nothing and is noted in unset; an unsupported one stays.
func (x *expander) expand(written string) string {
	var b strings.Builder
	for _, seg := range parseTemplate(written) {
		switch seg.kind {
		case literal:
			b.WriteString(seg.text)
		case unsupported:
			b.WriteString(seg.written)
			x.unknown = appendOnce(x.unknown, seg.label())
		default:
			b.WriteString(x.read(seg))
		}
	}
	return b.String()
}

// read returns the value of a reference, or its fallback if it has none or an empty
// one.
func (x *expander) read(seg segment) string {
	name, value, fault := x.resolve(seg)
	r := reading{name: name, value: value, set: fault == ""}
	switch {
	case value == "" && seg.optional:
		r.value, r.set = seg.fallback, true
		x.secrets.add(seg.text, seg.fallback)
	case fault != "" && !slices.Contains(x.unset, name):
		x.unset = append(x.unset, name)
		x.details = append(x.details, seg.label()+" "+fault)
	}
	x.readings = append(x.readings, r)
	return r.value
}

// resolve looks a reference up. fault says why it has no value, and what to do.
func (x *expander) resolve(seg segment) (name, value, fault string) {
	switch seg.kind {
	case folder:
		return "workspaceFolder", x.folder, ""
	case home:
		value, ok := x.lookupEnv("HOME")
		if !ok {
			return "HOME", "", "is not known: set HOME"
		}
		return "HOME", value, ""
	case input:
		return x.resolveInput(seg.text)
	case fileContent:
		path := x.path(seg.text)
		content, err := readValueFile(path)
		x.files = appendOnce(x.files, path)
		if err != nil {
			return "file:" + seg.text, "", "cannot be read: " + reason(err)
		}
		value = strings.TrimRight(string(content), "\r\n")
		x.secrets.sure(filepath.Base(path), value)
		return "file:" + seg.text, value, ""
	default:
		value, ok := x.lookupEnv(seg.text)
		switch {
		case strings.HasPrefix(seg.text, OwnPrefix):
			return seg.text, "", "is a variable of this service and is not passed on: use another name"
		case !ok:
			return seg.text, "", "is not set: set it in the service's environment, or give a default as ${" + seg.text + ":-value}"
		}
		x.secrets.add(seg.text, value)
		return seg.text, value, ""
	}
}

func (x *expander) resolveInput(id string) (name, value, fault string) {
	name = inputVariable(id)
	value, ok := x.lookupEnv(name)
	if !ok {
		if value, ok = x.inputs[id].fallback, x.inputs[id].optional; !ok {
			return name, "", "has no answer: set " + name + " in the service's environment"
		}
	}
	if x.inputs[id].secret {
		x.secrets.sure(id, value)
	} else {
		x.secrets.add(id, value)
	}
	return name, value, ""
}

// path makes a path absolute, from the folder of the config file.
func (x *expander) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(x.base, p)
}

func appendOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
