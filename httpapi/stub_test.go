package httpapi_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"mcpledger/discovery"
	"mcpledger/events"
)

// discoveryStub records what it is told to do, and ends each attempt with the
// outcome told beforehand.
type discoveryStub struct {
	world    *world
	mu       sync.Mutex
	outcome  events.Data // of the next attempts; nil: they do not end
	asked    []events.ServerName
	joined   map[events.ServerName]string // runs of others at servers
	err      error
	reloaded discovery.Reloaded
	called   []discovery.Call
	call     func(context.Context, discovery.Call) (discovery.CallOutcome, error)
}

func (d *discoveryStub) record(ctx context.Context, server events.ServerName, a about, payloads ...events.Data) error {
	var batch []events.Event
	for _, p := range payloads {
		batch = append(batch, d.world.event(server, a, p))
	}
	_, err := d.world.log.Append(ctx, batch)
	return err
}

func (d *discoveryStub) Discover(ctx context.Context, servers []events.ServerName, reason, _ string) (discovery.Begun, error) {
	if d.err != nil {
		return discovery.Begun{}, d.err
	}
	d.mu.Lock()
	d.asked = append(d.asked, servers...)
	d.mu.Unlock()
	done := make(chan struct{})
	if d.outcome == nil {
		return discovery.Begun{RunID: "run-open", Joined: d.joined, Done: done}, nil
	}
	defer close(done)
	a := about{run: fmt.Sprintf("run-%d", d.world.ids.Add(1)), attempt: "attempt"}
	started := events.DiscoveryRunStarted{Trigger: events.TriggerManual, Servers: servers, Reason: reason}
	if err := d.record(ctx, "", a, started); err != nil {
		return discovery.Begun{}, err
	}
	for _, s := range servers {
		if err := d.record(ctx, s, a, events.DiscoveryStarted{Attempt: 1, Trigger: events.TriggerManual}, d.outcome); err != nil {
			return discovery.Begun{}, err
		}
	}
	return discovery.Begun{RunID: a.run, Joined: d.joined, Done: done}, d.record(ctx, "", a, events.DiscoveryRunCompleted{})
}

func (d *discoveryStub) Reload(context.Context, string) (discovery.Reloaded, error) {
	return d.reloaded, d.err
}

func (d *discoveryStub) Pin(ctx context.Context, server events.ServerName, until time.Time, reason, _ string) error {
	return cmp.Or(d.err, d.record(ctx, server, about{}, events.SkipPinned{Reason: reason, Until: until}))
}

func (d *discoveryStub) Clear(ctx context.Context, servers []events.ServerName, reason, _ string) error {
	for _, s := range servers {
		if err := d.record(ctx, s, about{}, events.SkipCleared{Reason: reason}); err != nil {
			return err
		}
	}
	return d.err
}

func (d *discoveryStub) RecordActivation(ctx context.Context, activated events.RulesActivated, actor string) error {
	e := d.world.event("", about{}, activated)
	e.Actor = actor
	if d.err != nil {
		return d.err
	}
	_, err := d.world.log.Append(ctx, []events.Event{e})
	return err
}

func (d *discoveryStub) Call(ctx context.Context, c discovery.Call) (discovery.CallOutcome, error) {
	d.mu.Lock()
	d.called = append(d.called, c)
	d.mu.Unlock()
	if d.call == nil {
		return discovery.CallOutcome{}, cmp.Or(d.err, discovery.ErrUnknownServer)
	}
	return d.call(ctx, c)
}
