package projections

import (
	"time"

	"mcpledger/events"
)

// Request is what a person may ask of the service about a server.
type Request string

// The requests that bring a server back.
const (
	RequestAttempt Request = "attempt" // one attempt now, whatever the skip says
	RequestUnpin   Request = "unpin"   // the end of a pin
)

// Clearing is one thing that would end what keeps a server from being used.
type Clearing struct {
	What    string    // one of the ClearsOn words
	At      time.Time // for an expiry or a check; else zero
	Request Request   // for ClearsOnManual; else empty
	Detail  string    // what else to do; empty where nothing has to be done, or Request says it
}

// Clearings returns what would bring the server back, the first to come first; empty for
// a server that is ready, or disabled and nothing else. What keeps a server away in two
// ways, as a gate and a pin do, needs something of each.
func (v Server) Clearings() []Clearing {
	if v.FromReports {
		return v.reportedClearings()
	}
	edit := Clearing{What: ClearsOnConfigChange, Detail: "edit the server's entry" + inFile(v.Entry.SourceFile)}
	manual := Clearing{What: ClearsOnManual, Request: RequestAttempt}
	var lift []Clearing
	if v.Pinned() {
		lift = []Clearing{{What: ClearsOnManual, Request: RequestUnpin}}
		if !v.Skip.Until.IsZero() {
			lift = append([]Clearing{{What: ClearsOnExpiry, At: v.Skip.Until}}, lift...)
		}
	}
	switch {
	case v.Gate != nil && v.State == StateBlocked:
		return append(lift, Clearing{What: ClearsOnCheck, At: v.NextAttempt}, edit, manual)
	case v.Entry.Problem != nil && v.Entry.Problem.Code == events.ProblemVariableUnset:
		return append(lift, Clearing{What: ClearsOnConfigChange, Detail: "supply the missing value; if it is a variable of the service, start the service anew; or " + edit.Detail})
	case v.Entry.Problem != nil:
		return append(lift, edit)
	case v.Pinned():
		return lift
	case v.Skip != nil:
		all := []Clearing{{What: ClearsOnExpiry, At: v.Skip.Until}, edit, manual}
		if v.requalifies() {
			all = append(all, Clearing{What: ClearsOnRequalify, Detail: "install or replace the program; looked at when due, at start and every 5 minutes"})
		}
		return all
	case v.State == StateFailed || v.State == StateUnreachable:
		return []Clearing{{What: ClearsOnCheck, At: v.NextAttempt}, edit, manual} // no skip is there to expire
	}
	return nil
}

// reportedClearings returns what would bring back a server that its host attempts:
// nothing that we can do.
func (v Server) reportedClearings() []Clearing {
	if v.State == StateReady || v.State == StateDiscovering {
		return nil
	}
	all := []Clearing{
		{What: ClearsOnCheck, Detail: "a discovery.succeeded that " + v.Source + " reports"},
		{What: ClearsOnConfigChange, Detail: "reports of " + v.Source + " under another config_key"},
	}
	if v.Skip != nil {
		all = append([]Clearing{{What: ClearsOnExpiry, At: v.Skip.Until}}, all...)
	}
	return all
}

func inFile(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}
