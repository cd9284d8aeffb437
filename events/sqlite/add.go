package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"mcpledger/events"
)

// maxTogether is how many events one statement stores. Far more gain nothing.
const maxTogether = 16

// errKnown reports that the log has an event already, of those stored together.
var errKnown = errors.New("event is known")

// addTogether stores what requests ask for, of which the log should have nothing, and
// sets their receipts. One statement for several events takes a quarter off the time
// of as many statements. After an error the transaction must be rolled back; after
// errKnown addEach says which event it was.
func (s *store) addTogether(requests []*request, recordedAt int64) error {
	for _, r := range requests {
		if r.beside != nil {
			if err := r.beside(s); err != nil {
				return err
			}
			continue
		}
		r.receipt = events.Receipt{Sequences: make([]events.Sequence, len(r.batch))}
		for i := range r.batch {
			p := &r.batch[i]
			p.recordedAt = recordedAt
			if err := s.place(p); err != nil {
				return err
			}
			s.values = append(s.values, p.row[:]...)
			if err := s.settle(p); err != nil {
				return err
			}
			p.added, r.receipt.Sequences[i] = true, events.Sequence(p.sequence)
			if len(s.values) == maxTogether*columnCount {
				if err := s.flush(); err != nil {
					return err
				}
			}
		}
	}
	return s.flush()
}

// flush stores the events whose values wait.
func (s *store) flush() error {
	n := len(s.values) / columnCount
	if n == 0 {
		return nil
	}
	stmt, err := s.insertMany(n)
	if err != nil {
		return err
	}
	result, err := s.exec(stmt, s.values...)
	s.values = s.values[:0]
	if err != nil {
		return err
	}
	stored, err := result.RowsAffected()
	if err == nil && stored != int64(n) {
		err = errKnown
	}
	return err
}

// insertMany returns the statement that stores n events, and passes over those that
// the log has.
func (s *store) insertMany(n int) (driver.Stmt, error) {
	if s.insertEvents[n] != nil {
		return s.insertEvents[n], nil
	}
	text := "INSERT OR IGNORE INTO events (" + columns + ") VALUES " + eventValues + strings.Repeat(", "+eventValues, n-1)
	err := s.conn.Raw(func(c any) (err error) {
		s.insertEvents[n], err = c.(driver.ConnPrepareContext).PrepareContext(background, text)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.stmts = append(s.stmts, s.insertEvents[n])
	return s.insertEvents[n], nil
}

// addEach stores what requests ask for, one event after the other, and sets their
// receipts; a batch in conflict is refused alone. After an error the transaction must
// be rolled back.
func (s *store) addEach(requests []*request, recordedAt int64) error {
	for _, r := range requests {
		if r.beside != nil {
			if err := r.beside(s); err != nil {
				return err
			}
			continue
		}
		receipt, err := s.addAll(r.batch, recordedAt)
		if err != nil && !isConflict(err) {
			return err
		}
		r.receipt, r.err = receipt, err
	}
	return nil
}

// addAll stores a batch at the end of the chain, all or nothing, and returns the
// events' places. An events.ErrConflict leaves the transaction as it was; after any
// other error it must be rolled back.
func (s *store) addAll(batch []prepared, recordedAt int64) (receipt events.Receipt, err error) {
	before := mark{s.head, s.lastRecorded, len(s.fresh)}
	if _, err := s.exec(s.save); err != nil {
		return events.Receipt{}, err
	}
	receipt.Sequences = make([]events.Sequence, 0, len(batch))
	for i := range batch {
		p := &batch[i]
		p.recordedAt = recordedAt
		first, err := s.add(p)
		if conflict, ok := errors.AsType[*events.ConflictError](err); ok {
			conflict.Index = i
			if _, err := s.exec(s.undo); err != nil {
				return events.Receipt{}, err
			}
			if _, err := s.exec(s.release); err != nil {
				return events.Receipt{}, err
			}
			s.returnTo(before)
		}
		if err != nil {
			return events.Receipt{}, err
		}
		if p.added = first == p.sequence; !p.added {
			receipt.Duplicates++
		}
		receipt.Sequences = append(receipt.Sequences, events.Sequence(first))
	}
	if _, err := s.exec(s.release); err != nil {
		return events.Receipt{}, err
	}
	return receipt, nil
}

// mark is the state of a store before a batch that may have to be undone.
type mark struct {
	head         place
	lastRecorded int64
	fresh        int
}

func (s *store) returnTo(m mark) {
	for _, name := range s.fresh[m.fresh:] {
		delete(s.ids, name)
	}
	s.fresh = s.fresh[:m.fresh]
	s.head, s.lastRecorded = m.head, m.lastRecorded
	clear(s.kept)
}

// add stores one event after the head, at p.recordedAt, and returns its place:
// p.sequence, or a smaller one if the log has the event already.
func (s *store) add(p *prepared) (int64, error) {
	if err := s.place(p); err != nil {
		return 0, err
	}
	_, err := s.exec(s.insertEvent, p.row[:]...)
	if isUnique(err) {
		return s.earlier(p)
	}
	if err != nil {
		return 0, err
	}
	return p.sequence, s.settle(p)
}

// place gives an event the place after the head, and the columns that come with it.
func (s *store) place(p *prepared) error {
	p.sequence = s.head.sequence + 1
	p.hash, s.buf = p.chain(s.head.hash, s.buf)
	for _, c := range [...]struct {
		column int
		name   string
	}{
		{colSource, p.source}, {colType, p.typ}, {colSubject, p.subject}, {colConfigKey, p.configKey}, {colActor, p.actor},
	} {
		var err error
		if p.row[c.column], err = s.numberOf(c.name); err != nil {
			return err
		}
	}
	p.row[colSequence], p.row[colRecordedAt], p.row[colHash] = p.sequence, p.recordedAt, p.hash[:]
	return nil
}

// settle makes an event that has its place the head, and stores what goes with it.
func (s *store) settle(p *prepared) error {
	for _, c := range p.contents {
		if err := s.keep(c, p.sequence); err != nil {
			return err
		}
	}
	if p.recordedAt < s.lastRecorded {
		if _, err := s.exec(s.insertStep, p.sequence); err != nil {
			return err
		}
	}
	s.head, s.lastRecorded = place{p.sequence, p.hash}, p.recordedAt
	return nil
}

// earlier returns the place of the event that has p's id and source, or
// events.ErrConflict if that one records something else.
func (s *store) earlier(p *prepared) (int64, error) {
	var first numbered
	found := false
	err := query(s.conn, "SELECT "+columns+" FROM events WHERE id = ? AND source = ?", []any{p.row[colID], p.row[colSource]},
		func(row []driver.Value) (err error) {
			found = true
			first, err = scan(row)
			return err
		})
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, fmt.Errorf("%w: event %q is indexed but missing", events.ErrCorrupt, p.id)
	}
	if err := first.spell(s.nameOf, nil); err != nil {
		return 0, err
	}
	if !first.sameContent(&p.entry) {
		return 0, &events.ConflictError{ID: p.id, Source: p.source}
	}
	return first.sequence, nil
}

// stored returns the event with what the log assigned.
func (p *prepared) stored() events.Event {
	e := p.event
	e.Sequence = events.Sequence(p.sequence)
	e.RecordedAt = timeOf(p.recordedAt)
	e.Hash = hexText(p.hash)
	return e
}
