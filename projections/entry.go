package projections

import (
	"maps"
	"slices"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// entry is what is bound to an entry as written, whatever its values.
type entry struct {
	Catalogue *Catalogue `json:"catalogue,omitempty"`
	// EmptyAt is when an empty list first came after a full one; it is believed the
	// second time.
	EmptyAt time.Time `json:"empty_at,omitzero"`
	// ProtocolVersion is the one last spoken.
	ProtocolVersion string `json:"protocol_version,omitempty"`
	// ValueProbes counts, by signature, the skips that ended since values changed.
	ValueProbes map[string]int `json:"value_probes,omitempty"`
}

// Catalogue is the list of tools last learned for an entry.
type Catalogue struct {
	Hash    string          `json:"hash"`    // in canonical form
	Content string          `json:"content"` // hash under which the log keeps the tools as sent
	AsOf    time.Time       `json:"as_of"`   // when it was last seen to be so
	In      events.Sequence `json:"in"`      // the service start it was last seen in
	Names   []string        `json:"names"`   // sorted
}

// maxValueProbes is how often changed values end the skips of one signature.
const maxValueProbes = 3

// inherit returns the tally a connection starts with when only values changed, as l
// tells: an auth or credentials skip ends, any other gets one probe, maxValueProbes
// times per signature.
func (en *entry) inherit(t tally, l Link) tally {
	if t.Skip == nil {
		return t
	}
	cause := t.Skip.Cause
	if cause.Disposition == rules.DispositionAuth || cause.Class == rules.ClassCredentialsMissing {
		return tally{}.note(l, RoleReset, "its values changed: counting starts at zero")
	}
	if en.ValueProbes[cause.Signature] >= maxValueProbes {
		return t.note(l, RoleDecision, "its values changed once more: the skip stays as it was")
	}
	if en.ValueProbes == nil {
		en.ValueProbes = map[string]int{}
	}
	en.ValueProbes[cause.Signature]++
	return t.end(events.TriggerConfigChanged).note(l, RoleDecision, "its values changed: the skip is over, and a probe is due")
}

func (en *entry) changed(e events.Event, d events.CatalogueChanged, start events.Sequence) {
	names := map[string]bool{}
	if en.Catalogue != nil {
		for _, n := range en.Catalogue.Names {
			names[n] = true
		}
	}
	for _, n := range d.Added {
		names[n] = true
	}
	for _, n := range d.Removed {
		delete(names, n)
	}
	en.EmptyAt = time.Time{}
	en.Catalogue = &Catalogue{
		Hash: d.Hash, Content: events.ContentHash(d.Tools), AsOf: e.HappenedAt(), In: start,
		Names: slices.Sorted(maps.Keys(names)),
	}
}

// Has reports whether a tool of that name is in the catalogue.
func (c *Catalogue) Has(tool string) bool {
	_, found := slices.BinarySearch(c.Names, tool)
	return found
}
