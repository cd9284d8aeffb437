package config

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"mcpledger/events"
)

// Timeouts are a server's own limits; zero means the default for its kind.
type Timeouts struct {
	Start     time.Duration // an attempt in all
	Silence   time.Duration // of a starting process that prints nothing
	Call      time.Duration // a tool call without progress
	CallTotal time.Duration // a tool call in all
}

// maxTimeout bounds every timeout that an entry can set.
const maxTimeout = 24 * time.Hour

// readOwn reads the section "mcpledger" of an entry.
func (e *entry) readOwn(m member) {
	for _, m := range e.section(m) {
		switch m.name {
		case "timeouts":
			e.readTimeouts(m)
		case "tools":
			e.readTools(m)
		case "inherit_env":
			e.readInherited(m)
		case "skip":
			e.readSkip(m)
		case "session":
			switch s := e.text(m); s {
			case events.SessionShared, events.SessionPerClient:
				e.settings.Session = s
			default:
				e.fault(m.at, `"session" must be "shared" or "per_client"`)
			}
		case "era":
			switch s := e.text(m); s {
			case EraLegacy, EraModern:
				e.era = s
			default:
				e.fault(m.at, `"era" must be "legacy" (initialize) or "modern" (server/discover)`)
			}
		case "max_result":
			e.settings.MaxResult = e.positive(m)
		case "record_calls":
			e.settings.RecordCalls = e.truth(m)
		default:
			e.unknownSetting(m)
		}
	}
}

// section returns the members of an object of settings, without those that are null.
func (e *entry) section(m member) []member {
	return slices.DeleteFunc(e.object(m.value, fmt.Sprintf("%q", m.name)), func(m member) bool {
		return m.value.Value.Kind() == 'n'
	})
}

func (e *entry) unknownSetting(m member) {
	e.warn(m.at, fmt.Sprintf("the setting %s is not known and has no effect", quoted(m.name)))
}

func (e *entry) readTimeouts(m member) {
	for _, m := range e.section(m) {
		switch m.name {
		case "start":
			e.timeouts.Start = e.duration(m)
		case "silence":
			e.timeouts.Silence = e.duration(m)
		case "call":
			e.timeouts.Call = e.duration(m)
		case "call_total":
			e.timeouts.CallTotal = e.duration(m)
		default:
			e.unknownSetting(m)
		}
	}
}

func (e *entry) readTools(m member) {
	for _, m := range e.section(m) {
		switch m.name {
		case "allow":
			e.settings.Tools.Allow = append(e.settings.Tools.Allow, e.patterns(m)...)
		case "deny":
			e.settings.Tools.Deny = append(e.settings.Tools.Deny, e.patterns(m)...)
		default:
			e.unknownSetting(m)
		}
	}
}

func (e *entry) readSkip(m member) {
	for _, m := range e.section(m) {
		switch m.name {
		case "never":
			e.settings.Skip.Never = e.truth(m)
		case "after":
			e.settings.Skip.After = int(min(e.positive(m), 1<<20))
		case "ttl":
			for _, step := range e.list(m) {
				e.settings.Skip.TTLMS = append(e.settings.Skip.TTLMS, e.duration(step).Milliseconds())
			}
		default:
			e.unknownSetting(m)
		}
	}
}

// readInherited reads which variables of the service's own environment a server
// gets: true for all, or a list of names.
func (e *entry) readInherited(m member) {
	switch m.value.Value.Kind() {
	case 't':
		e.inheritEnv = []string{InheritAll}
	case 'f':
	case '[':
		for _, name := range e.texts(m) {
			if strings.HasPrefix(name, OwnPrefix) {
				e.warn(m.at, fmt.Sprintf("%s is a variable of this service and is not inherited", quoted(name)))
				continue
			}
			e.inheritEnv = append(e.inheritEnv, name)
		}
		slices.Sort(e.inheritEnv)
		e.inheritEnv = slices.Compact(e.inheritEnv)
	default:
		e.fault(m.value.StartOffset, `"inherit_env" must be true, false or a list of names`)
	}
}

// list returns the elements of a list, or the value itself as the only one.
func (e *entry) list(m member) []member {
	array, ok := m.value.Value.(*hujson.Array)
	if !ok {
		return []member{m}
	}
	var all []member
	for i, v := range array.Elements {
		all = append(all, member{name: fmt.Sprintf("%s[%d]", m.name, i), at: v.StartOffset, value: v})
	}
	return all
}

// patterns reads a list of globs on tool names.
func (e *entry) patterns(m member) []string {
	all := e.texts(m)
	for _, p := range all {
		if _, err := path.Match(p, ""); err != nil {
			e.fault(m.value.StartOffset, fmt.Sprintf("%q holds %s, which is no valid pattern: close its bracket", m.name, quoted(p)))
		}
	}
	return all
}

// duration reads a time span such as "90s".
func (e *entry) duration(m member) time.Duration {
	if m.value.Value.Kind() == '"' {
		d, err := time.ParseDuration(text(m.value))
		if err == nil && d >= time.Millisecond && d <= maxTimeout {
			return d
		}
	}
	e.fault(m.value.StartOffset, fmt.Sprintf(`%q must be a time span with its unit such as "90s" or "10m", from "1ms" to "24h"`, m.name))
	return 0
}

// positive reads a whole number from 1.
func (e *entry) positive(m member) int64 {
	n, err := strconv.ParseInt(text(m.value), 10, 64)
	if err != nil || n < 1 || m.value.Value.Kind() != '0' {
		e.fault(m.value.StartOffset, fmt.Sprintf("%q must be a whole number from 1", m.name))
		return 0
	}
	return n
}
