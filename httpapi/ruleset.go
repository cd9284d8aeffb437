package httpapi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"mcpledger/httpapi/api"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// ClassifyEvidence answers POST /api/classify.
func (a *API) ClassifyEvidence(ctx context.Context, r api.ClassifyEvidenceRequestObject) (api.ClassifyEvidenceResponseObject, error) {
	set, err := a.ruleSet(ctx, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	if set == nil {
		set = a.engine.Rules()
	}
	v := set.Classify(r.Body.Evidence)
	return api.ClassifyEvidence200JSONResponse{
		Class: v.Class, Disposition: v.Disposition, Rule: v.Rule, Signature: v.Signature,
		DecisiveText: v.Text, Hint: v.Hint, SkipPolicy: showPolicy(v.Policy), Retry: v.Retry, Gates: v.Gate,
	}, nil
}

// GetRules answers GET /api/rules.
func (a *API) GetRules(ctx context.Context, r api.GetRulesRequestObject) (api.GetRulesResponseObject, error) {
	m, err := a.place(ctx, r.Params.At, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	set, headers := m.set, api.GetRules200ResponseHeaders{LedgerSequence: int64(m.sequence), ETag: `"` + m.set.Hash() + `"`}
	if r.Params.Format == api.GetRulesParamsFormatYaml {
		return api.GetRules200ApplicationyamlResponse{
			Body: strings.NewReader(set.Text()), ContentLength: int64(len(set.Text())), Headers: headers,
		}, nil
	}
	if r.Params.At != "" {
		past := api.ActiveRules{Active: showRuleSet(set), ShadowDifferences: []api.DiffItem{}}
		return api.GetRules200JSONResponse{Body: past, Headers: headers}, nil
	}
	return api.GetRules200JSONResponse{Body: a.showActive(m), Headers: headers}, nil
}

func showRuleSet(set *rules.Set) api.RuleSet {
	shown := api.RuleSet{Set: set.Name(), Hash: set.Hash(), Rules: []api.Rule{}}
	for _, rule := range set.Rules() {
		shown.Rules = append(shown.Rules, api.Rule{
			Id: rule.ID, Class: rule.Class, Disposition: rule.Disposition,
			SkipPolicy: showPolicy(rule.Policy), Retry: rule.Retry, Hint: rule.Hint,
		})
	}
	return shown
}

// ListRuleSets answers GET /api/rules/sets.
func (a *API) ListRuleSets(ctx context.Context, r api.ListRuleSetsRequestObject) (api.ListRuleSetsResponseObject, error) {
	m, err := a.place(ctx, r.Params.At, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	activated, err := projections.ActivatedSets(ctx, a.log, m.sequence)
	if err != nil {
		return nil, err
	}
	active, names := m.set, rules.BuiltinNames()
	var sets []api.RuleSetInfo
	for _, d := range activated {
		if !slices.Contains(names, d.Set) {
			sets = append(sets, api.RuleSetInfo{Set: d.Set, Hash: d.Hash, Active: d.Hash == active.Hash()})
		}
	}
	for _, name := range names {
		set, err := a.builtin.set(name)
		if err != nil {
			return nil, err
		}
		sets = append(sets, api.RuleSetInfo{
			Set: name, Hash: set.Hash(), Builtin: true, Active: set.Hash() == active.Hash(),
		})
	}
	key := func(s api.RuleSetInfo) string { return s.Set }
	page, next, err := pageOf(sets, "rulesets", key, false, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	return api.ListRuleSets200JSONResponse{
		Body:    api.RuleSetList{Items: page, NextCursor: next},
		Headers: api.ListRuleSets200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// ruleSet returns the set that a name or a hash stands for, nil for "": the one in force
// or beside it, a built-in one, or one that was in force.
func (a *API) ruleSet(ctx context.Context, ref string) (*rules.Set, error) {
	if ref == "" {
		return nil, nil // no name is no set
	}
	for _, set := range []*rules.Set{a.engine.Rules(), a.engine.ShadowRules()} {
		if set != nil && set.Answers(ref) {
			return set, nil
		}
	}
	set, err := a.builtin.set(ref)
	if errors.Is(err, rules.ErrNoSuchSet) {
		set, err = projections.ActivatedSet(ctx, a.log, ref)
	}
	if errors.Is(err, rules.ErrNoSuchSet) {
		return nil, refuse(codeUnknownRules, "there is no rule set %q; /api/rules/sets lists those there are", ref)
	}
	return set, err
}

// builtinSets keeps the built-in rule sets that were asked for, since parsing one
// takes longer than most answers.
type builtinSets struct {
	mu   sync.Mutex
	sets map[string]*rules.Set
}

func (b *builtinSets) set(name string) (*rules.Set, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.sets[name]; known != nil {
		return known, nil
	}
	set, err := rules.Builtin(name)
	if err != nil {
		return nil, err
	}
	if b.sets == nil {
		b.sets = map[string]*rules.Set{}
	}
	b.sets[name] = set
	return set, nil
}
