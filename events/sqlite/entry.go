package sqlite

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"mcpledger/events"
)

type digest = [sha256.Size]byte

// noTime stands for the zero time, which nanoseconds in an int64 cannot hold.
const noTime = math.MinInt64

// entry is an event as the log chains it: each column in plain form, names spelled
// out, the payload as JSON with long texts by hash. An empty string is a column
// that is NULL.
type entry struct {
	sequence    int64
	id          string
	source      string
	typ         string
	subject     string
	time        int64 // Unix nanoseconds, or noTime
	dataVersion int64
	recordedAt  int64 // Unix nanoseconds
	configKey   string
	runID       string
	attemptID   string
	callID      string
	actor       string
	traceParent string
	data        []byte
	hash        digest
}

// sameContent reports whether two entries with the same source and id record the
// same: all the appender gives is equal.
func (e *entry) sameContent(o *entry) bool {
	return e.typ == o.typ && e.subject == o.subject && e.time == o.time && e.dataVersion == o.dataVersion &&
		e.configKey == o.configKey && e.runID == o.runID && e.attemptID == o.attemptID && e.callID == o.callID &&
		e.actor == o.actor && e.traceParent == o.traceParent && string(e.data) == string(o.data)
}

// chain returns the hash of e after the event with the hash prev: SHA-256 over prev
// and each column in the table's order, each with its length before it. buf is
// scratch space, returned for the next call.
func (e *entry) chain(prev digest, buf []byte) (digest, []byte) {
	buf = append(buf[:0], prev[:]...)
	buf = appendInt(buf, e.sequence)
	buf = appendText(buf, e.id)
	buf = appendText(buf, e.source)
	buf = appendText(buf, e.typ)
	buf = appendText(buf, e.subject)
	buf = appendInt(buf, e.time)
	buf = appendInt(buf, e.dataVersion)
	buf = appendInt(buf, e.recordedAt)
	buf = appendText(buf, e.configKey)
	buf = appendText(buf, e.runID)
	buf = appendText(buf, e.attemptID)
	buf = appendText(buf, e.callID)
	buf = appendText(buf, e.actor)
	buf = appendText(buf, e.traceParent)
	buf = appendText(buf, e.data)
	return sha256.Sum256(buf), buf
}

func appendInt(buf []byte, n int64) []byte {
	buf = binary.BigEndian.AppendUint32(buf, 8)
	return binary.BigEndian.AppendUint64(buf, uint64(n))
}

func appendText[T string | []byte](buf []byte, s T) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(s)))
	return append(buf, s...)
}

// prepared is an event on its way into the log. All that needs no knowledge of the
// log is done by its appender, beside the writer.
type prepared struct {
	entry
	row      [columnCount]driver.Value // but for what the log assigns, and names
	contents []events.Content
	event    events.Event // as a reader will see it
	added    bool         // it is new, and not a duplicate
}

// set prepares an entry.
func (p *prepared) set(e entry, contents []events.Content) {
	p.entry, p.contents = e, contents
	p.row[colID] = idValue(e.id)
	if e.time != noTime {
		p.row[colTime] = e.time
	}
	p.row[colDataVersion] = e.dataVersion
	p.row[colRunID], p.row[colAttemptID], p.row[colCallID] = idValue(e.runID), idValue(e.attemptID), idValue(e.callID)
	if e.traceParent != "" {
		p.row[colTraceParent] = e.traceParent
	}
	p.row[colData] = pack(e.data)
}

// prepare checks and encodes an event. Its errors are events.ErrInvalid.
func (p *prepared) prepare(e events.Event) error {
	if err := events.Validate(e); err != nil {
		return err
	}
	raw, err := events.EncodeData(e.Data)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", events.ErrInvalid, e.ID, err)
	}
	stored, contents, err := events.Externalize(e.Type, raw)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", events.ErrInvalid, e.ID, err)
	}
	// Decoded again, the payload is what a reader will see: a fold that is fed at
	// commit and one that is fed from disk must not differ by what JSON drops.
	if e.Data, err = events.DecodeData(e.Type, raw); err != nil {
		return fmt.Errorf("%w: %s: %w", events.ErrInvalid, e.ID, err)
	}
	e.Raw = raw
	if !e.Time.IsZero() {
		e.Time = time.Unix(0, e.Time.UnixNano()).UTC()
	}
	p.set(entry{
		id: e.ID, source: e.Source, typ: string(e.Type), subject: string(e.Subject),
		time: nanoseconds(e.Time), dataVersion: int64(e.DataVersion), configKey: string(e.ConfigKey),
		runID: e.RunID, attemptID: e.AttemptID, callID: e.CallID,
		actor: e.Actor, traceParent: e.TraceParent, data: stored,
	}, contents)
	p.event = e
	return nil
}

// event gives the entry as a reader sees it. resolve returns a content by its hash.
func (e *entry) event(resolve func(hash string) (*events.Loaded, error)) (events.Event, error) {
	data, raw, err := events.Restore(events.Type(e.typ), e.data, resolve)
	if err != nil {
		return events.Event{}, fmt.Errorf("event %d: %w", e.sequence, err)
	}
	whole := e.around(data)
	whole.Raw, whole.Hash = raw, hexText(e.hash)
	return whole, nil
}

// bareEvent is event without the payload's JSON and the hash. It has no part of e.data.
func (e *entry) bareEvent(resolve func(hash string) (*events.Loaded, error)) (events.Event, error) {
	data, err := events.RestoreData(events.Type(e.typ), e.data, resolve)
	if err != nil {
		return events.Event{}, fmt.Errorf("event %d: %w", e.sequence, err)
	}
	return e.around(data), nil
}

// around gives the entry's envelope around a payload.
func (e *entry) around(data events.Data) events.Event {
	return events.Event{
		ID: e.id, Source: e.source, Type: events.Type(e.typ), Subject: events.ServerName(e.subject),
		Time: timeOf(e.time), DataVersion: int(e.dataVersion), Data: data,
		ConfigKey: events.ConfigKey(e.configKey), RunID: e.runID, AttemptID: e.attemptID, CallID: e.callID,
		Actor: e.actor, TraceParent: e.traceParent,
		Sequence: events.Sequence(e.sequence), RecordedAt: timeOf(e.recordedAt),
	}
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return noTime
	}
	return t.UnixNano()
}

func timeOf(ns int64) time.Time {
	if ns == noTime {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
