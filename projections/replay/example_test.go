package replay_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mcpledger/events"
	"mcpledger/events/eventstest"
	"mcpledger/projections/replay"
	"mcpledger/projections/rules"
)

// What would have happened, had the first failure of a kind been enough for a skip?
func ExampleRun() {
	ctx := context.Background()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	log := eventstest.NewLog(func() time.Time { return now })
	add := func(e events.Event) {
		if _, err := log.Append(ctx, []events.Event{e}); err != nil {
			fmt.Println(err)
		}
	}
	const key = "k1_aaaaaaaaaaaaaaaa.vvvvvvvvvvvvvvvv"
	for _, outcome := range []events.Data{dies, dies, works} {
		started := eventstest.At(now).Started("weather", key, events.TriggerRetry)
		add(started)
		now = now.Add(10 * time.Second)
		ended := eventstest.At(now).Event("weather", key, outcome)
		ended.RunID, ended.AttemptID = started.RunID, started.AttemptID
		add(ended)
		now = now.Add(5 * time.Minute)
	}
	text := strings.NewReplacer(
		"name: default", "name: hasty",
		"deterministic: {after: 3,", "deterministic: {after: 1,",
	).Replace(rules.Default().Text())
	hasty, err := rules.Parse("hasty", []byte(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := replay.Run(ctx, log, rules.Default(), hasty, replay.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Verdict)
	fmt.Println("attempts avoided:", report.Totals.AttemptsAvoided)
	fmt.Println("recoveries delayed:", report.Totals.RecoveriesDelayed)
	// Output:
	// worse
	// attempts avoided: 2
	// recoveries delayed: 1
}
