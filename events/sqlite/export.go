package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"mcpledger/events"
)

// exportFormat is the version of the lines below.
const exportFormat = 1

// exportLine is one line of an export. One member is set. The first line is Export;
// then come events in order, each content before the first event that refers to it;
// the last line is End.
type exportLine struct {
	Export  *exportHeader  `json:"export,omitempty"`
	Content *exportContent `json:"content,omitempty"`
	Event   *exportEvent   `json:"event,omitempty"`
	End     *exportTrailer `json:"end,omitempty"`
}

type exportHeader struct {
	Format int             `json:"format"`
	First  events.Sequence `json:"first"`
}

// exportContent has its body as text, or in base64 if it is not UTF-8.
type exportContent struct {
	Hash  string  `json:"hash"`
	Text  *string `json:"text,omitempty"`
	Bytes []byte  `json:"bytes,omitempty"`
}

// exportEvent has the columns of an event, in the order of the table. Data is the
// payload with long texts by hash.
type exportEvent struct {
	Sequence    int64           `json:"sequence"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Subject     string          `json:"subject,omitempty"`
	Time        time.Time       `json:"time,omitzero"`
	DataVersion int64           `json:"dataversion"`
	RecordedAt  time.Time       `json:"recorded_at"`
	ConfigKey   string          `json:"config_key,omitempty"`
	RunID       string          `json:"run_id,omitempty"`
	AttemptID   string          `json:"attempt_id,omitempty"`
	CallID      string          `json:"call_id,omitempty"`
	Actor       string          `json:"actor,omitempty"`
	TraceParent string          `json:"traceparent,omitempty"`
	Data        json.RawMessage `json:"data"`
	Hash        string          `json:"hash"`
}

type exportTrailer struct {
	Events int64  `json:"events"`
	Hash   string `json:"hash"` // of the last event
}

// Span is a stretch of a log, both ends included. A zero First is the first event,
// a zero Last the head at the moment the export begins.
type Span struct {
	First, Last events.Sequence
}

// Export writes the events of a span as lines of JSON, with the contents they refer
// to. Two exports of the same span of the same events are the same bytes, whichever
// log they come from: the imported one, or the one that was exported.
func Export(ctx context.Context, l *Log, w io.Writer, span Span) error {
	x := &exporter{log: l, span: span, out: bufio.NewWriter(w), earlier: map[digest]bool{}}
	x.enc = json.NewEncoder(x.out)
	x.enc.SetEscapeHTML(false)
	if err := x.run(ctx); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

type exporter struct {
	log     *Log
	span    Span
	out     *bufio.Writer
	enc     *json.Encoder
	earlier map[digest]bool // contents of events before the span that were written
}

func (x *exporter) run(ctx context.Context) error {
	head, err := x.log.Head(ctx)
	if err != nil {
		return err
	}
	first, last := max(x.span.First, 1), x.span.Last
	if last == 0 || last > head.Sequence {
		last = head.Sequence
	}
	if err := x.enc.Encode(exportLine{Export: &exportHeader{Format: exportFormat, First: first}}); err != nil {
		return err
	}
	p, err := x.log.newPager(ctx, events.Query{After: first - 1, Before: last + 1})
	if err != nil {
		return err
	}
	var end exportTrailer
	for p.more {
		page, err := p.next(ctx, nil)
		if err != nil {
			return err
		}
		for i := range page {
			e := &page[i]
			if err := x.event(ctx, e, int64(first)); err != nil {
				return err
			}
			end.Events++
			end.Hash = hexText(e.hash)
		}
	}
	if err := x.enc.Encode(exportLine{End: &end}); err != nil {
		return err
	}
	return x.out.Flush()
}

// event writes an event, after the contents that are first needed by it.
func (x *exporter) event(ctx context.Context, e *numbered, first int64) error {
	if err := e.spell(func(id int64) (string, error) { return x.log.names.text(ctx, id) }, nil); err != nil {
		return err
	}
	written := map[string]bool{}
	for _, ref := range events.References(e.data) {
		if written[ref] {
			continue
		}
		needed, err := x.firstNeeds(ctx, ref, e.sequence, first)
		if err != nil {
			return fmt.Errorf("event %d: %w", e.sequence, err)
		}
		if !needed {
			continue
		}
		written[ref] = true
		body, err := x.log.Content(ctx, ref)
		if err != nil {
			return fmt.Errorf("event %d: %w", e.sequence, err)
		}
		if err := x.enc.Encode(exportLine{Content: newExportContent(ref, body)}); err != nil {
			return err
		}
	}
	return x.enc.Encode(exportLine{Event: newExportEvent(&e.entry)})
}

// firstNeeds reports whether the event at sequence is the first of the span that
// refers to a content.
func (x *exporter) firstNeeds(ctx context.Context, ref string, sequence, first int64) (bool, error) {
	hash, err := parseDigest(ref)
	if err != nil {
		return false, fmt.Errorf("%w: %w", events.ErrCorrupt, err)
	}
	var since int64
	err = x.log.reads.QueryRowContext(ctx, "SELECT sequence FROM contents WHERE hash = ?", hash[:]).Scan(&since)
	if errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("content %s is missing: %w", ref, events.ErrCorrupt)
	}
	if err != nil {
		return false, x.log.readError(ctx, err)
	}
	if since >= first {
		return since == sequence, nil
	}
	if x.earlier[hash] {
		return false, nil
	}
	x.earlier[hash] = true
	return true, nil
}

func newExportContent(hash string, body []byte) *exportContent {
	c := &exportContent{Hash: hash}
	if utf8.Valid(body) {
		text := string(body)
		c.Text = &text
	} else {
		c.Bytes = body
	}
	return c
}

func (c *exportContent) body() []byte {
	if c.Text != nil {
		return []byte(*c.Text)
	}
	return c.Bytes
}

func newExportEvent(e *entry) *exportEvent {
	return &exportEvent{
		Sequence: e.sequence, ID: e.id, Source: e.source, Type: e.typ, Subject: e.subject,
		Time: timeOf(e.time), DataVersion: e.dataVersion, RecordedAt: timeOf(e.recordedAt),
		ConfigKey: e.configKey, RunID: e.runID, AttemptID: e.attemptID, CallID: e.callID,
		Actor: e.actor, TraceParent: e.traceParent, Data: json.RawMessage(e.data), Hash: hexText(e.hash),
	}
}

func (x *exportEvent) entry() entry {
	return entry{
		sequence: x.Sequence, id: x.ID, source: x.Source, typ: x.Type, subject: x.Subject,
		time: nanoseconds(x.Time), dataVersion: x.DataVersion, recordedAt: x.RecordedAt.UnixNano(),
		configKey: x.ConfigKey, runID: x.RunID, attemptID: x.AttemptID, callID: x.CallID,
		actor: x.Actor, traceParent: x.TraceParent, data: x.Data,
	}
}
