package projections

import (
	"math"
	"time"

	"mcpledger/events"
)

// maxConnections bounds how many config keys of one server are remembered; the
// least recently touched fall away, the present one never.
const maxConnections = 32

// server is one server as one source sees it.
type server struct {
	// Entry is the configuration in force; nil for a server that is only reported.
	Entry      *events.ServerConfigured `json:"entry,omitempty"`
	Removed    bool                     `json:"removed,omitempty"`
	ConfigTime time.Time                `json:"config_time,omitzero"`
	ConfigIn   events.Sequence          `json:"config_in,omitempty"` // the event's own place
	Current    events.ConfigKey         `json:"current,omitempty"`
	Pin        *Skip                    `json:"pin,omitempty"` // by hand, whatever the entry says

	Connections map[events.ConfigKey]*connection `json:"connections"`
	Entries     map[string]*entry                `json:"entries"` // by ConfigKey.Entry
	Stats       Stats                            `json:"stats,omitzero"`
	Latency     latency                          `json:"latency,omitzero"` // of dispatched calls
}

// Stats counts what was done with a server.
type Stats struct {
	Attempts     int64 `json:"attempts"`
	Failures     int64 `json:"failures"`
	Launches     int64 `json:"launches"` // processes started, by attempts and for calls
	Calls        int64 `json:"calls"`
	CallFailures int64 `json:"call_failures"`
	// CallP50MS and CallP99MS are how long dispatched calls took, failed ones too, in
	// milliseconds, to one part in a hundred; 0 without any.
	CallP50MS int64 `json:"-"`
	CallP99MS int64 `json:"-"`
}

// configured takes the entry in force. A changed entry is a new connection. When
// only values changed, the new connection goes on from the old one's tally and the
// facts it rests on, since a value that differs at every start would otherwise be
// tried for ever.
func (srv *server) configured(e events.Event, d events.ServerConfigured) {
	previous := srv.Connections[srv.Current]
	sameEntry := srv.Entry != nil && srv.Current.Entry() == e.ConfigKey.Entry()
	srv.Entry, srv.Removed = &d, false
	srv.ConfigTime, srv.ConfigIn = e.HappenedAt(), e.Sequence
	if srv.Current == e.ConfigKey {
		return
	}
	srv.Current = e.ConfigKey
	if _, known := srv.Connections[e.ConfigKey]; known || previous == nil || !sameEntry {
		return
	}
	c := srv.connection(e)
	c.Facts = previous.Facts
	c.Tally = srv.entry(e.ConfigKey).inherit(previous.Tally, link(e))
}

func (srv *server) skipSettings() events.SkipSettings {
	if srv.Entry == nil {
		return events.SkipSettings{}
	}
	return srv.Entry.Settings.Skip
}

// connection returns the connection of e's config key. For a server that no config
// names, the key last reported is the current one.
func (srv *server) connection(e events.Event) *connection {
	if srv.Entry == nil {
		srv.Current = e.ConfigKey
	}
	c := srv.Connections[e.ConfigKey]
	if c == nil {
		c = newConnection()
		srv.Connections[e.ConfigKey] = c
	}
	c.Touched = e.Sequence
	if len(srv.Connections) > maxConnections {
		srv.prune()
	}
	return c
}

// prune drops the connection that was least recently touched and is not the present
// one, and its entry if no other connection shares it.
func (srv *server) prune() {
	var oldest events.ConfigKey
	lowest := events.Sequence(math.MaxInt64)
	for k, c := range srv.Connections {
		if k != srv.Current && c.Touched < lowest {
			oldest, lowest = k, c.Touched
		}
	}
	delete(srv.Connections, oldest)
	shared := oldest.Entry() == srv.Current.Entry()
	for k := range srv.Connections {
		shared = shared || k.Entry() == oldest.Entry()
	}
	if !shared {
		delete(srv.Entries, oldest.Entry())
	}
}

// known returns what is bound to the present entry, zero if nothing is.
func (srv *server) known() entry {
	if en := srv.Entries[srv.Current.Entry()]; en != nil {
		return *en
	}
	return entry{}
}

// present returns the present connection, a new one if nothing happened on it yet.
func (srv *server) present() *connection {
	if c := srv.Connections[srv.Current]; c != nil {
		return c
	}
	return newConnection()
}

func (srv *server) entry(k events.ConfigKey) *entry {
	en := srv.Entries[k.Entry()]
	if en == nil {
		en = &entry{}
		srv.Entries[k.Entry()] = en
	}
	return en
}

// listed notes that a catalogue was seen again, or that it seems to have become
// empty.
func (srv *server) listed(e events.Event, d events.DiscoverySucceeded, start events.Sequence) {
	en := srv.entry(e.ConfigKey)
	en.ValueProbes = nil
	en.ProtocolVersion = d.ProtocolVersion
	if en.Catalogue == nil {
		return
	}
	switch {
	case d.CatalogueHash == en.Catalogue.Hash:
		seen := *en.Catalogue
		seen.AsOf, seen.In = e.HappenedAt(), start
		en.Catalogue, en.EmptyAt = &seen, time.Time{}
	case d.ToolCount == 0 && en.EmptyAt.IsZero():
		en.EmptyAt = e.HappenedAt()
	}
}
