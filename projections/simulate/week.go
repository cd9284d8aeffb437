package simulate

import (
	"time"

	"mcpledger/events"
)

// Week is a week of a small team's servers and of the agents that call them, short
// enough to be read event by event: a history to try rules on.
func Week(seed uint64) Fleet {
	m := newMaker("a week of 7 servers", seed, 7*day)
	for d := range 7 {
		m.fleet.Restarts = append(m.fleet.Restarts, m.clock(d, 23*time.Hour))
	}
	m.fleet.Servers = []Server{
		{Name: "weather", Kind: Called, Transport: events.TransportHTTP, CalledEvery: 5 * time.Minute, CallsBroken: []Breakage{
			m.spell(1, 5*time.Hour, 30*time.Minute, inCall(status(503, ""))),
			m.spell(3, 2*time.Hour, 20*time.Minute, unanswered()),
		}},
		{Name: "tickets", Kind: Called, Transport: events.TransportHTTP, CalledEvery: 15 * time.Minute, CallsBroken: []Breakage{
			m.spell(2, 4*time.Hour, time.Hour, rpcError("the service account is not authorized to read project ACME")),
		}},
		{Name: "warehouse", Kind: Maintained, Transport: events.TransportHTTP, CalledEvery: 20 * time.Minute,
			Broken: m.daily(10*time.Hour, 25*time.Minute, maintenance())},
		{Name: "reports", Kind: Fixed, Transport: events.TransportStdio, Broken: []Breakage{m.spell(0, 0, 26*time.Hour, missingModule("openpyxl"))}},
		{
			Name: "crm", Kind: Expiring, Transport: events.TransportHTTP, CalledEvery: 30 * time.Minute,
			Broken:  []Breakage{m.spell(2, 6*time.Hour, 14*time.Hour, expiredToken())},
			Rotated: []time.Time{m.clock(2, 20*time.Hour)},
		},
		{Name: "search", Kind: Flapping, Transport: events.TransportHTTP, CalledEvery: 10 * time.Minute, Broken: []Breakage{
			m.spell(1, 7*time.Hour, 40*time.Minute, status(502, "")), m.spell(4, 3*time.Hour, 2*time.Hour, status(503, "")),
		}},
		{Name: "legacy", Kind: Dead, Transport: events.TransportStdio, Broken: m.forever(missingCommand("acme-legacy-mcp"))},
	}
	return m.fleet
}

// clock is a time after the fleet's start.
func (m *maker) clock(days int, after time.Duration) time.Time {
	return m.fleet.Start.Add(time.Duration(days)*day + after)
}

// spell is a breakage that begins so many days and so long after the start.
func (m *maker) spell(days int, after, lasting time.Duration, f Failure) Breakage {
	from := m.clock(days, after)
	return Breakage{From: from, To: from.Add(lasting), Failure: f}
}

// daily is a breakage at the same time of each day.
func (m *maker) daily(after, lasting time.Duration, f Failure) []Breakage {
	var all []Breakage
	for d := range int(m.fleet.Span / day) {
		all = append(all, m.spell(d, after, lasting, f))
	}
	return all
}
