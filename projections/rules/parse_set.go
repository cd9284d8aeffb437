package rules

import (
	"cmp"
	"regexp"

	"go.yaml.in/yaml/v4"
)

// Classes, Dispositions and Gates list the words a rule may use.
var (
	Classes = []Class{
		ClassAuth, ClassCredentialsMissing, ClassDependency, ClassCommandNotFound, ClassConfig,
		ClassProtocol, ClassResource, ClassNetwork, ClassTimeout, ClassRateLimit, ClassServerError,
		ClassToolError, ClassUnknown,
	}
	Dispositions = []Disposition{DispositionAuth, DispositionDeterministic, DispositionTransient, DispositionIgnore}
	Gates        = []Gate{GateAuthRequired, GateInsufficientScope, GateCredentialsMissing}
)

// idPattern is the form of the ids of rules and of the names of sets.
var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// defaults are the values of a set that its rules fall back on.
type defaults struct {
	byDisposition map[Disposition]SkipPolicy
	byClass       map[Class]SkipPolicy
	retry         map[Class]bool
}

// policy returns the policy of a rule that has none of its own: the class decides
// before the disposition, but for what is ignored. A disposition
// without a policy never skips.
func (d *defaults) policy(class Class, disposition Disposition) SkipPolicy {
	if policy, ok := d.byClass[class]; ok && disposition != DispositionIgnore {
		return policy
	}
	return d.byDisposition[disposition]
}

// set reads the mapping at the top. Rules are read last, whatever the order of the
// keys, since they fall back on the policies.
func (p *parser) set(root *yaml.Node) *Set {
	s := &Set{abandoned: rule{id: abandonedID, class: ClassUnknown, disposition: DispositionIgnore}}
	d := &defaults{retry: map[Class]bool{}}
	var rules, gates, abandoned *yaml.Node
	p.fields(root, []string{"name", "version", "rules"}, map[string]func(*yaml.Node){
		"name":           func(n *yaml.Node) { s.name, s.nameLine, s.nameColumn = p.identifier(n), n.Line, n.Column },
		"version":        p.version,
		"policies":       func(n *yaml.Node) { d.byDisposition = policies(p, n, Dispositions) },
		"class_policies": func(n *yaml.Node) { d.byClass = policies(p, n, Classes) },
		"retry": func(n *yaml.Node) {
			p.list(n, func(n *yaml.Node) { d.retry[oneOf(p, n, "class", Classes)] = true })
		},
		"any_failures": func(n *yaml.Node) { s.any = p.policy(n) },
		"brake":        func(n *yaml.Node) { s.brake = p.brake(n) },
		"abandoned":    func(n *yaml.Node) { abandoned = n },
		"rules":        func(n *yaml.Node) { rules = n },
		"gates":        func(n *yaml.Node) { gates = n },
	})
	s.policies = d.byDisposition
	if abandoned != nil {
		s.abandoned = p.abandonedRule(abandoned, d)
	}
	if rules != nil {
		s.rules = p.rules(rules, d)
	}
	if gates != nil {
		s.gates = p.gates(gates)
	}
	if n := len(s.rules) + len(s.gates); n > MaxRules {
		p.fail(cmp.Or(rules, gates), "%d rules, at most %d are allowed", n, MaxRules)
	}
	return s
}

func (p *parser) identifier(n *yaml.Node) string {
	id := p.text(n)
	if n.Kind == yaml.ScalarNode && !idPattern.MatchString(id) {
		p.fail(n, "%q: small letters, digits, '-', '_' and '.' are allowed, 64 at most", id)
	}
	return id
}

// version reads the version of the rule language, which is 1.
func (p *parser) version(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.Value != "1" {
		p.fail(n, "version %q of the rule language is not known, only 1 is", n.Value)
	}
}

// policies reads a mapping of policies by class or by disposition.
func policies[T ~string](p *parser, n *yaml.Node, words []T) map[T]SkipPolicy {
	out := map[T]SkipPolicy{}
	known := map[string]func(*yaml.Node){}
	for _, word := range words {
		known[string(word)] = func(n *yaml.Node) { out[word] = p.policy(n) }
	}
	p.fields(n, nil, known)
	return out
}

// policy reads a skip policy. A skip ends early with a changed local fact unless
// the policy says otherwise.
func (p *parser) policy(n *yaml.Node) SkipPolicy {
	policy := SkipPolicy{Requalify: true}
	p.fields(n, []string{"after"}, map[string]func(*yaml.Node){
		"after": func(n *yaml.Node) { policy.After = p.count(n) },
		"over":  func(n *yaml.Node) { policy.MinSpan = p.duration(n, 0) },
		"for": func(n *yaml.Node) {
			p.list(n, func(n *yaml.Node) { policy.TTL = append(policy.TTL, p.duration(n, 1)) })
		},
		"requalify": func(n *yaml.Node) { policy.Requalify = p.boolean(n) },
	})
	if policy.After > 0 && len(policy.TTL) == 0 {
		p.fail(n, `a policy that skips needs "for", how long`)
	}
	if policy.After == 0 {
		return SkipPolicy{}
	}
	return policy
}

func (p *parser) brake(n *yaml.Node) Brake {
	var b Brake
	p.fields(n, []string{"failures"}, map[string]func(*yaml.Node){
		"failures": func(n *yaml.Node) { b.Failures = p.count(n) },
		"within":   func(n *yaml.Node) { b.Within = p.duration(n, 0) },
		"for":      func(n *yaml.Node) { b.For = p.duration(n, 0) },
	})
	if b.Failures > 0 && (b.Within == 0 || b.For == 0) {
		p.fail(n, `a brake needs "within" and "for"`)
	}
	return b
}
