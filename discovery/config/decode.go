package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

func (e *entry) fault(at int, detail string) {
	p := e.doc.problemAt(at, detail)
	p.Server = e.name
	e.faults = append(e.faults, p)
}

func (e *entry) warn(at int, detail string) {
	p := e.doc.problemAt(at, detail)
	p.Server = e.name
	e.warnings = append(e.warnings, p)
}

// object returns the members of a value that must be an object. Of a name that
// stands there twice the last one holds, with a warning.
func (e *entry) object(v hujson.Value, what string) []member {
	ms, repeated := members(v)
	if ms == nil {
		e.fault(v.StartOffset, fmt.Sprintf("%s must be an object, not %s", what, kindName(v)))
	}
	for _, r := range repeated {
		e.warn(r.at, fmt.Sprintf("%s is there twice: the last one holds", quoted(r.name)))
	}
	return ms
}

func (e *entry) text(m member) string {
	if m.value.Value.Kind() != '"' {
		e.fault(m.value.StartOffset, fmt.Sprintf("%q must be a string, not %s", m.name, kindName(m.value)))
		return ""
	}
	s := text(m.value)
	if strings.ContainsRune(s, 0) {
		e.fault(m.value.StartOffset, fmt.Sprintf("%q holds a zero byte: remove it", m.name))
	}
	return s
}

func (e *entry) truth(m member) bool {
	switch m.value.Value.Kind() {
	case 't':
		return true
	case 'f':
	default:
		e.fault(m.value.StartOffset, fmt.Sprintf("%q must be true or false, not %s", m.name, kindName(m.value)))
	}
	return false
}

// texts reads a list of strings.
func (e *entry) texts(m member) []string {
	list, ok := m.value.Value.(*hujson.Array)
	if !ok {
		e.fault(m.value.StartOffset, fmt.Sprintf(`%q must be a list of strings such as ["a", "b"], not %s`, m.name, kindName(m.value)))
		return nil
	}
	var all []string
	for i, v := range list.Elements {
		all = append(all, e.text(member{name: fmt.Sprintf("%s[%d]", m.name, i), value: v}))
	}
	return all
}

// pairs reads an object of strings. Numbers and truth values count as their
// spelling, as other clients take them; a null as absent.
func (e *entry) pairs(m member) map[string]string {
	all := map[string]string{}
	for _, v := range e.object(m.value, fmt.Sprintf("%q", m.name)) {
		name := m.name + "." + v.name
		switch v.value.Value.Kind() {
		case 'n':
		case '0', 't', 'f':
			all[v.name] = text(v.value)
		default:
			all[v.name] = e.text(member{name: name, value: v.value})
		}
		if v.name == "" || strings.ContainsAny(v.name, "=\x00\r\n") {
			e.fault(v.at, fmt.Sprintf("%s cannot be a name in %q", quoted(v.name), m.name))
		}
	}
	return all
}

var headerName = regexp.MustCompile("^[0-9A-Za-z!#$%&'*+.^_`|~-]+$")

// lowered gives headers their names in lower case. Two that differ in case alone are
// one header; which of them holds would be chance.
func (e *entry) lowered(m member, headers map[string]string) map[string]string {
	lowered := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		lower := strings.ToLower(name)
		if _, twice := lowered[lower]; twice {
			e.fault(m.at, fmt.Sprintf("%q has the header %s twice: keep one", m.name, quoted(lower)))
		}
		if !headerName.MatchString(name) {
			e.fault(m.at, fmt.Sprintf("%s cannot be the name of a header", quoted(name)))
		}
		lowered[lower] = headers[name]
	}
	return lowered
}

// kindName names the kind of a JSON value, with its article.
func kindName(v hujson.Value) string {
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "true or false"
	}
}

// plain returns a value as encoding/json would decode it, numbers as json.Number.
func plain(v hujson.Value) any {
	switch t := v.Value.(type) {
	case *hujson.Object:
		all := make(map[string]any, len(t.Members))
		ms, _ := members(v)
		for _, m := range ms {
			all[m.name] = plain(m.value)
		}
		return all
	case *hujson.Array:
		all := make([]any, 0, len(t.Elements))
		for _, e := range t.Elements {
			all = append(all, plain(e))
		}
		return all
	}
	switch v.Value.Kind() {
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	case '0':
		return json.Number(text(v))
	}
	return text(v)
}
