package events

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// The first and last moment a log can hold, to the nanosecond.
var (
	EarliestTime = time.Unix(0, math.MinInt64+1).UTC() // in 1677
	LatestTime   = time.Unix(0, math.MaxInt64).UTC()   // in 2262
)

// Validate returns ErrInvalid for an event that no log takes: without id, source,
// type or payload, with a payload of another type, with an id, source, type,
// subject or config key longer than MaxIDBytes, with a text in its envelope that is
// not UTF-8, or with a time past EarliestTime or LatestTime. The zero time is
// allowed.
func Validate(e Event) error {
	for _, f := range []struct {
		name, text string
		required   bool
	}{
		{"id", e.ID, true},
		{"source", e.Source, true},
		{"type", string(e.Type), true},
		{"subject", string(e.Subject), false},
		{"config key", string(e.ConfigKey), false},
	} {
		if f.required && f.text == "" {
			return fmt.Errorf("%w: %q has no %s", ErrInvalid, e.ID, f.name)
		}
		if len(f.text) > MaxIDBytes {
			return fmt.Errorf("%w: the %s of %.32q has %d bytes, at most %d are allowed", ErrInvalid, f.name, e.ID, len(f.text), MaxIDBytes)
		}
	}
	for _, text := range []string{
		e.ID, e.Source, string(e.Type), string(e.Subject), string(e.ConfigKey),
		e.RunID, e.AttemptID, e.CallID, e.Actor, e.TraceParent,
	} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%w: %q has the text %q, which is not UTF-8", ErrInvalid, e.ID, text)
		}
	}
	switch {
	case e.Data == nil:
		return fmt.Errorf("%w: %q has no payload", ErrInvalid, e.ID)
	case e.Data.EventType() != e.Type:
		return fmt.Errorf("%w: %q is %s with a payload of %s", ErrInvalid, e.ID, e.Type, e.Data.EventType())
	case !e.Time.IsZero() && (e.Time.Before(EarliestTime) || e.Time.After(LatestTime)):
		return fmt.Errorf("%w: %q is from the year %d", ErrInvalid, e.ID, e.Time.Year())
	}
	return nil
}
