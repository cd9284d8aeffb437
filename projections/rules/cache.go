package rules

import (
	"hash/maphash"
	"sync"

	"mcpledger/events"
)

// cacheSize is how many verdicts each of the two halves of a set's cache holds.
const cacheSize = 4096

// cache remembers verdicts by what the set can see of the evidence, since most
// failures are repetitions. When the young half is full it becomes the old one, and
// the old one is forgotten.
type cache struct {
	seeds [2]maphash.Seed
	reads [numberFieldCount]bool // the numbers that decide: those that a rule or every signature reads

	mu         sync.RWMutex
	young, old map[cacheKey]Verdict
}

// cacheKey is two hashes of the evidence under independent seeds: 128 bits, so that
// two failures never meet by chance.
type cacheKey [2]uint64

func newCache(s *Set) *cache {
	c := &cache{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		young: map[cacheKey]Verdict{},
		reads: [numberFieldCount]bool{numberExitCode: true, numberHTTPStatus: true, numberJSONRPCCode: true},
	}
	note := func(m *matcher) {
		for i := 0; m != nil && i < len(m.numbers); i++ {
			c.reads[m.numbers[i].field] = true
		}
	}
	for i := range s.rules {
		note(&s.rules[i].match)
		note(s.rules[i].unless)
	}
	for i := range s.gates {
		note(&s.gates[i].match)
		note(s.gates[i].unless)
	}
	return c
}

// verdict returns what is remembered for the evidence, else what judge gives.
func (c *cache) verdict(e *events.Evidence, judge func() Verdict) Verdict {
	key := c.key(e)
	c.mu.RLock()
	v, ok := c.young[key]
	if !ok {
		v, ok = c.old[key]
	}
	c.mu.RUnlock()
	if ok {
		return v
	}
	v = judge()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= cacheSize {
		c.young, c.old = map[cacheKey]Verdict{}, c.young
	}
	c.young[key] = v
	return v
}

// visible is the evidence as a set sees it, in comparable form.
type visible struct {
	facts
	err, command, head, tail, junk         string
	challenge, location, contentType, body string
	message, data, protocol                string
}

func (c *cache) key(e *events.Evidence) cacheKey {
	v := visible{
		err: e.Error, command: e.Command, head: e.StderrHead, tail: e.StderrTail,
		challenge: e.WWWAuthenticate, location: e.Location, contentType: e.ContentType, body: e.BodyExcerpt,
		message: e.JSONRPCMessage, data: e.JSONRPCData, protocol: e.ProtocolVersion,
	}
	v.take(e)
	if e.StdoutJunk != nil {
		v.junk = e.StdoutJunk.Excerpt
	}
	if v.stderrIsOld() {
		v.head, v.tail = "", ""
	}
	for f := range v.numbers {
		if !c.reads[f] {
			v.numbers[f] = unseen
		}
	}
	return cacheKey{maphash.Comparable(c.seeds[0], v), maphash.Comparable(c.seeds[1], v)}
}
