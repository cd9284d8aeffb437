package rules

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Bounds on a rule set.
const (
	MaxSetBytes = 256 << 10
	MaxRules    = 500 // rules and gates together
)

// Parse reads a rule set. name stands for the text in errors: a file's path, or the
// set's name. Whatever is wrong comes back as ParseErrors, in the order of the text.
func Parse(name string, text []byte) (*Set, error) {
	p := &parser{name: name}
	root := p.document(text)
	var s *Set
	if root != nil {
		s = p.set(root)
	}
	if len(p.errs) > 0 {
		slices.SortStableFunc(p.errs, func(a, b *ParseError) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, p.errs
	}
	s.text, s.hash = string(text), hashOf(text)
	s.filter, s.cache = newFilter(s), newCache(s)
	return s, nil
}

// parser walks the YAML and collects what is wrong with it.
type parser struct {
	name    string
	errs    ParseErrors
	rule    string // id of the rule being read
	misfits map[*yaml.Node]bool
}

// fail reports what is wrong with a node, unless it is a misfit.
func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	if p.misfits[n] {
		return
	}
	p.errs = append(p.errs, &ParseError{
		Name: p.name, Line: n.Line, Column: n.Column, Rule: p.rule, Detail: fmt.Sprintf(format, args...),
	})
}

// misfit reports a node that is of another kind than is expected. What else may be wrong
// with it follows from that.
func (p *parser) misfit(n *yaml.Node, want string) {
	p.fail(n, "%s is expected", want)
	if p.misfits == nil {
		p.misfits = map[*yaml.Node]bool{}
	}
	p.misfits[n] = true
}

// document returns the mapping at the top of the one document in text.
func (p *parser) document(text []byte) *yaml.Node {
	if len(text) > MaxSetBytes {
		p.errs = append(p.errs, &ParseError{Name: p.name, Detail: fmt.Sprintf(
			"%d bytes, at most %d are allowed", len(text), MaxSetBytes)})
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if err == nil {
		if err = dec.Decode(&more); err == nil {
			p.fail(&more, "a second document; a rule set is one")
			return nil
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		p.errs = append(p.errs, yamlFault(p.name, text, err))
		return nil
	}
	if p.refuseAliases(&doc); len(p.errs) > 0 {
		return nil
	}
	return doc.Content[0]
}

func (p *parser) refuseAliases(n *yaml.Node) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		p.fail(n, "anchors and aliases are not allowed")
		return
	}
	for _, child := range n.Content {
		p.refuseAliases(child)
	}
}

// fields calls the function of each key of a mapping with its value. It reports
// unknown and repeated keys, and keys of required that are missing.
func (p *parser) fields(n *yaml.Node, required []string, known map[string]func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.misfit(n, "a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := known[key.Value]
		switch {
		case !ok:
			p.fail(key, "unknown key %q, one of %s is expected", key.Value,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case seen[key.Value]:
			p.fail(key, "key %q a second time", key.Value)
		default:
			read(value)
		}
		seen[key.Value] = true
	}
	for _, key := range required {
		if !seen[key] {
			p.fail(n, "key %q is missing", key)
		}
	}
}

// valueOf returns the value of a key of a mapping, nil if n is none or has no such key.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// list calls item for each element; one scalar or mapping stands for a list of one.
func (p *parser) list(n *yaml.Node, item func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		item(n)
		return
	}
	if len(n.Content) == 0 {
		p.fail(n, "an empty list")
	}
	for _, child := range n.Content {
		item(child)
	}
}

func (p *parser) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.misfit(n, "a text")
		return ""
	}
	return n.Value
}

func (p *parser) boolean(n *yaml.Node) bool {
	switch n.Value {
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	p.fail(n, "true or false is expected")
	return false
}

func (p *parser) count(n *yaml.Node) int {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < 0 || v > 1_000_000 {
		p.fail(n, "a whole number from 0 to 1000000 is expected")
		return 0
	}
	return v
}

// duration reads a duration of at least so long.
func (p *parser) duration(n *yaml.Node, least time.Duration) time.Duration {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < least || d > 10*365*24*time.Hour {
		p.fail(n, "a duration such as 15m or 24h is expected")
		return 0
	}
	return d
}

// oneOf reads one of the words of a closed list.
func oneOf[T ~string](p *parser, n *yaml.Node, what string, known []T) T {
	word := T(p.text(n))
	if n.Kind == yaml.ScalarNode && !slices.Contains(known, word) {
		names := make([]string, len(known))
		for i, k := range known {
			names[i] = string(k)
		}
		p.fail(n, "unknown %s %q, one of %s is expected", what, string(word), strings.Join(names, ", "))
	}
	return word
}
