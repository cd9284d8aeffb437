package gateway

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"mcpledger/events"
)

// complaints are what was found wrong with servers' lists when they were last looked at,
// so that the log says once what stays wrong, whichever client looked. The zero complaints
// has none. They are safe for concurrent use.
type complaints struct {
	mu   sync.Mutex
	last map[listKey][]string
}

// maxComplaints is how many are told apart of one list.
const maxComplaints = 64

// news notes all that is wrong with a list now, and returns what was not when it was last
// looked at.
func (c *complaints) news(of listKey, now []string) (news []string) {
	if rest := len(now) - maxComplaints; rest > 0 {
		now = append(slices.Clone(now[:maxComplaints]), fmt.Sprintf("as much is wrong with %d more", rest))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range now {
		if !slices.Contains(c.last[of], one) && !slices.Contains(news, one) {
			news = append(news, one)
		}
	}
	if c.last == nil {
		c.last = map[listKey][]string{}
	}
	if c.last[of] = now; len(now) == 0 {
		delete(c.last, of)
	}
	return news
}

// retain forgets what was wrong with lists of connections that are not among those given.
func (c *complaints) retain(inForce map[events.ConfigKey]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.last, func(of listKey, _ []string) bool { return !inForce[of.connection] })
}
