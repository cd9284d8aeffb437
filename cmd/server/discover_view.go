package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// discoverView tells how attempts go, as they go: a line for each that ends and, where
// nobody watches a terminal, for each that begins. On a terminal a last line says what
// is under way, and is drawn anew as time goes by.
type discoverView struct {
	w     io.Writer
	width int // of the terminal, in characters; 0 where nobody watches one
	now   func() time.Time

	began    time.Time
	planned  int                                       // servers
	outcomes map[events.ServerName]projections.Outcome // of the last attempt, until another begins
	underWay []events.ServerName
	drawn    int // characters of the last line
}

func (p *program) newDiscoverView(planned int) *discoverView {
	return &discoverView{
		w: p.stdout, width: terminalWidth(p.stdout), now: p.now, began: p.now(), planned: planned,
		outcomes: map[events.ServerName]projections.Outcome{},
	}
}

// take shows an event of an attempt; others say nothing.
func (v *discoverView) take(e api.Event) {
	data, err := events.DecodeData(e.Type, e.Data)
	if err != nil {
		return
	}
	switch d := data.(type) {
	case events.DiscoveryStarted:
		what := "started"
		if d.Attempt > 1 {
			what = fmt.Sprintf("started again, attempt %d", d.Attempt)
		}
		v.begin(e.Subject, what)
	case events.DiscoverySucceeded:
		v.settle(e.Subject, projections.OutcomeSucceeded, fmt.Sprintf("succeeded in %s, %s", milliseconds(d.ElapsedMS), count(d.ToolCount, "tool")))
	case events.DiscoveryFailed:
		v.settle(e.Subject, projections.OutcomeFailed, fmt.Sprintf("failed in %s, %s", milliseconds(d.Evidence.ElapsedMS), whatOf(e)))
	case events.DiscoveryCancelled:
		v.settle(e.Subject, projections.OutcomeCancelled, fmt.Sprintf("cancelled after %s, %s", milliseconds(d.ElapsedMS), d.Reason))
	}
	v.draw()
}

// begin notes that a server is attempted from now on, or was before anybody looked.
func (v *discoverView) begin(server events.ServerName, what string) {
	delete(v.outcomes, server)
	if !slices.Contains(v.underWay, server) {
		v.underWay = append(v.underWay, server)
	}
	if v.width == 0 {
		v.line(server, what)
	}
}

func (v *discoverView) settle(server events.ServerName, outcome projections.Outcome, what string) {
	v.outcomes[server] = outcome
	v.underWay = slices.DeleteFunc(v.underWay, func(n events.ServerName) bool { return n == server })
	v.line(server, what)
}

// sum prints how it all ended. A server without an outcome was given up before its
// attempt began.
func (v *discoverView) sum() {
	v.clear()
	succeeded, failed := 0, 0
	for _, o := range v.outcomes {
		switch o {
		case projections.OutcomeSucceeded:
			succeeded++
		case projections.OutcomeFailed:
			failed++
		case projections.OutcomeCancelled, projections.OutcomeAbandoned, projections.OutcomeSkipped, projections.OutcomeRefused:
		}
	}
	fmt.Fprintf(v.w, "%d succeeded, %d failed, %d cancelled in %s\n",
		succeeded, failed, v.planned-succeeded-failed, milliseconds(v.now().Sub(v.began).Milliseconds()))
}

// line prints a line that stays.
func (v *discoverView) line(server events.ServerName, what string) {
	v.clear()
	fmt.Fprintf(v.w, "%s  %s\n", oneLine(string(server)), oneLine(what))
}

// draw shows on a terminal what is under way.
func (v *discoverView) draw() {
	if v.width == 0 {
		return
	}
	v.clear()
	if len(v.underWay) == 0 {
		return
	}
	line := milliseconds(v.now().Sub(v.began).Milliseconds()) + "  "
	if v.planned > 1 {
		line += fmt.Sprintf("%d of %d done, ", len(v.outcomes), v.planned)
	}
	line += "under way: " + oneLine(strings.Join(texts(v.underWay), ", "))
	// A line that the terminal wraps cannot be taken away.
	if cut := []rune(line); len(cut) >= v.width {
		line = string(cut[:max(0, v.width-2)]) + "…"
	}
	v.drawn = len([]rune(line))
	fmt.Fprint(v.w, line)
}

// clear takes the last line away.
func (v *discoverView) clear() {
	if v.drawn > 0 {
		fmt.Fprintf(v.w, "\r%s\r", strings.Repeat(" ", v.drawn))
		v.drawn = 0
	}
}

func texts(names []events.ServerName) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = string(n)
	}
	return all
}
