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
		return discoveringReason(v)
	case StateBlocked:
		if v.Gate != nil {
			b.WriteString(cause + ": calls are refused since " + stamp(v.Gate.Since) + ", " + strings.ReplaceAll(string(v.Gate.Kind), "_", " "))
			break
		}
		b.WriteString(cause)
	case StateFailed, StateUnreachable:
		b.WriteString(cause + counted(v))
		if v.State == StateUnreachable {
			b.WriteString("; its " + plural(len(v.Catalogue.Names), "tool") + " of " + stamp(v.Catalogue.AsOf) + " stay offered")
		}
	case StateSkipped:
		b.WriteString(skipReason(v.Skip))
	}
	switch {
	case v.State == StateBlocked:
	case v.UnderWay && v.State != StateSkipped:
		b.WriteString(", an attempt is under way")
	case !v.NextAttempt.IsZero():
		b.WriteString(", next attempt at " + stamp(v.NextAttempt))
	}
	if v.Pinned() && v.State != StateSkipped {
		b.WriteString("; besides it is set aside by an operator" + noted(v.Skip))
	}
	return b.String()
}

func discoveringReason(v Server) string {
	switch {
	case v.Over != nil:
		return "Its values changed, and no attempt has ended with the new ones yet"
	case v.UnderWay:
		return "Its first attempt is under way"
	}
	return "No attempt has ended yet"
}

// counted says what is counted of a server that failed and is not skipped: the
// failures that were like the last, or those of the skip that is over.
func counted(v Server) string {
	switch {
	case v.Cause == nil:
		return ""
	case v.Over != nil && v.Over.Cause.Signature == v.Cause.Signature:
		return ": " + skipCount(v.Over) + "; the skip is over, and a probe that fails renews it"
	case v.Over != nil:
		return "; its skip is over, and a probe that fails renews it"
	case v.Streak != nil && v.Streak.Count > 1 && v.Streak.Signature == v.Cause.Signature:
		return ": " + plural(v.Streak.Count, "identical failure") + " since " + stamp(v.Streak.FirstAt)
	}
	return ""
}

func skipReason(s *Skip) string {
	if s.Reason != SkipPinned {
		return s.Cause.Text + ": " + skipCount(s)
	}
	return "Set aside by an operator" + noted(s)
}

// noted returns what the operator said when pinning, after a colon.
func noted(pin *Skip) string {
	if pin.Note == "" {
		return ""
	}
	return ": " + pin.Note
}

// skipCount says which failures a skip rests on.
func skipCount(s *Skip) string {
	switch {
	case s.Reason == SkipAnyFailures:
		return "the last of " + plural(s.Failures, "failure") + " without a success"
	case s.Mixed:
		return "the last of " + plural(s.Failures, "failure") + " since " + stamp(s.FirstAt)
	case s.Failures == 1:
		return "failed at " + stamp(s.FirstAt)
	}
	return plural(s.Failures, "identical failure") + " since " + stamp(s.FirstAt)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
