package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"mcpledger/events"
)

// epoch is when the fleets' time begins.
var epoch = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// maker makes the servers of a fleet. Its chance is seeded, so a seed gives one
// fleet.
type maker struct {
	chance *rand.Rand
	fleet  Fleet
	outage []Breakage // of the network that is shared
}

func newMaker(name string, seed uint64, span time.Duration) *maker {
	return &maker{
		chance: rand.New(rand.NewPCG(seed, 0)),
		fleet:  Fleet{Name: name, Seed: seed, Start: epoch, Span: span},
	}
}

// Mixed is a month in which a few servers of every kind live together.
func Mixed(seed uint64) Fleet {
	m := newMaker("a month of 50 servers", seed, 30*day)
	m.restarts(2)
	m.outages(45*time.Minute, 4*time.Hour)
	m.add(8, Dead, m.dead)
	m.add(2, Unanswering, m.unanswering)
	m.add(12, Fixed, func(_ int, s *Server) { m.fixed(s, m.between(2*time.Hour, 2*day)) })
	m.add(5, Flapping, m.flapping)
	m.add(8, Networked, m.networked)
	m.add(3, Expiring, m.expiring)
	m.add(8, Released, m.released)
	m.add(4, SlowStart, m.slow)
	return m.fleet
}

// Year is the year of a large fleet: dead servers, repaired ones, flapping ones, a
// network with three outages, tokens that expire, weekly releases, and two restarts
// a day.
func Year(seed uint64) Fleet {
	m := newMaker("a year of 200 servers", seed, 365*day)
	m.restarts(2)
	m.outages(40*time.Minute, 5*time.Hour, 20*time.Hour)
	m.add(20, Dead, m.dead)
	m.add(3, Unanswering, m.unanswering)
	m.add(15, Fixed, func(_ int, s *Server) { m.fixed(s, m.between(day, 20*day)) })
	m.add(4, Flapping, m.flapping)
	m.add(10, Networked, m.networked)
	m.add(4, Expiring, m.expiring)
	m.add(15, Released, m.released)
	m.add(5, SlowStart, m.slow)
	m.add(124, Healthy, func(int, *Server) {})
	return m.fleet
}

// NeverAnswered is three servers that were never reached, and no others: what there
// is looks like an outage.
func NeverAnswered(seed uint64) Fleet {
	m := newMaker("three hosts that never answered", seed, 14*day)
	m.restarts(2)
	m.add(3, Unanswering, m.unanswering)
	return m.fleet
}

// between returns a span of time drawn between two.
func (m *maker) between(least, most time.Duration) time.Duration {
	return least + time.Duration(m.chance.Int64N(int64(most-least)))
}

// pick returns one of a few failures.
func (m *maker) pick(some ...Failure) Failure { return some[m.chance.IntN(len(some))] }

func (m *maker) end() time.Time { return m.fleet.Start.Add(m.fleet.Span) }

// add adds n servers of a kind, over stdio unless change says otherwise.
func (m *maker) add(n int, kind Kind, change func(i int, s *Server)) {
	for i := range n {
		s := Server{
			Name: events.ServerName(fmt.Sprintf("%s %d", kind, i+1)),
			Kind: kind, Transport: events.TransportStdio,
		}
		change(i, &s)
		m.fleet.Servers = append(m.fleet.Servers, s)
	}
}

// restarts spreads so many restarts over each day.
func (m *maker) restarts(perDay int) {
	for at := m.fleet.Start; ; {
		at = at.Add(m.between(day/time.Duration(2*perDay), 3*day/time.Duration(2*perDay)))
		if !at.Before(m.end()) {
			return
		}
		m.fleet.Restarts = append(m.fleet.Restarts, at)
	}
}

// outages takes the shared network down for so long, evenly over the fleet's time.
func (m *maker) outages(lasting ...time.Duration) {
	for i, d := range lasting {
		from := m.fleet.Start.Add(m.fleet.Span*time.Duration(i+1)/time.Duration(len(lasting)+1) + m.between(0, time.Hour))
		m.outage = append(m.outage, Breakage{From: from, To: from.Add(d)})
	}
}

func (m *maker) forever(f Failure) []Breakage {
	return []Breakage{{From: m.fleet.Start, To: m.end().Add(day), Failure: f}}
}

func (m *maker) dead(i int, s *Server) {
	s.Broken = m.forever([]Failure{
		missingModule("fastmcp"), missingCommand("acme-mcp"), silentExit(),
		exited("Error: ACME_API_KEY environment variable is required", 300*time.Millisecond),
	}[i%4])
}

func (m *maker) unanswering(i int, s *Server) {
	s.Transport = events.TransportHTTP
	s.Broken = m.forever(refused(100 + i))
}

func (m *maker) fixed(s *Server, after time.Duration) {
	s.Broken = []Breakage{{
		From: m.fleet.Start, To: m.fleet.Start.Add(after),
		Failure: m.pick(missingModule("pydantic_core"), silentExit(), missingCommand("uvx")),
	}}
}

func (m *maker) flapping(_ int, s *Server) {
	s.Transport = events.TransportHTTP
	at := m.fleet.Start.Add(m.between(0, day))
	for at.Before(m.end()) {
		to := at.Add(m.between(10*time.Minute, 12*time.Hour))
		s.Broken = append(s.Broken, Breakage{From: at, To: to, Failure: m.pick(status(503, ""), status(502, ""), refused(7))})
		at = to.Add(m.between(6*time.Hour, 3*day))
	}
}

func (m *maker) networked(i int, s *Server) {
	s.Transport = events.TransportHTTP
	for _, b := range m.outage {
		b.Failure = unreachable(i)
		s.Broken = append(s.Broken, b)
	}
}

// expiring lets a token expire every other week; a person writes a new one after
// hours or days.
func (m *maker) expiring(_ int, s *Server) {
	s.Transport = events.TransportHTTP
	at := m.fleet.Start
	for {
		at = at.Add(m.between(10*day, 18*day))
		to := at.Add(m.between(time.Hour, 2*day))
		if !to.Before(m.end()) {
			return
		}
		s.Broken = append(s.Broken, Breakage{From: at, To: to, Failure: expiredToken()})
		s.Rotated = append(s.Rotated, to)
		at = to
	}
}

// released changes the version that a server runs every week. One release in four
// does not start, until it is repaired, which no config shows.
func (m *maker) released(_ int, s *Server) {
	for at := m.fleet.Start.Add(m.between(0, 7*day)); at.Before(m.end()); at = at.Add(7 * day) {
		s.Rotated = append(s.Rotated, at)
		s.Released = append(s.Released, at)
		if m.chance.IntN(4) == 0 {
			s.Broken = append(s.Broken, Breakage{
				From: at, To: at.Add(m.between(time.Hour, 2*day)),
				Failure: exited("SyntaxError: The requested module './tools.js' does not provide an export named 'register'", time.Second),
			})
		}
	}
}

func (m *maker) slow(i int, s *Server) { s.SlowStarts = 1 + i%4 }
