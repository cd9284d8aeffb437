package httpapi

import (
	"context"
	"slices"
	"strings"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// ClassifyEvidence answers POST /api/classify.
func (a *API) ClassifyEvidence(_ context.Context, r api.ClassifyEvidenceRequestObject) (api.ClassifyEvidenceResponseObject, error) {
	set, err := a.ruleSet(r.Params.Rules)
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
func (a *API) GetRules(_ context.Context, r api.GetRulesRequestObject) (api.GetRulesResponseObject, error) {
	sequence, set, err := a.activeRules()
	if err != nil {
		return nil, err
	}
	headers := api.GetRules200ResponseHeaders{LedgerSequence: int64(sequence)}
	if r.Params.Format == api.GetRulesParamsFormatYaml {
		return api.GetRules200ApplicationyamlResponse{
			Body: strings.NewReader(set.Text()), ContentLength: int64(len(set.Text())), Headers: headers,
		}, nil
	}
	active := api.RuleSet{Set: set.Name(), Hash: set.Hash(), Rules: []api.Rule{}}
	for _, rule := range set.Rules() {
		active.Rules = append(active.Rules, api.Rule{
			Id: rule.ID, Class: rule.Class, Disposition: rule.Disposition,
			SkipPolicy: showPolicy(rule.Policy), Retry: rule.Retry, Hint: rule.Hint,
		})
	}
	return api.GetRules200JSONResponse{Body: api.ActiveRules{Active: active}, Headers: headers}, nil
}

// ListRuleSets answers GET /api/rules/sets.
func (a *API) ListRuleSets(_ context.Context, r api.ListRuleSetsRequestObject) (api.ListRuleSetsResponseObject, error) {
	sequence, active, err := a.activeRules()
	if err != nil {
		return nil, err
	}
	names := rules.BuiltinNames()
	var sets []api.RuleSetInfo
	if !slices.Contains(names, active.Name()) {
		sets = append(sets, api.RuleSetInfo{Set: active.Name(), Hash: active.Hash(), Active: true})
	}
	for _, name := range names {
		set, err := rules.Builtin(name)
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
		Headers: api.ListRuleSets200ResponseHeaders{LedgerSequence: int64(sequence)},
	}, nil
}

func (a *API) activeRules() (at events.Sequence, set *rules.Set, err error) {
	err = a.engine.View(func(s *projections.State) { at, set = s.Sequence(), s.Rules() })
	return at, set, err
}
