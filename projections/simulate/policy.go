package simulate

import (
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"sync"

	"mcpledger/projections/rules"
)

// Policy is a change of the numbers of a rule set, in the set's own words.
type Policy struct {
	Name string // as a set's name
	What string // for people
	// Numbers has the new value of each line changed, by its key: a disposition, a class
	// or any_failures.
	Numbers map[string]string
}

// Apply returns the set with the policy's numbers and name. Each key must stand on a
// line of its own in the set's text.
func (p Policy) Apply(base *rules.Set) (*rules.Set, error) {
	text := base.Text()
	if len(p.Numbers) == 0 {
		return base, nil
	}
	changes := maps.Clone(p.Numbers)
	changes["name"] = p.Name
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		line := regexp.MustCompile(`(?m)^( *` + regexp.QuoteMeta(key) + `:) .*$`)
		at := line.FindStringSubmatchIndex(text)
		if at == nil {
			return nil, fmt.Errorf("policy %s: the set %s has no line %q", p.Name, base.Name(), key)
		}
		text = text[:at[3]] + " " + changes[key] + text[at[1]:]
	}
	return rules.Parse(p.Name, []byte(text))
}

// everywhere is the same numbers for whatever may be lasting.
func everywhere(numbers string) map[string]string {
	return map[string]string{"deterministic": numbers, "command_not_found": numbers, "unknown": numbers}
}

// Candidates are the policies that are worth comparing.
func Candidates() []Policy {
	never := everywhere("{after: 0}")
	never["auth"], never["transient"], never["any_failures"] = "{after: 0}", "{after: 0}", "{after: 0}"
	return []Policy{
		{Name: "default", What: "the default"},
		{Name: "never", What: "never skip", Numbers: never},
		{Name: "first-failure", What: "skip after the first failure", Numbers: everywhere("{after: 1, for: [1h, 4h, 24h]}")},
		{Name: "fifth-failure", What: "skip after 5 identical failures", Numbers: everywhere("{after: 5, for: [1h, 4h, 24h]}")},
		{Name: "one-hour", What: "skip for 1 h each time", Numbers: everywhere("{after: 3, for: [1h]}")},
		{Name: "quarter-hours", What: "skip for 15 min, doubling to 6 h", Numbers: everywhere("{after: 3, for: [15m, 30m, 1h, 2h, 4h, 6h]}")},
		{Name: "half-day", What: "skip for 1 h, 2 h, 4 h, 8 h, then 12 h", Numbers: everywhere("{after: 3, for: [1h, 2h, 4h, 8h, 12h]}")},
		{Name: "one-day", What: "skip for 24 h at once", Numbers: everywhere("{after: 3, for: [24h]}")},
		{Name: "for-good", What: "skip until somebody acts", Numbers: everywhere("{after: 3, for: [87600h]}")},
		{Name: "hasty-network", What: "what may pass: skip after 3, as all else", Numbers: map[string]string{
			"transient": "{after: 3, for: [1h, 4h, 24h]}",
		}},
		{Name: "patient-network", What: "what may pass: 5 min, doubling to 1 h", Numbers: map[string]string{
			"transient": "{after: 10, over: 1h, for: [5m, 10m, 20m, 40m, 1h]}",
		}},
		{Name: "tiring-network", What: "what may pass: 5 min, doubling to 2 h", Numbers: map[string]string{
			"transient": "{after: 10, over: 1h, for: [5m, 10m, 20m, 40m, 80m, 2h]}",
		}},
	}
}

// Compare lets the fleet's time pass under each of the policies, on all cores, and
// returns the results in their order.
func Compare(f Fleet, base *rules.Set, policies []Policy) ([]Result, error) {
	sets := make([]*rules.Set, len(policies))
	for i, p := range policies {
		var err error
		if sets[i], err = p.Apply(base); err != nil {
			return nil, err
		}
	}
	results := make([]Result, len(policies))
	next := make(chan int)
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for i := range next {
				results[i] = f.Run(sets[i], nil)
				results[i].Policy = policies[i].What
			}
		})
	}
	for i := range sets {
		next <- i
	}
	close(next)
	running.Wait()
	return results, nil
}
