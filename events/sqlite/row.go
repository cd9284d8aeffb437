package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"mcpledger/events"
)

// columns of the table events, in its order; bareColumns are those of a bare read.
const (
	columns     = bareColumns + ", hash"
	bareColumns = "sequence, id, source, type, subject, time, dataversion, recorded_at, " +
		"config_key, run_id, attempt_id, call_id, actor, traceparent, data"
)

// The places of the columns in a row.
const (
	colSequence = iota
	colID
	colSource
	colType
	colSubject
	colTime
	colDataVersion
	colRecordedAt
	colConfigKey
	colRunID
	colAttemptID
	colCallID
	colActor
	colTraceParent
	colData
	colHash // not in a bare read
	columnCount
)

// numbered is an entry as its row has it: numbers in the place of names, and the
// payload packed.
type numbered struct {
	entry
	packed                                      []byte
	sourceID, typeID, subjectID, keyID, actorID int64
}

// query passes each row of columns that a query gives to take, which must not keep
// the values. It asks the driver itself: a replay reads millions of rows, and
// database/sql would spend as long again on converting each column. The query is
// too short to be cancelled.
func query(conn *sql.Conn, text string, args []any, take func(row []driver.Value) error) error {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return conn.Raw(func(c any) error {
		rows, err := c.(driver.QueryerContext).QueryContext(background, text, named)
		if err != nil {
			return err
		}
		row := make([]driver.Value, len(rows.Columns()))
		for err == nil {
			if err = rows.Next(row); err == nil {
				err = take(row)
			}
		}
		if closed := rows.Close(); errors.Is(err, io.EOF) {
			return closed
		}
		return err // which Close would only repeat
	})
}

// scan reads a row of columns or bareColumns.
func scan(row []driver.Value) (numbered, error) {
	var c cells
	e := numbered{
		entry: entry{
			sequence: c.integer(row[colSequence]), id: c.id(row[colID]), time: noTime, dataVersion: c.integer(row[colDataVersion]),
			recordedAt: c.integer(row[colRecordedAt]), runID: c.id(row[colRunID]), attemptID: c.id(row[colAttemptID]), callID: c.id(row[colCallID]),
			traceParent: c.id(row[colTraceParent]),
		},
		sourceID: c.integer(row[colSource]), typeID: c.integer(row[colType]), subjectID: c.integer(row[colSubject]),
		keyID: c.integer(row[colConfigKey]), actorID: c.integer(row[colActor]),
	}
	if row[colTime] != nil {
		e.time = c.integer(row[colTime])
	}
	e.packed = c.bytes(row[colData])
	if len(row) == columnCount {
		if hash := c.bytes(row[colHash]); copy(e.hash[:], hash) != len(e.hash) || len(hash) != len(e.hash) {
			c.fail(fmt.Errorf("hash of %d bytes", len(hash)))
		}
	}
	if c.err != nil {
		return e, fmt.Errorf("%w: event %d: %w", events.ErrCorrupt, e.sequence, c.err)
	}
	return e, nil
}

// cells reads the values of columns, and keeps the first error.
type cells struct{ err error }

func (c *cells) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// integer returns 0 for NULL.
func (c *cells) integer(v driver.Value) int64 {
	n, ok := v.(int64)
	if !ok && v != nil {
		c.fail(fmt.Errorf("%T in the place of a number", v))
	}
	return n
}

// id returns the empty text for NULL.
func (c *cells) id(v driver.Value) string {
	text, err := idText(v)
	if err != nil {
		c.fail(err)
	}
	return text
}

func (c *cells) bytes(v driver.Value) []byte {
	b, ok := v.([]byte)
	if !ok {
		c.fail(fmt.Errorf("%T in the place of bytes", v))
	}
	return b
}

// spell fills in the names and the payload, which is written to buf where that has
// room.
func (e *numbered) spell(text func(id int64) (string, error), buf []byte) error {
	var err error
	if e.data, err = unpack(e.packed, buf); err != nil {
		return fmt.Errorf("%w: event %d: %w", events.ErrCorrupt, e.sequence, err)
	}
	for _, c := range []struct {
		to *string
		id int64
	}{{&e.source, e.sourceID}, {&e.typ, e.typeID}, {&e.subject, e.subjectID}, {&e.configKey, e.keyID}, {&e.actor, e.actorID}} {
		if *c.to, err = text(c.id); err != nil {
			return fmt.Errorf("event %d: %w", e.sequence, err)
		}
	}
	return nil
}
