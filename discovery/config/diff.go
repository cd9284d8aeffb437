package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"mcpledger/events"
)

// Applied is what the log says of one server that is configured: its latest
// server.configured and the config key of that event. Folds keep it; Change in it is
// not looked at.
type Applied struct {
	Key        events.ConfigKey
	Configured events.ServerConfigured
}

// Applied returns what the log holds once the server's entry is recorded.
func (s *Server) Applied() Applied {
	return Applied{Key: s.Key, Configured: events.ServerConfigured{
		Transport: s.Transport, Config: s.Written, Description: s.Description, Disabled: s.Disabled,
		Settings: s.Settings, SourceFile: s.SourceFile, Problem: s.Problem,
	}}
}

// Difference is what applying a config changes. All lists are sorted by name.
type Difference struct {
	Changed   []ChangedServer
	Removed   []RemovedServer
	Unchanged []events.ServerName
}

// ChangedServer is a server that is new, or whose entry differs.
type ChangedServer struct {
	Server *Server
	Change events.Change
}

// RemovedServer is a server that no entry configures any more.
type RemovedServer struct {
	Name events.ServerName
	Key  events.ConfigKey // the one it had
}

// Diff compares what the log says is configured with a config.
func Diff(old map[events.ServerName]Applied, c *Config) Difference {
	var d Difference
	for _, s := range c.Servers {
		before, known := old[s.Name]
		change := changeOf(before, s.Applied())
		switch {
		case !known:
			d.Changed = append(d.Changed, ChangedServer{Server: s, Change: events.ChangeAdded})
		case change != "":
			d.Changed = append(d.Changed, ChangedServer{Server: s, Change: change})
		default:
			d.Unchanged = append(d.Unchanged, s.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if c.Server(name) == nil {
			d.Removed = append(d.Removed, RemovedServer{Name: name, Key: old[name].Key})
		}
	}
	return d
}

// changeOf returns the most consequential change, empty if there is none.
func changeOf(old, now Applied) events.Change {
	switch {
	case old.Key.Entry() != now.Key.Entry():
		return events.ChangeKey
	case old.Key != now.Key:
		return events.ChangeValues
	case !sameSettings(old.Configured, now.Configured):
		return events.ChangeSettings
	}
	return ""
}

// sameSettings compares as a log would give them back, where an empty list is the
// same as none. That a fault moved to another line is no change.
func sameSettings(a, b events.ServerConfigured) bool {
	a.Change, b.Change = "", ""
	a.Problem, b.Problem = withoutPlace(a.Problem), withoutPlace(b.Problem)
	return reflect.DeepEqual(a, b) || reflect.DeepEqual(throughJSON(a), throughJSON(b))
}

func withoutPlace(p *events.EntryProblem) *events.EntryProblem {
	if p == nil {
		return nil
	}
	same := *p
	same.Line, same.Column = 0, 0
	return &same
}

func throughJSON(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return err
	}
	return out
}

// LoadedEvents returns the events that record a config in force: config.loaded, then
// what it changed. They have Type, Subject, ConfigKey, DataVersion and Data; whoever
// appends them adds id, source and time.
func LoadedEvents(c *Config, d Difference) []events.Event {
	batch := []events.Event{about("", "", events.ConfigLoaded{
		Files: c.Files, Servers: len(c.Servers), Warnings: c.Warnings, Faults: c.Faults,
	})}
	for _, r := range d.Removed {
		batch = append(batch, about(r.Name, r.Key, events.ServerRemoved{}))
	}
	for _, ch := range d.Changed {
		a := ch.Server.Applied()
		a.Configured.Change = ch.Change
		batch = append(batch, about(ch.Server.Name, a.Key, a.Configured))
	}
	return batch
}

// RejectedEvents returns the events that record a load that failed, one for each
// problem of a *ProblemError, else one with the error's text. As with LoadedEvents,
// whoever appends them adds id, source and time.
func RejectedEvents(err error) []events.Event {
	var bad *ProblemError
	if !errors.As(err, &bad) {
		return []events.Event{about("", "", events.ConfigRejected{ConfigProblem: events.ConfigProblem{Detail: err.Error()}})}
	}
	var batch []events.Event
	for _, p := range bad.Problems {
		batch = append(batch, about("", "", events.ConfigRejected{ConfigProblem: p}))
	}
	return batch
}

func about(server events.ServerName, key events.ConfigKey, d events.Data) events.Event {
	return events.Event{Type: d.EventType(), Subject: server, ConfigKey: key, DataVersion: 1, Data: d}
}
