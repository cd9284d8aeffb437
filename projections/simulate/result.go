package simulate

import (
	"slices"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
)

// Result is what came of a fleet under one rule set.
type Result struct {
	Fleet   string
	Policy  string // the rule set's name
	Span    time.Duration
	Servers []ServerResult
	Events  int64 // recorded
	Bytes   int64 // of their payloads as JSON, estimated from every hundredth
}

// ServerResult is what came of one server.
type ServerResult struct {
	Name events.ServerName
	Kind Kind
	// Attempts were made in all; Wasted of them failed, and took WastedTime.
	Attempts, Wasted int
	WastedTime       time.Duration
	// Skips counts the skips that were recorded, one per skip and start.
	Skips int
	// Recoveries are how long after the end of each breakage that was met the next
	// attempt succeeded. Missed counts the ends that were not noticed before the server
	// broke again, Late the recoveries found later than the state had promised at the
	// breakage's end.
	Recoveries   []time.Duration
	Missed, Late int
	// Counted is how many failures stood against the server as it recovered, over all
	// recoveries.
	Counted int
	State   projections.ServerState // at the end
}

// sampleEvery is how many events there are to each one whose size is taken.
const sampleEvery = 100

// measure takes the size of an event now and then.
func (s *simulation) measure(e events.Event) {
	if e.Sequence%sampleEvery != 1 {
		return
	}
	if raw, err := events.EncodeData(e.Data); err == nil {
		s.size += int64(len(raw))
		s.sized++
	}
}

func (s *simulation) result() Result {
	r := Result{Fleet: s.fleet.Name, Policy: s.set.Name(), Span: s.fleet.Span, Events: int64(s.last)}
	r.Bytes = s.size * r.Events / max(s.sized, 1)
	for _, srv := range s.servers {
		if v, ok := s.state.Server(srv.Name, s.now); ok {
			srv.result.State = v.State
		}
		r.Servers = append(r.Servers, srv.result)
	}
	return r
}

// Summary is the results of the servers of one kind together.
type Summary struct {
	Kind    Kind
	Servers int
	// WastedPerDay is failed attempts per server and day.
	WastedPerDay float64
	Recoveries   int
	// Mean, P95 and Max are of how late recoveries were noticed.
	Mean, P95, Max time.Duration
	Missed         int
}

// Kinds returns the kinds of server in the result, in the order they come.
func (r Result) Kinds() []Kind {
	var kinds []Kind
	for _, s := range r.Servers {
		if !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	return kinds
}

// Of returns the summary of one kind.
func (r Result) Of(kind Kind) Summary {
	sum := Summary{Kind: kind}
	var late []time.Duration
	wasted := 0
	for _, s := range r.Servers {
		if s.Kind != kind {
			continue
		}
		sum.Servers++
		sum.Missed += s.Missed
		wasted += s.Wasted
		late = append(late, s.Recoveries...)
	}
	days := r.Span.Hours() / 24 * float64(max(sum.Servers, 1))
	sum.WastedPerDay = float64(wasted) / days
	if sum.Recoveries = len(late); sum.Recoveries == 0 {
		return sum
	}
	slices.Sort(late)
	var total time.Duration
	for _, d := range late {
		total += d
	}
	sum.Mean = total / time.Duration(len(late))
	sum.P95 = late[(len(late)*95+99)/100-1]
	sum.Max = late[len(late)-1]
	return sum
}
