package projections_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/events"
	"mcpledger/projections"
)

// What is said of a failure is what was decided on it, by the rule and the settings in
// force then, whatever came after.
func TestWhyTellsWhatThePolicyDecided(t *testing.T) {
	dies := func(h *history) { h.attempt(events.TriggerRetry, diesOnImport) }
	diesOtherwise := func(h *history) { h.attempt(events.TriggerRetry, diesOnOther) }
	asked := func(h *history) { h.attempt(events.TriggerManual, diesOnOther) }
	after := func(d time.Duration) func(*history) { return func(h *history) { h.wait(d) } }
	settings := func(s events.SkipSettings) func(*history) {
		return func(h *history) {
			h.entry.Settings.Skip = s
			h.configure(events.ChangeSettings, keyA)
		}
	}
	values := func(key events.ConfigKey) func(*history) {
		return func(h *history) { h.configure(events.ChangeValues, key) }
	}
	always := func(n int, steps ...func(*history)) func(*history) {
		return func(h *history) {
			for range n {
				for _, s := range steps {
					s(h)
				}
			}
		}
	}
	const fitz, yaml = "ModuleNotFoundError: No module named 'fitz'", "ModuleNotFoundError: No module named 'yaml'"
	for _, c := range []struct {
		name  string
		steps []func(*history)
		notes []string // the last of the chain
		says  string   // what the reason must have
	}{
		{"not skipped yet", []func(*history){dies, dies}, []string{"1 of 3", "2 of 3"}, fitz + ": 2 identical failures since"},
		{"skipped", []func(*history){dies, dies, dies}, []string{"1 of 3", "2 of 3", "3 of 3"}, fitz + ": 3 identical failures since .*, next attempt at"},
		{"another failure starts a row of its own", []func(*history){dies, dies, diesOtherwise}, []string{"1 of 3", "2 of 3", "1 of 3; 3 of 20 without a success"}, "^" + yaml + ", next"},
		{"a person's failure is not what was counted", []func(*history){dies, dies, asked}, []string{"2 of 3", "not counted: a person asked for it"}, "^" + yaml + ", next"},
		{"tried while skipped", []func(*history){dies, dies, dies, dies}, []string{"3 of 3", "tried while it was skipped: the skip stays as it was"}, fitz + ": 3 identical failures"},
		{"expired", []func(*history){dies, dies, dies, after(2 * time.Hour)}, []string{"3 of 3"}, fitz + ": 3 identical failures since .*; the skip is over, and a probe that fails renews it, next attempt at"},
		{"probing", []func(*history){dies, dies, dies, after(2 * time.Hour), func(h *history) { h.attempt(events.TriggerSkipExpired) }}, []string{"3 of 3"}, "renews it, an attempt is under way$"},
		{"a person's failure after the end is no probe", []func(*history){dies, dies, dies, after(2 * time.Hour), asked}, []string{"not counted: a person asked for it"}, "^" + yaml + "; its skip is over"},
		{"probed in vain", []func(*history){dies, dies, dies, after(2 * time.Hour), dies}, []string{"3 of 3", "the probe failed: the skip is renewed"}, fitz + ": 4 identical failures since"},
		{"probed in vain, otherwise", []func(*history){dies, dies, dies, after(2 * time.Hour), diesOtherwise}, []string{"3 of 3", "the probe failed: the skip is renewed"}, yaml + ": the last of 4 failures since"},
		{"too close together", []func(*history){always(11, func(h *history) { h.attempt(events.TriggerRetry, refused) })}, []string{"9 of 10", "10 of 10, but too close together", "11, where 10 are needed, but too close together"}, "11 identical failures"},
		{"any mix", []func(*history){always(10, after(3*time.Hour), dies, diesOtherwise)}, []string{"1 of 3; 19 of 20 without a success", "20 of 20 without a success"}, yaml + ": the last of 20 failures without a success"},
		{"a server's own number", []func(*history){dies, settings(events.SkipSettings{After: 5}), dies, settings(events.SkipSettings{After: 2}), dies}, []string{"1 of 3", "2 of 5", "3, where 2 are needed"}, "3 identical failures"},
		{"cancelled", []func(*history){dies, func(h *history) { h.attempt(events.TriggerRetry, cancelled) }}, []string{"1 of 3", "not counted: cancelled (shutdown)"}, "^" + fitz + ", next"},
		{"cancelled without a reason", []func(*history){dies, func(h *history) { h.attempt(events.TriggerRetry, events.DiscoveryCancelled{}) }}, []string{"1 of 3", "not counted: cancelled"}, "^" + fitz + ", next"},
		{"never", []func(*history){settings(events.SkipSettings{Never: true}), dies}, []string{"counted; this rule never skips"}, "^" + fitz + ", next"},
		{"pinned", []func(*history){dies, dies, func(h *history) { h.about(events.SkipPinned{Reason: "moving"}) }}, []string{"1 of 3", "2 of 3", "set aside by a person"}, "^Set aside by an operator: moving$"},
		{"pinned until a time that is over", []func(*history){dies, func(h *history) { h.about(events.SkipPinned{Until: h.now.Add(time.Hour)}) }, after(2 * time.Hour)}, []string{"1 of 3", "set aside by a person"}, "^" + fitz + ", next"},
		{"cleared", []func(*history){dies, dies, dies, func(h *history) { h.about(events.SkipCleared{Reason: "mended"}) }}, []string{"cleared: mended"}, "^" + fitz + ", next"},
		{"cleared and failed again", []func(*history){dies, dies, dies, func(h *history) { h.about(events.SkipCleared{Reason: "mended"}) }, dies}, []string{"cleared: mended", "1 of 3"}, "^" + fitz + ", next"},
		{"changed values", []func(*history){dies, dies, dies, values(keyA2)}, []string{"3 of 3", "its values changed: the skip is over, and a probe is due"}, "Its values changed, and no attempt has ended"},
		{"changed values of a login", []func(*history){func(h *history) { h.attempt(events.TriggerRetry, answers401) }, values(keyA2)}, []string{"its values changed: counting starts at zero"}, "No attempt has ended yet"},
		{"changed values once too often", []func(*history){dies, dies, dies, values(keyA2), dies, values("k1_aaaaaaaaaaaaaaaa.x"), dies, values("k1_aaaaaaaaaaaaaaaa.y"), dies, values("k1_aaaaaaaaaaaaaaaa.z")}, []string{"its values changed once more: the skip stays as it was"}, fitz + ": 6 identical failures"},
		{"first attempt", []func(*history){func(h *history) { h.attempt(events.TriggerStartup) }}, nil, "^Its first attempt is under way$"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory()
			for _, s := range c.steps {
				s(h)
			}
			v := h.server(t)
			var notes []string
			for _, l := range v.Chain {
				notes = append(notes, l.Note)
			}
			if diff := cmp.Diff(c.notes, notes[max(0, len(notes)-len(c.notes)):]); diff != "" {
				t.Errorf("notes (-want +got):\n%s\nwhole chain:\n%s", diff, strings.Join(notes, "\n"))
			}
			if !regexp.MustCompile(c.says).MatchString(v.Reason) {
				t.Errorf("reason %q, want one that has %q", v.Reason, c.says)
			}
		})
	}
}

// A skip for a mix of failures names all of them, the one that made it too.
func TestASkipRestsOnTheEventsThatWhyCounts(t *testing.T) {
	h := newHistory()
	for range 10 {
		h.wait(3 * time.Hour)
		h.attempt(events.TriggerRetry, diesOnImport)
		h.attempt(events.TriggerRetry, diesOnOther)
	}
	v := h.server(t)
	var counted []string
	for _, l := range v.Chain {
		if l.Role == projections.RoleCounted {
			counted = append(counted, l.EventID)
		}
	}
	if v.Skip == nil {
		t.Fatalf("it is %s: %s", v.State, v.Reason)
	}
	if diff := cmp.Diff(counted, v.Skip.EventIDs); diff != "" {
		t.Errorf("the skip rests on other events than are counted (-counted +skip):\n%s", diff)
	}
}
