package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpledger/events"
)

// frequentTypes is the last number of a type that events_rare leaves out.
const frequentTypes = 16

// filter is conditions on the columns of events.
type filter struct {
	bare    bool   // the columns of a bare read are enough
	index   string // " INDEXED BY " and a name, if SQLite has to be told
	indexed bool   // rows that do not match are not looked at
	where   string // each condition after " AND "
	args    []any
}

// newFilter returns the filter of a query; possible is whether any event can match.
func (l *Log) newFilter(ctx context.Context, q events.Query) (f filter, possible bool, err error) {
	f.bare = q.Bare
	without, err := l.numbers(ctx, texts(q.Without))
	if err != nil {
		return f, false, err
	}
	f.isNoneOf("type", without)
	rare := false
	for _, c := range []struct {
		column string
		names  []string
	}{
		{"subject", optional(string(q.Subject))}, {"source", optional(q.Source)},
		{"config_key", optional(string(q.ConfigKey))}, {"type", texts(q.Types)},
	} {
		if len(c.names) == 0 {
			continue
		}
		ids, err := l.numbers(ctx, c.names)
		if err != nil {
			return f, false, err
		}
		if len(ids) == 0 {
			return f, false, nil // no event has a name that no event has
		}
		f.isOneOf(c.column, ids)
		rare = c.column == "type" && slices.Min(ids) > frequentTypes
	}
	f.indexed = q.ID != "" || q.Subject != "" || q.RunID != "" || q.CallID != ""
	if rare && !f.indexed {
		f.rareTypes()
	}
	f.is("id = ?", idValue(q.ID))
	f.is("run_id = ?", idValue(q.RunID))
	f.is("attempt_id = ?", idValue(q.AttemptID))
	f.is("call_id = ?", idValue(q.CallID))
	if !q.Since.IsZero() {
		f.is("time >= ?", clampedNanoseconds(q.Since))
	}
	if !q.Until.IsZero() {
		f.is("time < ?", clampedNanoseconds(q.Until))
	}
	return f, true, nil
}

// rareTypes asks for the types that events_rare indexes, by that index.
func (f *filter) rareTypes() {
	f.index, f.indexed = " INDEXED BY events_rare", true
	f.where += fmt.Sprintf(" AND type > %d", frequentTypes)
}

// isOneOf asks for rows whose column has one of the numbers.
func (f *filter) isOneOf(column string, numbers []int64) {
	for _, n := range numbers {
		f.args = append(f.args, n)
	}
	f.where += " AND " + column + " IN (?" + strings.Repeat(", ?", len(numbers)-1) + ")"
}

// isNoneOf asks for rows whose column has none of the numbers.
func (f *filter) isNoneOf(column string, numbers []int64) {
	if len(numbers) > 0 {
		f.isOneOf(column+" NOT", numbers)
	}
}

// is asks for rows that fulfil condition; a nil value asks nothing.
func (f *filter) is(condition string, value any) {
	if value == nil {
		return
	}
	f.where += " AND " + condition
	f.args = append(f.args, value)
}

func optional(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func texts(types []events.Type) []string {
	all := make([]string, len(types))
	for i, t := range types {
		all[i] = string(t)
	}
	return all
}

func clampedNanoseconds(t time.Time) int64 {
	switch {
	case t.Before(events.EarliestTime):
		return events.EarliestTime.UnixNano()
	case t.After(events.LatestTime):
		return events.LatestTime.UnixNano()
	}
	return t.UnixNano()
}

// numbers returns the numbers of those names that have one.
func (l *Log) numbers(ctx context.Context, names []string) ([]int64, error) {
	var ids []int64
	for _, name := range names {
		id, err := l.names.number(ctx, name)
		if err != nil {
			return nil, l.readError(ctx, err)
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
