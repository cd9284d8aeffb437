package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// ErrUnreadableRules reports a rule set of the log that this version does not read:
// another version put it in force.
var ErrUnreadableRules = errors.New("a rule set that this version does not read")

// ActivatedSets returns the rule sets that were put in force in a log up to a place,
// 0 for all of it: each name once, with the text it had last, the set that was put in
// force last first. They may hold sets that this program no longer reads.
func ActivatedSets(ctx context.Context, log events.Log, upTo events.Sequence) ([]events.RulesActivated, error) {
	q := events.Query{Types: []events.Type{events.TypeRulesActivated}, Desc: true}
	if upTo > 0 {
		q.Before = upTo + 1
	}
	var all []events.RulesActivated
	for e, err := range log.Read(ctx, q) {
		if err != nil {
			return nil, fmt.Errorf("read the activated rule sets: %w", err)
		}
		d, ok := e.Data.(events.RulesActivated)
		if ok && !slices.ContainsFunc(all, func(later events.RulesActivated) bool { return later.Set == d.Set }) {
			all = append(all, d)
		}
	}
	return all, nil
}

// ActivatedSet returns the rule set of a log that a name or a hash stands for, a name with
// the text it was last put in force with. It gives rules.ErrNoSuchSet when there is none,
// and ErrUnreadableRules.
func ActivatedSet(ctx context.Context, log events.Log, ref string) (*rules.Set, error) {
	for e, err := range log.Read(ctx, events.Query{Types: []events.Type{events.TypeRulesActivated}, Desc: true}) {
		if err != nil {
			return nil, fmt.Errorf("read the activated rule sets: %w", err)
		}
		if d, ok := e.Data.(events.RulesActivated); ok && rules.Answers(d.Set, d.Hash, ref) {
			return setOf(d)
		}
	}
	return nil, fmt.Errorf("%q was never in force: %w", ref, rules.ErrNoSuchSet)
}

// setOf reads the rule set of an activation. The error is ErrUnreadableRules.
func setOf(d events.RulesActivated) (*rules.Set, error) {
	set, err := rules.Parse(d.Set, []byte(d.Text))
	if err != nil {
		return nil, fmt.Errorf("the log has %w: %w", ErrUnreadableRules, err)
	}
	return set, nil
}
