package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// PutRules answers PUT /api/rules.
func (a *API) PutRules(ctx context.Context, r api.PutRulesRequestObject) (api.PutRulesResponseObject, error) {
	text, err := io.ReadAll(io.LimitReader(r.Body, rules.MaxSetBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) == 0:
		return nil, refuse(codeBadBody, "a body is needed: the text of a rule set")
	case len(text) > rules.MaxSetBytes:
		return nil, refuse(codeBodyTooLarge, "at most %d bytes are taken", rules.MaxSetBytes)
	}
	set, err := parseRules(text)
	if err != nil {
		return nil, err
	}
	if err := a.mayBeInForce(set); err != nil {
		return nil, err
	}
	a.changingRules.Lock()
	defer a.changingRules.Unlock()
	if active := a.engine.Rules().Hash(); !matchesTag(r.Params.IfMatch, active) {
		return nil, refuse(codeRulesChanged, "the set in force has the hash %s", active)
	}
	differences, err := a.engine.Compare(ctx, set, a.now())
	if err != nil {
		return nil, err
	}
	if !r.Params.DryRun {
		record := func(ctx context.Context, d events.RulesActivated) error {
			return a.discovery.RecordActivation(ctx, d, callerOf(ctx).actor())
		}
		if err := a.engine.Activate(ctx, set, record); err != nil {
			return nil, err
		}
	}
	m, err := a.place(ctx, "", "")
	if err != nil {
		return nil, err
	}
	return api.PutRules200JSONResponse{
		Body: rulesChange(set, m.set, differences), Headers: api.PutRules200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// mayBeInForce refuses sets that may be looked at and not put in force.
func (a *API) mayBeInForce(set *rules.Set) error {
	if beyond := set.GatesBeyondLaw3(); len(beyond) > 0 {
		const fault = "it gates connections on more than 401, 403, scope and missing credentials"
		p := refuse(codeBreaksLaw3, fault+" (rule %s); it may be replayed and shadowed", beyond[0].ID)
		p.also.Line, p.also.Column = beyond[0].Line, beyond[0].Column
		for _, g := range beyond {
			p.also.Errors = append(p.also.Errors, api.ItemProblem{
				Line: g.Line, Column: g.Column, Rule: g.ID, Detail: fault,
			})
		}
		return p
	}
	// At its next start the service would take the built-in text for it.
	switch builtin, err := a.builtin.set(set.Name()); {
	case errors.Is(err, rules.ErrNoSuchSet):
		return nil
	case err != nil:
		return err
	case builtin.Hash() != set.Hash():
		p := refuse(codeRulesNameTaken, "the built-in set %q has another text; give yours a name of its own", set.Name())
		p.also.Line, p.also.Column = set.NamePlace()
		return p
	}
	return nil
}

// rulesChange says what a set changes, with the set that is in force.
func rulesChange(set, active *rules.Set, differences []projections.Difference) api.RulesChange {
	shown := api.RulesChange{
		Set: set.Name(), Hash: set.Hash(), InForce: set.Hash() == active.Hash(),
		WouldSkip: []events.ServerName{}, WouldRequalify: []events.ServerName{}, WouldGate: []events.ServerName{},
		Warnings: []api.ItemProblem{},
	}
	for _, w := range set.Check() {
		shown.Warnings = append(shown.Warnings, api.ItemProblem{Line: w.Line, Rule: w.Rule, Detail: w.Detail})
	}
	for _, d := range differences {
		switch {
		case d.Was.Skip == nil && d.Now.Skip != nil:
			shown.WouldSkip = append(shown.WouldSkip, d.Server)
		case d.Was.Skip != nil && d.Now.Skip == nil:
			shown.WouldRequalify = append(shown.WouldRequalify, d.Server)
		}
		if d.Was.Gate == nil && d.Now.Gate != nil {
			shown.WouldGate = append(shown.WouldGate, d.Server)
		}
	}
	return shown
}

// matchesTag reports whether an If-Match header lets through what has the hash.
func matchesTag(header, hash string) bool {
	if header == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(header, ","), func(tag string) bool {
		tag = strings.TrimSpace(tag)
		return tag == "*" || strings.Trim(tag, `"`) == hash
	})
}

// PutShadow answers PUT /api/rules/shadow.
func (a *API) PutShadow(ctx context.Context, r api.PutShadowRequestObject) (api.PutShadowResponseObject, error) {
	set, err := a.candidate(ctx, r.Body.Rules)
	if err != nil {
		return nil, err
	}
	if err := a.engine.Shadow(ctx, set); err != nil {
		return nil, err
	}
	m, err := a.place(ctx, "", "")
	if err != nil {
		return nil, err
	}
	return api.PutShadow200JSONResponse{
		Body: a.showActive(m), Headers: api.PutShadow200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

// DropShadow answers DELETE /api/rules/shadow.
func (a *API) DropShadow(context.Context, api.DropShadowRequestObject) (api.DropShadowResponseObject, error) {
	a.engine.DropShadow()
	return api.DropShadow204Response{}, nil
}

// showActive shows the moment's set and what runs beside the one in force.
func (a *API) showActive(m moment) api.ActiveRules {
	shown := api.ActiveRules{Active: showRuleSet(m.set), ShadowDifferences: []api.DiffItem{}}
	shadow, differences := a.engine.Shadowed(m.now)
	if shadow == nil {
		return shown
	}
	beside := showRuleSet(shadow)
	shown.Shadow = &beside
	for _, d := range differences {
		shown.ShadowDifferences = append(shown.ShadowDifferences, showDifference(d))
	}
	return shown
}

// candidate reads a rule set that a body holds, as its text or by name.
func (a *API) candidate(ctx context.Context, raw json.RawMessage) (*rules.Set, error) {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, badBody(err)
		}
		return parseRules([]byte(text))
	}
	var named struct {
		Set string `json:"set"`
	}
	if err := decodeStrict(bytes.NewReader(raw), &named); err != nil || named.Set == "" {
		return nil, refuse(codeBadBody, `rules: the text of a rule set is wanted, or {"set":"NAME"}`)
	}
	return a.ruleSet(ctx, named.Set)
}

// parseRules reads the text of a rule set. Its problem says what is wrong where.
func parseRules(text []byte) (*rules.Set, error) {
	set, err := rules.Parse("rules", text)
	faults, wrong := errors.AsType[rules.ParseErrors](err)
	if !wrong {
		return set, err
	}
	p := refuse(codeInvalidRules, "%s", faultInWords(faults[0]))
	p.also.Line, p.also.Column = faults[0].Line, faults[0].Column
	for _, f := range faults {
		p.also.Errors = append(p.also.Errors, api.ItemProblem{Line: f.Line, Column: f.Column, Rule: f.Rule, Detail: f.Detail})
	}
	return nil, p
}

func faultInWords(f *rules.ParseError) string {
	words := f.Detail
	if f.Rule != "" {
		words = fmt.Sprintf("rule %s: %s", f.Rule, words)
	}
	switch {
	case f.Column > 0:
		return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, words)
	case f.Line > 0:
		return fmt.Sprintf("line %d: %s", f.Line, words)
	}
	return words
}
