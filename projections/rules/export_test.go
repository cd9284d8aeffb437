package rules

import "mcpledger/events"

// ClassifySlowly judges by trying every rule in turn, without filter and cache.
func (s *Set) ClassifySlowly(e events.Evidence) Verdict { return s.judge(&e, nil) }

// ClassifyUncached judges without the cache.
func (s *Set) ClassifyUncached(e events.Evidence) Verdict { return s.judge(&e, s.filter) }
