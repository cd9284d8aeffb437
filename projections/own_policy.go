package projections

import (
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// policies are what applies to one failure after a server's own settings.
type policies struct{ own, any rules.SkipPolicy }

func policiesFor(v rules.Verdict, any rules.SkipPolicy, s events.SkipSettings) policies {
	return policies{own: OwnPolicy(v.Policy, v.Disposition, s), any: OwnAnyFailures(any, s)}
}

// OwnAnyFailures returns a set's policy for any mix of failures after a server's own
// settings: only that it is never skipped has a say in it.
func OwnAnyFailures(p rules.SkipPolicy, s events.SkipSettings) rules.SkipPolicy {
	if s.Never {
		return rules.SkipPolicy{}
	}
	return p
}

// OwnPolicy returns the policy of a rule with that disposition after a server's own
// settings, which win, but for what is ignored. A number of runs of its own stands alone,
// however short the time they fall into. Where the rule never skips, it has no times that
// could go with the number: they are those of the default set for the disposition.
func OwnPolicy(p rules.SkipPolicy, d rules.Disposition, s events.SkipSettings) rules.SkipPolicy {
	switch {
	case s.Never:
		return rules.SkipPolicy{}
	case d == rules.DispositionIgnore:
		return p
	case s.After > 0 && p.After == 0:
		p = rules.Default().Policy(d)
	}
	if s.After > 0 {
		p.After, p.MinSpan = s.After, 0
	}
	if len(s.TTLMS) > 0 {
		p.TTL = make([]time.Duration, len(s.TTLMS))
		for i, ms := range s.TTLMS {
			p.TTL[i] = time.Duration(ms) * time.Millisecond
		}
	}
	return p
}
