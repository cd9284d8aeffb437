package events_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mcpledger/events"
)

func TestHappenedAtIsNeverAheadOfTheRecord(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name           string
		time, recorded time.Time
		want           time.Time
	}{
		{"seen, then recorded", noon, noon.Add(time.Second), noon},
		{"a reporter's clock runs ahead", noon.Add(time.Minute), noon, noon},
		{"not recorded yet", noon, time.Time{}, noon},
	} {
		if got := (events.Event{Time: c.time, RecordedAt: c.recorded}).HappenedAt(); !got.Equal(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTheEntryOfAConfigKeyIsWhatComesBeforeItsValues(t *testing.T) {
	for key, want := range map[events.ConfigKey]string{"k1_entry.values": "k1_entry", "x_default": "x_default", "": ""} {
		if got := key.Entry(); got != want {
			t.Errorf("entry of %q is %q, want %q", key, got, want)
		}
	}
}

func TestReceiptLastIsTheLargestPlace(t *testing.T) {
	if got := (events.Receipt{Sequences: []events.Sequence{5, 9, 2}}).Last(); got != 9 {
		t.Errorf("got %d, want 9", got)
	}
	if got := (events.Receipt{}).Last(); got != 0 {
		t.Errorf("of nothing: got %d, want 0", got)
	}
}

func TestValidateTakesTheLongestIDAndNoLongerOne(t *testing.T) {
	e := example(t, events.TypeDiscoveryFailed)
	e.ID = strings.Repeat("x", events.MaxIDBytes)
	if err := events.Validate(e); err != nil {
		t.Errorf("an id of %d bytes: %v", len(e.ID), err)
	}
	e.ID += "x"
	err := events.Validate(e)
	if !errors.Is(err, events.ErrInvalid) || !strings.Contains(err.Error(), "129 bytes") {
		t.Errorf("an id of %d bytes: got %v, want ErrInvalid that says so", len(e.ID), err)
	}
}
