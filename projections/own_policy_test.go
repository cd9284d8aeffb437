package projections_test

import (
	"slices"
	"testing"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// neverSkips has no policy for anything but those of two rules.
const neverSkips = `
name: never-skips
version: 1
policies:
  deterministic: {after: 4, for: [2m]}
rules:
  - id: fitz
    match: {text: fitz}
    class: dependency
    disposition: deterministic
    skip: {after: 0}
  - id: yaml
    match: {text: yaml}
    class: dependency
    disposition: deterministic
  - id: login
    match: {http_status: 401}
    class: auth
    disposition: auth
  - id: closed
    match: {text: connection refused}
    class: network
    disposition: ignore
  - id: rest
    class: unknown
    disposition: transient
abandoned: {class: resource, disposition: transient}
`

// A server that asks to be skipped after some failures is skipped, for a time, whatever
// set is in force.
func TestAServersOwnNumberSkipsForATime(t *testing.T) {
	set, err := rules.Parse("test", []byte(neverSkips))
	if err != nil {
		t.Fatal(err)
	}
	gone := events.DiscoveryFailed{Evidence: events.Evidence{Phase: events.PhaseHandshake, Transport: events.TransportStdio, Error: "it went away"}}
	for _, c := range []struct {
		name   string
		own    events.SkipSettings
		fails  events.DiscoveryFailed
		renews int
		want   time.Duration // 0: no skip
	}{
		{"a rule that never skips, of what fails in the same way", events.SkipSettings{After: 2}, diesOnImport, 0, time.Hour},
		{"a probe in vain renews it for longer", events.SkipSettings{After: 2}, diesOnImport, 1, 4 * time.Hour},
		{"a set that never skips what may pass", events.SkipSettings{After: 2}, gone, 0, 5 * time.Minute},
		{"a set that never skips a login", events.SkipSettings{After: 2}, answers401, 0, time.Hour},
		{"times of its own", events.SkipSettings{After: 2, TTLMS: []int64{time.Minute.Milliseconds()}}, diesOnImport, 0, time.Minute},
		{"a rule with times", events.SkipSettings{After: 2}, diesOnOther, 0, 2 * time.Minute},
		{"no number, and a rule that never skips", events.SkipSettings{TTLMS: []int64{60_000}}, diesOnImport, 0, 0},
		{"what is ignored", events.SkipSettings{After: 2}, refused, 0, 0},
		{"never", events.SkipSettings{After: 2, Never: true}, diesOnImport, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory()
			h.entry.Settings.Skip = c.own
			h.configure(events.ChangeSettings, keyA)
			h.attempt(events.TriggerRetry, c.fails)
			h.attempt(events.TriggerRetry, c.fails)
			for range c.renews {
				h.wait(24 * time.Hour)
				h.attempt(events.TriggerSkipExpired, c.fails)
			}
			s := projections.New(set)
			for _, e := range h.events {
				s.Apply(e)
			}
			v, _ := s.Server(server, h.now)
			var got time.Duration
			if v.Skip != nil {
				failures := slices.DeleteFunc(slices.Clone(h.events), func(e events.Event) bool { return e.Type != events.TypeDiscoveryFailed })
				got = v.Skip.Until.Sub(failures[len(failures)-1].Time)
			}
			if got != c.want {
				t.Errorf("skipped for %s, want %s: %s", got, c.want, v.Reason)
			}
		})
	}
}
