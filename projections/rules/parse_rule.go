package rules

import (
	"go.yaml.in/yaml/v4"
)

// abandonedID is the id of the verdict on attempts found unfinished.
const abandonedID = "abandoned"

// maxHintBytes bounds a hint as written, in bytes.
const maxHintBytes = 400

func (p *parser) rules(n *yaml.Node, d *defaults) []rule {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.fail(n, "a list of rules is expected")
		return nil
	}
	out := make([]rule, 0, len(n.Content))
	seen := map[string]bool{}
	for _, item := range n.Content {
		r := p.oneRule(item, d)
		p.unique(item, seen, r.id)
		out = append(out, r)
		p.rule = ""
	}
	if last := &out[len(out)-1]; !last.match.empty() || last.unless != nil {
		p.rule = last.id
		p.fail(n.Content[len(n.Content)-1], "the last rule must match everything: leave out match and unless")
		p.rule = ""
	}
	return out
}

// unique reports an id of a rule that an earlier rule has, or that stands for attempts
// found unfinished.
func (p *parser) unique(n *yaml.Node, seen map[string]bool, id string) {
	switch {
	case id == abandonedID:
		p.fail(valueOf(n, "id"), "%q stands for the verdict under the key of that name", id)
	case id != "" && seen[id]:
		p.fail(valueOf(n, "id"), "the id is taken by another rule")
	}
	seen[id] = true
}

// open makes n's id, if it has one, the rule that errors name.
func (p *parser) open(n *yaml.Node) {
	if id := valueOf(n, "id"); id != nil {
		p.rule = id.Value
	}
}

func (p *parser) oneRule(n *yaml.Node, d *defaults) rule {
	p.open(n)
	r := rule{line: n.Line}
	keys := p.verdictKeys(&r)
	keys["id"] = func(n *yaml.Node) { r.id = p.identifier(n) }
	keys["match"] = func(n *yaml.Node) { r.match = p.match(n) }
	keys["unless"] = func(n *yaml.Node) { m := p.match(n); r.unless = &m }
	keys["weak"] = func(n *yaml.Node) { r.weak = p.boolean(n) }
	p.fields(n, []string{"id", "class", "disposition"}, keys)
	p.settle(n, &r, d)
	return r
}

// abandonedRule reads a rule that nothing is matched against.
func (p *parser) abandonedRule(n *yaml.Node, d *defaults) rule {
	p.rule = abandonedID
	defer func() { p.rule = "" }()
	r := rule{id: abandonedID, line: n.Line}
	p.fields(n, []string{"class", "disposition"}, p.verdictKeys(&r))
	p.settle(n, &r, d)
	return r
}

// verdictKeys are the keys of what a rule says, beside what it matches.
func (p *parser) verdictKeys(r *rule) map[string]func(*yaml.Node) {
	return map[string]func(*yaml.Node){
		"class":       func(n *yaml.Node) { r.class = oneOf(p, n, "class", Classes) },
		"disposition": func(n *yaml.Node) { r.disposition = oneOf(p, n, "disposition", Dispositions) },
		"skip":        func(n *yaml.Node) { policy := p.policy(n); r.own.policy = &policy },
		"retry":       func(n *yaml.Node) { retry := p.boolean(n); r.own.retry = &retry },
		"hint":        func(n *yaml.Node) { r.hint.source = p.text(n) },
	}
}

// settle fills in what the rule leaves to the set and checks its hint.
func (p *parser) settle(n *yaml.Node, r *rule, d *defaults) {
	r.policy = d.policy(r.class, r.disposition)
	if r.own.policy != nil {
		r.policy = *r.own.policy
	}
	r.retry = d.retry[r.class] && r.disposition == DispositionTransient
	if r.own.retry != nil {
		r.retry = *r.own.retry
	}
	hint := valueOf(n, "hint")
	if len(r.hint.source) > maxHintBytes {
		p.fail(hint, "hint of %d bytes, at most %d are allowed", len(r.hint.source), maxHintBytes)
	}
	if name, ok := r.hint.compile(&r.match); !ok {
		p.fail(hint, "the hint names {%s}, and no pattern of the rule has a group of that name", name)
	}
}

func (p *parser) gates(n *yaml.Node) []gateRule {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "a list of gates is expected")
		return nil
	}
	out := make([]gateRule, 0, len(n.Content))
	seen := map[string]bool{}
	for _, item := range n.Content {
		p.open(item)
		g := gateRule{line: item.Line, column: item.Column}
		p.fields(item, []string{"id", "gate"}, map[string]func(*yaml.Node){
			"id":     func(n *yaml.Node) { g.id = p.identifier(n) },
			"match":  func(n *yaml.Node) { g.match = p.match(n) },
			"unless": func(n *yaml.Node) { m := p.match(n); g.unless = &m },
			"class": func(n *yaml.Node) {
				p.list(n, func(n *yaml.Node) { g.classes = append(g.classes, oneOf(p, n, "class", Classes)) })
			},
			"gate": func(n *yaml.Node) { g.gate = oneOf(p, n, "gate", Gates) },
		})
		p.unique(item, seen, g.id)
		out = append(out, g)
		p.rule = ""
	}
	return out
}
