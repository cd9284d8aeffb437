package projections

import (
	"maps"

	"mcpledger/events"
)

// Difference is a server that two sides see differently: two moments, or two rule sets at
// the same one. A side that does not know the server has its zero value.
type Difference struct {
	Server   events.ServerName
	Was, Now Server
	In       []Aspect // what differs, at least one
}

// Aspect is something in which a server may differ.
type Aspect string

// The aspects. Where one side does not know the server, that is all there is to say.
const (
	AspectAdded     Aspect = "added"
	AspectRemoved   Aspect = "removed"
	AspectState     Aspect = "state"
	AspectSkip      Aspect = "skip"
	AspectGate      Aspect = "gate"
	AspectCatalogue Aspect = "catalogue"
)

// Differences returns the servers that stand otherwise on two sides, by name. Each side
// has a server once.
func Differences(was, now []Server) []Difference {
	sides := map[events.ServerName]Difference{}
	for _, v := range was {
		sides[v.Name] = Difference{Server: v.Name, Was: v, In: []Aspect{AspectRemoved}}
	}
	for _, v := range now {
		d := Difference{Server: v.Name, Now: v, In: []Aspect{AspectAdded}}
		if before, known := sides[v.Name]; known {
			d.Was, d.In = before.Was, aspects(before.Was, v)
		}
		sides[v.Name] = d
	}
	maps.DeleteFunc(sides, func(_ events.ServerName, d Difference) bool { return len(d.In) == 0 })
	all := make([]Difference, 0, len(sides))
	for _, name := range sortedKeys(sides) {
		all = append(all, sides[name])
	}
	return all
}

// aspects says in what a server differs.
func aspects(was, now Server) []Aspect {
	var in []Aspect
	for _, a := range []struct {
		aspect Aspect
		same   bool
	}{
		{AspectState, was.State == now.State},
		{AspectSkip, sameSkip(was.Skip, now.Skip)},
		{AspectGate, sameGate(was.Gate, now.Gate)},
		{AspectCatalogue, sameCatalogue(was.Catalogue, now.Catalogue)},
	} {
		if !a.same {
			in = append(in, a.aspect)
		}
	}
	return in
}

func sameSkip(a, b *Skip) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Reason == b.Reason && a.Cause.Class == b.Cause.Class && a.Since.Equal(b.Since) && a.Until.Equal(b.Until)
}

func sameGate(a, b *Gate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.EventID == b.EventID
}

func sameCatalogue(a, b *Catalogue) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Hash == b.Hash
}
