package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// Options limit what a report tells. They never limit what is folded.
type Options struct {
	// Since, inclusive, and Until, exclusive, bound the time of what is counted and
	// listed. Zero: no bound.
	Since, Until time.Time
	// Servers are the only ones counted and listed. Empty: all.
	Servers []events.ServerName
	// All lists the rows in which the sides agree, too.
	All bool
	// Progress is told, now and then and in order, how far the replay is.
	Progress func(done, total events.Sequence)
	// Now is the clock by which the replay's duration is taken. Nil: it is 0.
	Now func() time.Time

	piece int // events that are folded at a time; 0 for pieceEvents
}

// ErrUnknownServer reports a server in Options that no event is about: a misspelt name
// would make every candidate the same.
var ErrUnknownServer = errors.New("no event is about this server")

// ErrEmptySpan reports that Since in Options is not before Until: nothing would be
// counted, so that every candidate would be the same.
var ErrEmptySpan = errors.New("the span is empty")

// Run puts the baseline and the candidate through the log as it is now and reports
// where they part. It reads the log in pieces, so that its memory does not grow with
// the log but for the states themselves. It returns ctx's error when ctx ends,
// ErrUnknownServer, ErrEmptySpan, or errors of reading.
func Run(ctx context.Context, log events.Log, baseline, candidate *rules.Set, opts Options) (Report, error) {
	now := opts.Now
	if now == nil {
		now = func() time.Time { return time.Time{} }
	}
	began := now()
	head, err := log.Head(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("replay: %w", err)
	}
	if err := opts.Check(ctx, log); err != nil {
		return Report{}, err
	}
	base, other := newSide(baseline, opts.counted), newSide(candidate, opts.counted)
	tally := newTally(opts)
	for piece, err := range pieces(ctx, log, head.Sequence, cmp.Or(opts.piece, pieceEvents)) {
		if err != nil {
			return Report{}, fmt.Errorf("replay: %w", err)
		}
		was, is := fold(base, other, piece)
		tally.compare(piece, was, is)
		if opts.Progress != nil {
			opts.Progress(piece[len(piece)-1].Sequence, head.Sequence)
		}
	}
	base.finish()
	other.finish()
	report := tally.report(base, other)
	report.DurationMS = now().Sub(began).Milliseconds()
	return report, nil
}

// Check returns ErrEmptySpan or ErrUnknownServer for options under which nothing of a log
// would be counted, or errors of reading it.
func (o *Options) Check(ctx context.Context, log events.Log) error {
	if !o.Until.IsZero() && !o.Since.Before(o.Until) {
		return fmt.Errorf("%w, from %s until %s", ErrEmptySpan, o.Since.Format(time.RFC3339), o.Until.Format(time.RFC3339))
	}
	for _, name := range o.Servers {
		if err := mentioned(ctx, log, name); err != nil {
			return fmt.Errorf("server %q: %w", name, err)
		}
	}
	return nil
}

// pieceEvents is how many events are folded at a time.
const pieceEvents = 512

// pieces yields the log up to and including a place, n events at a time. The next are
// read and decoded while some are folded.
func pieces(ctx context.Context, log events.Log, upTo events.Sequence, n int) iter.Seq2[[]events.Event, error] {
	return events.Ahead(ctx, log, events.Query{Before: upTo + 1, Bare: true}, n)
}

// mentioned returns ErrUnknownServer if the log has no event about a server.
func mentioned(ctx context.Context, log events.Log, name events.ServerName) error {
	for _, err := range log.Read(ctx, events.Query{Subject: name, Limit: 1}) {
		return err
	}
	return ErrUnknownServer
}

// fold puts both sides through a piece, at the same time. Both judge the same failures.
func fold(base, other *side, piece []events.Event) (was, is []judged) {
	var both sync.WaitGroup
	both.Go(func() { was = base.fold(piece) })
	is = other.fold(piece)
	both.Wait()
	return was, is
}

// counted reports whether what happened to a server at a time is counted.
func (o *Options) counted(at time.Time, server events.ServerName) bool {
	return !at.Before(o.Since) && (o.Until.IsZero() || at.Before(o.Until)) && o.wants(server)
}

func (o *Options) wants(server events.ServerName) bool {
	return len(o.Servers) == 0 || slices.Contains(o.Servers, server)
}
