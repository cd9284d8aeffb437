package main

import (
	"fmt"
	"strconv"

	"mcpledger/projections/replay"
)

// printReplays prints one report in full, several a line each; given is what the person
// called the candidate of each.
func (p *program) printReplays(given []string, reports []replay.Report) error {
	if len(reports) == 1 {
		return p.printReplay(reports[0])
	}
	if p.json {
		return p.printJSON(reports)
	}
	fmt.Fprintf(p.stdout, "Beside %s, over %s\n\n", setInWords(reports[0].Baseline), eventsInWords(reports[0]))
	t := newTable(p.stdout, "SET", "RECLASSIFIED", "ATTEMPTS AVOIDED", "TIME", "RECOVERIES DELAYED", "DELAY", "GOOD CALLS REFUSED", "UNKNOWN", "VERDICT")
	times := map[string]int{}
	for _, r := range reports {
		times[r.Candidate.Name]++
	}
	for i, r := range reports {
		name, sum := r.Candidate.Name, r.Totals
		if times[name] > 1 && given[i] != name {
			name = fmt.Sprintf("%s (%s)", name, given[i])
		}
		t.row(name, number(sum.Reclassified), number(sum.AttemptsAvoided), spanDifference(sum.TimeAvoidedMS),
			number(sum.RecoveriesDelayed), spanDifference(sum.DelayMS), number(sum.GoodCallsRefused), number(sum.AttemptsUnknown), string(r.Verdict))
	}
	return t.flush()
}

// spanDifference writes a difference of time for a table: "+4m30s", "-1s", "-" for none.
func spanDifference(ms int64) string {
	switch {
	case ms == 0:
		return "-"
	case ms < 0:
		return "-" + milliseconds(-ms)
	}
	return "+" + milliseconds(ms)
}

// printReplay prints where two rule sets part: what they judge differently, how servers
// would stand, what it would have come to, and the verdict.
func (p *program) printReplay(r replay.Report) error {
	if p.json {
		return p.printJSON(r)
	}
	w := p.stdout
	fmt.Fprintf(w, "%s against %s, over %s\n", setInWords(r.Candidate), setInWords(r.Baseline), eventsInWords(r))
	if len(r.Kinds) > 0 {
		fmt.Fprintln(w)
		t := newTable(w, "TIMES", "SERVER", "WAS", "SIGNATURE", "NOW", "SIGNATURE")
		for _, k := range r.Kinds {
			t.row(strconv.FormatInt(k.Times, 10), string(k.Server), string(k.Was.Class), k.Was.Signature, string(k.Now.Class), k.Now.Signature)
		}
		if err := t.flush(); err != nil {
			return err
		}
		if r.KindsOmitted > 0 {
			fmt.Fprintf(w, "and %s of further kinds\n", count(int(r.KindsOmitted), "failure"))
		}
	}
	if len(r.Servers) > 0 {
		fmt.Fprintln(w)
		t := newTable(w, "SERVER", "WAS", "NOW", "ATTEMPTS AVOIDED", "RECOVERIES DELAYED", "GOOD CALLS REFUSED", "UNKNOWN")
		for _, s := range r.Servers {
			t.row(string(s.Server), string(s.Was), string(s.Now), number(s.AttemptsAvoided), number(s.RecoveriesDelayed),
				number(s.GoodCallsRefused), number(s.AttemptsUnknown))
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	sum := r.Totals
	fmt.Fprintf(w, "\n%d of %s judged differently. Beside %s it has\n", sum.Reclassified, count(int(sum.Failures), "failure"), r.Baseline.Name)
	for _, line := range []struct {
		what   string
		n      int64
		tookMS int64
	}{
		{"attempts avoided", sum.AttemptsAvoided, sum.TimeAvoidedMS},
		{"recoveries delayed", sum.RecoveriesDelayed, sum.DelayMS},
		{"good calls refused", sum.GoodCallsRefused, 0},
		{"attempts whose outcome nobody knows", sum.AttemptsUnknown, 0},
	} {
		fmt.Fprintf(w, "  %s\n", beside(line.what, line.n, line.tookMS))
	}
	_, err := fmt.Fprintf(w, "\n%s\n", verdicts[r.Verdict])
	return err
}

// verdicts say what a replay comes to.
var verdicts = map[replay.Outcome]string{
	replay.Same:    "Same: the log would look no different.",
	replay.Changed: "Changed: something differs, and no recovery is noticed later and no good call refused.",
	replay.Worse:   "Worse: recoveries would be noticed later, or good calls refused.",
}

func setInWords(s replay.Set) string { return fmt.Sprintf("%s (%.12s)", s.Name, s.Hash) }

// eventsInWords says over what a replay went.
func eventsInWords(r replay.Report) string {
	words := count(int(r.Events), "event")
	if r.EventsCounted != r.Events {
		words += fmt.Sprintf(", %d of them counted", r.EventsCounted)
	}
	if r.EventsPassedOver > 0 {
		words += fmt.Sprintf(", %d passed over, of types that this version does not know", r.EventsPassedOver)
	}
	return words
}

// number writes a difference for a table: "+2", "-1", "-" for none.
func number(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%+d", n)
}

// beside says how much more or less there is of something, and the time that goes with
// it, if any: "2 more attempts avoided (4m30s)".
func beside(what string, n, ms int64) string {
	words := "as many " + what
	switch {
	case n > 0:
		words = fmt.Sprintf("%d more %s", n, what)
	case n < 0:
		words = fmt.Sprintf("%d fewer %s", -n, what)
	}
	if ms < 0 {
		ms = -ms
	}
	if ms > 0 {
		words += " (" + milliseconds(ms) + ")"
	}
	return words
}
