package projections

import (
	"strconv"
	"strings"
	"time"

	"mcpledger/projections/rules"
)

// judge decides what a failure does to the skip: makes one, renews the one there, ends
// it or leaves all as it is. The note is the decision in words, for the chain. t has
// the failure counted already.
func (t tally) judge(f failure) (skip *Skip, note string) {
	at := f.link.Time
	next := Skip{
		Reason: SkipIdenticalFailures, Cause: f.cause, Failures: t.Streak.Count,
		EventIDs: t.Streak.EventIDs, FirstAt: t.Streak.FirstAt, Since: at, Requalify: f.policy.Requalify,
	}
	if f.cause.Disposition == rules.DispositionAuth {
		next.Reason = SkipAuth
	}
	alike := row{t.Streak.Count, at.Sub(t.Streak.FirstAt), f.policy}
	mix := row{t.AnyCount, at.Sub(t.AnySince), f.any}
	policy := f.policy
	switch {
	case t.Skip.ActiveAt(at):
		// Somebody tried all the same; only the probe at its end renews a skip.
		return t.Skip, "tried while it was skipped: the skip stays as it was"
	case t.Skip != nil && policy.After > 0:
		// The probe failed, with whatever signature: one rung up.
		next.FirstAt = t.Skip.FirstAt
		if !isAhead(t.Skip.Since, at) { // else the one renewed would be over, too
			next.Since = t.Skip.Since
		}
		next.Rung = t.Skip.Rung + 1
		if t.Skip.Reason == SkipAnyFailures && !alike.makesSkip() {
			next.Reason, policy = SkipAnyFailures, f.any
		}
		next.Failures = max(next.Failures, t.Skip.Failures+1)
		next.Mixed = t.Streak.Count < next.Failures
		next.EventIDs = appendBounded(t.Skip.EventIDs, f.link.EventID, max(leastEventIDs, policy.After))
		note = "the probe failed: the skip is renewed"
	case alike.makesSkip():
		note = alike.String()
	case mix.makesSkip():
		next.Reason, policy = SkipAnyFailures, f.any
		next.Failures, next.FirstAt = t.AnyCount, t.AnySince
		next.Mixed = t.Streak.Count < t.AnyCount
		next.EventIDs = appendBounded(t.chainIDs(RoleCounted), f.link.EventID, maxLinks)
		note = mix.String() + " without a success"
	default:
		return nil, towardsSkip(alike, mix)
	}
	next.Until = at.Add(policy.Rung(next.Rung))
	return &next, note
}

// row is failures in a row, beside the policy that says how many make a skip.
type row struct {
	count  int
	span   time.Duration // from the first to the last
	policy rules.SkipPolicy
}

func (r row) makesSkip() bool {
	return r.policy.After > 0 && r.count >= r.policy.After && r.span >= r.policy.MinSpan
}

// String says how far the row has come: "2 of 3".
func (r row) String() string {
	words := strconv.Itoa(r.count) + " of " + strconv.Itoa(r.policy.After)
	if r.count > r.policy.After {
		words = strconv.Itoa(r.count) + ", where " + strconv.Itoa(r.policy.After) + " are needed"
	}
	if r.count >= r.policy.After && r.span < r.policy.MinSpan {
		words += ", but too close together"
	}
	return words
}

// towardsSkip says how far a failure that makes no skip has come towards one, by each
// policy that could make it.
func towardsSkip(alike, mix row) string {
	var words []string
	if alike.policy.After > 0 {
		words = append(words, alike.String())
	}
	if mix.policy.After > 0 && (alike.policy.After <= 0 || mix.count != alike.count) {
		words = append(words, mix.String()+" without a success")
	}
	if len(words) == 0 {
		return "counted; this rule never skips"
	}
	return strings.Join(words, "; ")
}
