package projections

import (
	"strconv"
	"strings"
	"time"
)

// reasonOf says in one sentence why the server is in its state, cause first.
func reasonOf(v Server) string {
	var b strings.Builder
	cause := ""
	if v.Cause != nil {
		cause = v.Cause.Text
	}
	switch v.State {
	case StateDisabled:
		return "Disabled in the config"
	case StateReady:
		if v.Catalogue == nil {
			return "Answers; offers no tools"
		}
		return plural(len(v.Catalogue.Names), "tool") + ", verified " + stamp(v.VerifiedAt)
	case StateDiscovering:
		return "No attempt has ended yet"
	case StateBlocked:
		if v.Gate != nil {
			b.WriteString(cause + ": calls are refused since " + stamp(v.Gate.Since) + ", " + strings.ReplaceAll(string(v.Gate.Kind), "_", " "))
			break
		}
		b.WriteString(cause)
	case StateFailed, StateUnreachable:
		b.WriteString(cause)
		if v.Streak != nil && v.Streak.Count > 1 {
			b.WriteString(": " + plural(v.Streak.Count, "identical failure") + " since " + stamp(v.Streak.FirstAt))
		}
		if v.State == StateUnreachable {
			b.WriteString("; its " + plural(len(v.Catalogue.Names), "tool") + " of " + stamp(v.Catalogue.AsOf) + " stay offered")
		}
	case StateSkipped:
		b.WriteString(skipReason(v.Skip))
	}
	if !v.NextAttempt.IsZero() && v.State != StateBlocked {
		b.WriteString(", next attempt at " + stamp(v.NextAttempt))
	}
	return b.String()
}

func skipReason(s *Skip) string {
	switch s.Reason {
	case SkipPinned:
		if s.Note == "" {
			return "Set aside by an operator"
		}
		return "Set aside by an operator: " + s.Note
	case SkipAnyFailures:
		return s.Cause.Text + ": the last of " + plural(s.Failures, "failure") + " without a success"
	case SkipAuth, SkipIdenticalFailures:
	}
	if s.Failures == 1 {
		return s.Cause.Text + ": failed at " + stamp(s.FirstAt)
	}
	return s.Cause.Text + ": " + plural(s.Failures, "identical failure") + " since " + stamp(s.FirstAt)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
