package gateway

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// defaultHistory is how much a history tells where no limit is given.
const defaultHistory = 20

// ownEvent is a recorded fact, in our words.
type ownEvent struct {
	Sequence      events.Sequence `json:"sequence"`
	Time          *time.Time      `json:"time"`
	Type          events.Type     `json:"type"`
	Class         rules.Class     `json:"class,omitempty"`
	UntrustedText string          `json:"untrusted_text,omitempty"`
}

func (g *Gateway) ownHistory(ctx context.Context, x *exchange, args ownArguments) (any, error) {
	if _, err := g.explained(x, args); err != nil {
		return nil, err
	}
	set := g.engine.Rules()
	shown := []ownEvent{}
	for e, err := range g.log.Read(ctx, events.Query{Subject: args.Server, Desc: true, Limit: cmp.Or(args.Limit, defaultHistory)}) {
		if err != nil {
			return nil, err
		}
		one := ownEvent{Sequence: e.Sequence, Time: timeOrNil(e.Time), Type: e.Type}
		if ev := e.Evidence(); ev != nil {
			verdict := set.Classify(*ev)
			one.Class, one.UntrustedText = verdict.Class, untrusted(verdict.Text)
		}
		shown = append(shown, one)
	}
	slices.Reverse(shown)
	return map[string]any{"server": args.Server, "events": shown}, nil
}
