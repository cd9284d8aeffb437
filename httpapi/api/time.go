package api

import (
	"fmt"
	"time"
)

// Timestamp is a moment as the contract shows it: RFC 3339 in UTC, with
// milliseconds, or nanoseconds where there are any.
type Timestamp time.Time

// The layouts of a Timestamp.
const (
	millis = `"2006-01-02T15:04:05.000Z"`
	nanos  = `"2006-01-02T15:04:05.000000000Z"`
)

// NewTimestamp returns t as a Timestamp, nil for the zero time.
func NewTimestamp(t time.Time) *Timestamp {
	if t.IsZero() {
		return nil
	}
	ts := Timestamp(t)
	return &ts
}

// Time returns the moment.
func (t Timestamp) Time() time.Time { return time.Time(t) }

// MarshalJSON returns the quoted text.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	utc := time.Time(t).UTC()
	if utc.Nanosecond()%int(time.Millisecond) == 0 {
		return []byte(utc.Format(millis)), nil
	}
	return []byte(utc.Format(nanos)), nil
}

// UnmarshalJSON reads any RFC 3339 time.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	var parsed time.Time
	if err := parsed.UnmarshalJSON(b); err != nil {
		return fmt.Errorf("decode time: %w", err)
	}
	*t = Timestamp(parsed.UTC())
	return nil
}
