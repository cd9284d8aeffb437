package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

func (p *program) whyCommand() *cobra.Command {
	var source, key string
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Explain why a server is as it is, down to the events",
		Long: "Explain why a server is as it is, down to the events. One that no config has and only hosts\n" +
			"with an MCP client of their own report is explained by the reports of the host that told of\n" +
			"it last; --source and --config-key choose others.",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: p.completeServers(1),
	}
	cmd.Flags().StringVar(&source, "source", "", "explain what this `host` reported, also of a server in the config")
	cmd.Flags().StringVar(&key, "config-key", "", "of the host's connections the one with this `key`, instead of the last it told of")
	query := p.moment(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q := query()
		set(q, "source", source)
		set(q, "config_key", key)
		explain := func(why api.Explanation) error { return p.explain(why, q.Has("at")) }
		return printOne(p, cmd, "/api/servers/"+url.PathEscape(args[0])+"/why", q, explain)
	}
	return cmd
}

// explain prints the summary, the rule, the events it rests on, what the last failure
// left behind and what would change it, in this order. A past moment is told as past.
func (p *program) explain(why api.Explanation, past bool) error {
	w := p.stdout
	stands, changes := "is "+string(why.State), "What changes it"
	if past {
		stands, changes = fmt.Sprintf("was %s at %s", why.State, stamp(why.AsOf.Time())), "What would have changed it"
	}
	fmt.Fprintf(w, "%s %s%s\n", oneLine(string(why.Server)), stands, reportedBy(why.ReportedBy))
	fmt.Fprintf(w, "  %s\n", oneLine(why.Summary))
	if r := why.Rule; r != nil {
		judged := fmt.Sprintf("Rule %s of set %s: %s, %s", r.Id, r.Set, r.Class, r.Disposition)
		if why.Decision != projections.DecideBlocked { // else no run is made that could count
			judged += "; " + policiesInWords(*r)
		}
		fmt.Fprintf(w, "\n%s\n", judged)
		if r.Hint != "" {
			fmt.Fprintf(w, "  %s\n", oneLine(r.Hint))
		}
		if r.Reference != "" {
			fmt.Fprintf(w, "  see %s\n", r.Reference)
		}
	}
	if len(why.Chain) > 0 {
		fmt.Fprintln(w, "\nIt rests on")
		t := newTable(w, "  EVENT", "TIME", "TYPE", "COUNTS", "NOTE")
		for _, l := range why.Chain {
			t.row(fmt.Sprintf("  #%d", l.Sequence), stamp(l.Time.Time()), string(l.Type), strings.ReplaceAll(string(l.Role), "_", " "), l.Note)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	if err := printLastEvidence(w, why.Chain); err != nil {
		return err
	}
	if len(why.ClearsOn) > 0 {
		fmt.Fprintf(w, "\n%s\n", changes)
		for _, c := range why.ClearsOn {
			fmt.Fprintf(w, "  %s\n", oneLine(clearingInWords(why, c, p.aim)))
		}
	}
	return nil
}

// reportedBy says whose word a state is, if it is not the service's own.
func reportedBy(host string) string {
	if host == "" {
		return ""
	}
	return ", as " + oneLine(host) + " reports it"
}

// evidenceLines is how many of the last lines of a failure's text are shown.
const evidenceLines = 8

// printLastEvidence prints what the last failure of a chain left behind: the end of
// what the program wrote, else of what came back.
func printLastEvidence(w io.Writer, chain []api.ChainLink) error {
	for _, l := range slices.Backward(chain) {
		if len(l.Evidence) == 0 {
			continue
		}
		var ev events.Evidence
		if err := json.Unmarshal(l.Evidence, &ev); err != nil {
			return fmt.Errorf("read the evidence of event %s: %w", l.EventId, err)
		}
		text := strings.TrimSpace(cmp.Or(ev.StderrTail, ev.BodyExcerpt, ev.JSONRPCMessage, ev.Error))
		lines := strings.Split(text, "\n")
		fmt.Fprintf(w, "\nThe last failure, #%d, left\n", l.Sequence)
		for _, line := range lines[max(0, len(lines)-evidenceLines):] {
			fmt.Fprintf(w, "  | %s\n", oneLine(line))
		}
		return nil
	}
	return nil
}

// clearingInWords says what would change how a server stands. The requests of the HTTP
// contract that do it are commands here.
func clearingInWords(why api.Explanation, c api.Clearing, aim string) string {
	server := string(why.Server)
	path := "/api/servers/" + url.PathEscape(server)
	words := strings.ReplaceAll(string(c.What), "_", " ")
	if c.At != nil {
		words += " at " + stamp(c.At.Time())
	}
	switch c.Detail {
	case "":
	case "POST " + path + "/discover":
		words += ": " + lineAbout("discover", server, aim)
	case "DELETE " + path + "/skip":
		words += ": " + lineAbout("unpin", server, aim)
	default:
		words += ": " + c.Detail
	}
	return words
}

// policiesInWords says when a rule's failures make a skip: "skips after 3 runs for 1h,
// 4h, then 24h", and where the rule makes none of its own what a mix of failures makes.
func policiesInWords(r api.ExplainedRule) string {
	switch {
	case r.Disposition == rules.DispositionIgnore:
		return "never counts"
	case r.Policy.After > 0:
		return "skips after " + policyInWords(r.Policy)
	case r.AnyFailures.After > 0:
		return "skips when nothing succeeds in " + policyInWords(r.AnyFailures)
	}
	return "never skips"
}

// policyInWords says how many runs make a skip, and of what length: "3 runs for 1h, 4h,
// then 24h".
func policyInWords(policy api.SkipPolicy) string {
	words := count(policy.After, "run")
	if policy.MinSpanMs > 0 {
		words += " over at least " + shortDuration(policy.MinSpanMs)
	}
	for i, ms := range policy.TtlMs {
		switch {
		case i == 0:
			words += " for "
		case i == len(policy.TtlMs)-1:
			words += ", then "
		default:
			words += ", "
		}
		words += shortDuration(ms)
	}
	return words
}

// shortDuration writes a duration without the zeros: "1h", "90s", "2m30s".
func shortDuration(ms int64) string {
	s := (time.Duration(ms) * time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
