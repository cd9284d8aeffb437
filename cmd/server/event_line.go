package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi/api"
)

// printEvents prints events one a line, in the order they come, or that there are none.
func (p *program) printEvents(happened []api.Event) error {
	if len(happened) == 0 {
		fmt.Fprintln(p.stdout, "No such events.")
		return nil
	}
	t := newTable(p.stdout, "EVENT", "TIME", "SERVER", "TYPE", "WHAT")
	for _, e := range happened {
		t.row(eventCells(e)...)
	}
	return t.flush()
}

func eventCells(e api.Event) []string {
	return []string{fmt.Sprintf("#%d", e.Sequence), stamp(e.Time.Time()), dash(string(e.Subject)), string(e.Type), whatOf(e)}
}

// whatOf says in a few words what an event records; of a failure the class that the rules
// give it, and the text they go by, which is not always what a program wrote last.
func whatOf(e api.Event) string {
	data, err := events.DecodeData(e.Type, e.Data)
	if err != nil {
		return ""
	}
	if e.Classification == nil {
		return brief(inWords(data))
	}
	words := []string{string(e.Classification.Class)}
	switch d := data.(type) {
	case events.DiscoveryFailed:
		words = append(words, e.Classification.Text)
	case events.ToolCallFailed:
		words = append(words, d.Tool, e.Classification.Text)
	default:
		words = append(words, inWords(data))
	}
	return brief(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ": "))
}

// briefLength is how many characters of a cause are shown where a line has to do;
// --json and why show all of it.
const briefLength = 200

// brief makes one short line of a text.
func brief(s string) string {
	line := []rune(strings.Join(strings.Fields(s), " "))
	if len(line) > briefLength {
		return strings.TrimSpace(string(line[:briefLength-1])) + "…"
	}
	return string(line)
}

// inWords says what an event records, but for failures, of which whatOf tells.
func inWords(d events.Data) string {
	switch d := d.(type) {
	case events.ServiceStarted:
		return fmt.Sprintf("version %s, process %d", d.Version, d.PID)
	case events.ServiceStopped:
		return d.Reason
	case events.ConfigLoaded:
		return count(d.Servers, "server") + " from " + strings.Join(d.Files, ", ")
	case events.ConfigRejected:
		return fmt.Sprintf("%s:%d:%d: %s", d.File, d.Line, d.Column, d.Detail)
	case events.ServerConfigured:
		if d.Problem != nil {
			return string(d.Change) + ": " + d.Problem.Detail
		}
		return string(d.Change)
	case events.DiscoveryRunStarted:
		return known(string(d.Trigger), count(len(d.Servers), "server"))
	case events.DiscoveryRunCompleted:
		return fmt.Sprintf("%d succeeded, %d failed, %d cancelled in %s", d.Succeeded, d.Failed, d.Cancelled, milliseconds(d.ElapsedMS))
	case events.DiscoveryStarted:
		attempt := ""
		if d.Attempt > 0 { // hosts may report none
			attempt = fmt.Sprintf("attempt %d", d.Attempt)
		}
		return known(string(d.Trigger), attempt)
	case events.DiscoverySucceeded:
		protocol := ""
		if d.ProtocolVersion != "" {
			protocol = "protocol " + d.ProtocolVersion
		}
		return known(count(d.ToolCount, "tool")+" in "+milliseconds(d.ElapsedMS), protocol)
	case events.DiscoveryCancelled:
		return d.Reason
	case events.DiscoverySkipped:
		return untilInWords(strings.ReplaceAll(d.Reason, "_", " "), d.Until)
	case events.CatalogueChanged:
		return fmt.Sprintf("%d added, %d removed, %d changed", len(d.Added), len(d.Removed), len(d.Changed))
	case events.ToolCallStarted:
		return d.Tool
	case events.ToolCallSucceeded:
		return d.Tool + " in " + milliseconds(d.ElapsedMS)
	case events.ToolCallAbandoned:
		return d.Tool
	case events.ToolCallRefused:
		return d.Tool + ": " + d.Detail
	case events.SessionDiscarded:
		return d.Reason
	case events.SkipPinned:
		return untilInWords(d.Reason, d.Until)
	case events.SkipCleared:
		return d.Reason
	case events.SkipRequalified:
		return d.Reason
	case events.RulesActivated:
		return "set " + d.Set
	case events.LogImported:
		return fmt.Sprintf("#%d to #%d from %s", d.First, d.Last, d.From)
	}
	return ""
}

// known joins the parts, without those of which nothing is known.
func known(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// untilInWords adds to a reason, which may be empty, the time to which it holds, if that
// has an end.
func untilInWords(reason string, until time.Time) string {
	if until.IsZero() {
		return reason
	}
	return known(reason, "until "+stamp(until))
}
