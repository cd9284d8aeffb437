package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestAHostLeavesADeadServerAlone(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	var out strings.Builder
	if err := run(context.Background(), t.TempDir(), func() time.Time { return now }, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var decisions []string
	for _, line := range lines {
		decision, _, _ := strings.Cut(line, ":")
		decisions = append(decisions, decision)
	}
	if got, want := strings.Join(decisions, " "), "attempt attempt attempt skip skip"; got != want {
		t.Errorf("decided %q, want %q\n%s", got, want, out.String())
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, "weatherlib") || !strings.Contains(last, "3 identical failures") {
		t.Errorf("the skip does not say why: %s", last)
	}
}
