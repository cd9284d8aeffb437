package projections

import (
	"path"

	"mcpledger/events"
)

// Offers reports whether a server's tool may be called: it is in the catalogue and
// the entry's filter lets it through.
func (v Server) Offers(tool string) bool {
	return v.Catalogue.Has(tool) && Allowed(v.Entry.Settings.Tools, tool)
}

// Allowed reports whether a filter lets a tool through: deny wins, and an empty allow
// list allows all.
func Allowed(f events.ToolFilter, tool string) bool {
	if matchesAny(f.Deny, tool) {
		return false
	}
	return len(f.Allow) == 0 || matchesAny(f.Allow, tool)
}

func matchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); err == nil && ok {
			return true
		}
	}
	return false
}
