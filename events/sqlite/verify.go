package sqlite

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"mcpledger/events"
)

// VerifyOptions says what a log is compared with.
type VerifyOptions struct {
	// Head is a head that was noted outside the data folder; nil for none. Only it
	// shows that the whole log was replaced by an older copy.
	Head *events.Head
}

// VerifyReport is what Verify found.
type VerifyReport struct {
	Events   int64       // whose place in the chain was checked
	Contents int64       // long texts and documents that were checked
	Head     events.Head // the last event that was checked
	// Signed says that the head's signature was checked; it cannot be in a log
	// without its key, such as a backup, and then a cut log looks whole.
	Signed bool
	// Problem is what is wrong, in one sentence; empty for a sound log.
	Problem string
	// Bad is the first event that is damaged or missing, 0 if the problem is not with
	// one.
	Bad events.Sequence
}

// OK reports that nothing wrong was found.
func (r VerifyReport) OK() bool { return r.Problem == "" }

// damage is what is wrong with a log.
type damage struct {
	bad  int64
	what string
}

func (d damage) Error() string { return d.what }

func damaged(bad int64, format string, args ...any) error {
	return damage{bad, fmt.Sprintf(format, args...)}
}

// Verify reads the whole log in dir and checks that it is what was appended: every
// event hashes to what the next one builds on, none is missing, the last one is the
// one that the head names and the key signed, contents have the hashes they are
// kept by, the database is sound and has the schema that its migrations made, with the
// triggers that keep events as they are. It may run beside a writer. A damaged log is
// a report and no error; an error means that it could not be looked at.
func Verify(ctx context.Context, dir string, opts VerifyOptions) (VerifyReport, error) {
	var report VerifyReport
	v := &verifier{report: &report, noted: opts.Head}
	err := v.open(ctx, dir)
	if err == nil {
		err = v.run(ctx)
		err = errors.Join(err, v.db.Close())
	}
	var d damage
	switch {
	case ctx.Err() != nil:
		return report, ctx.Err()
	case errors.As(err, &d):
		report.Problem, report.Bad = d.what, events.Sequence(d.bad)
	case errors.Is(err, events.ErrCorrupt):
		report.Problem = fmt.Sprintf("the database cannot be read after event %d: %v", report.Head.Sequence, err)
		report.Bad = report.Head.Sequence + 1
	case err != nil:
		return report, fmt.Errorf("verify log in %s: %w", dir, err)
	}
	return report, nil
}

// verifier checks a log within one read transaction.
type verifier struct {
	report *VerifyReport
	noted  *events.Head

	db    *sql.DB
	key   []byte // nil where there is none
	names *names
	kept  map[digest]bool // contents known to be there; a cache

	last       place // the last event checked
	recordedAt int64 // of the last event checked
	steps      []int64
	buf        []byte
}

func (v *verifier) open(ctx context.Context, dir string) error {
	key, err := LoadKey(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	v.key, v.kept = key, map[digest]bool{}
	if v.db, err = openReads(ctx, dir); err != nil {
		return err
	}
	// One connection, so that all is seen in one transaction.
	v.db.SetMaxOpenConns(1)
	v.names = &names{db: v.db}
	_, err = v.db.ExecContext(ctx, "BEGIN")
	return explain(err)
}

// run returns the first damage it finds. That the schema is another is told when the
// events are sound, or cannot be read.
func (v *verifier) run(ctx context.Context) error {
	wrong, err := v.schema(ctx)
	if err != nil {
		return explain(err)
	}
	for _, check := range []func(context.Context) error{v.chain, v.head, v.contents, v.integrity} {
		err := explain(check(ctx))
		_, found := errors.AsType[damage](err)
		switch {
		case err == nil:
		case !found && !errors.Is(err, events.ErrCorrupt) && wrong != nil:
			return wrong // what is missing there is what could not be looked at
		default:
			return err
		}
	}
	return wrong
}

// chain walks the events from the first, a page at a time.
func (v *verifier) chain(ctx context.Context) error {
	for {
		page, err := selectEvents(ctx, v.db, filter{}, v.last.sequence, maxSequence, "ASC", pageEvents, nil)
		for i := range page {
			if err := v.event(ctx, &page[i]); err != nil {
				return err
			}
		}
		if err != nil || len(page) < pageEvents {
			return err
		}
	}
}

// event checks the event that should follow the last one checked.
func (v *verifier) event(ctx context.Context, e *numbered) error {
	next := v.last.sequence + 1
	if e.sequence != next {
		return damaged(next, "event %d is missing: event %d follows event %d", next, e.sequence, v.last.sequence)
	}
	if err := e.spell(func(id int64) (string, error) { return v.names.text(ctx, id) }, nil); err != nil {
		return err
	}
	var hash digest
	if hash, v.buf = e.chain(v.last.hash, v.buf); hash != e.hash {
		return damaged(next, "event %d is not what was appended: its content and the hash before it give another hash", next)
	}
	if err := v.references(ctx, e); err != nil {
		return err
	}
	if e.recordedAt < v.recordedAt {
		v.steps = append(v.steps, next)
	}
	v.last, v.recordedAt = place{next, e.hash}, e.recordedAt
	v.report.Events, v.report.Head = next, v.last.headOf()
	if v.noted != nil && v.noted.Sequence == v.report.Head.Sequence && *v.noted != v.report.Head {
		return damaged(next, "event %d has the hash %s, noted was %s: the log was written anew", next, v.report.Head.Hash, v.noted.Hash)
	}
	return nil
}

// references checks that the contents an event refers to are there.
func (v *verifier) references(ctx context.Context, e *numbered) error {
	for _, ref := range events.References(e.data) {
		hash, err := parseDigest(ref)
		if err != nil {
			return damaged(e.sequence, "event %d refers to %q, which is no content", e.sequence, ref)
		}
		if v.kept[hash] {
			continue
		}
		var found int
		err = v.db.QueryRowContext(ctx, "SELECT count(*) FROM contents WHERE hash = ?", hash[:]).Scan(&found)
		if err != nil {
			return err
		}
		if found == 0 {
			return damaged(e.sequence, "event %d refers to a content that is missing, %s", e.sequence, ref)
		}
		if len(v.kept) >= maxKept {
			clear(v.kept)
		}
		v.kept[hash] = true
	}
	return nil
}

// head compares the last event with the signed head and the noted one.
func (v *verifier) head(ctx context.Context) error {
	last := v.report.Head
	var signed place
	var hash, mac []byte
	err := v.db.QueryRowContext(ctx, "SELECT sequence, hash, mac FROM head").Scan(&signed.sequence, &hash, &mac)
	switch {
	case err == nil, errors.Is(err, sql.ErrNoRows):
	case code(err) == 0:
		return unscannable(err)
	default:
		return err
	}
	copy(signed.hash[:], hash)
	next := int64(last.Sequence) + 1
	switch {
	case signed.sequence >= next:
		return damaged(next, "events %d to %d are missing: the log was cut after event %d", next, signed.sequence, last.Sequence)
	case signed.headOf() != last:
		return damaged(max(signed.sequence, 1), "the head names event %d with another hash than the last event, %d, has", signed.sequence, last.Sequence)
	case v.key != nil && signed.sequence > 0 && !hmac.Equal(mac, signed.sign(v.key)):
		return damaged(0, "the head is not signed by %s: head or key was replaced", keyFile)
	case v.noted != nil && v.noted.Sequence > last.Sequence:
		return damaged(next, "the log ends at event %d, noted was event %d: it was cut, or replaced by an older copy", last.Sequence, v.noted.Sequence)
	}
	v.report.Signed = v.key != nil
	return nil
}

// contents compares every content with its hash.
func (v *verifier) contents(ctx context.Context) error {
	rows, err := v.db.QueryContext(ctx, "SELECT hash, sequence, body FROM contents")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var hash, body sql.RawBytes
		var sequence int64
		if err := rows.Scan(&hash, &sequence, &body); err != nil {
			return unscannable(err)
		}
		if sum := sha256.Sum256(body); string(sum[:]) != string(hash) {
			return damaged(sequence, "the content %x, first referred to by event %d, is not what was appended", []byte(hash), sequence)
		}
		v.report.Contents++
	}
	return rows.Err()
}

// integrity lets SQLite check the file, and checks what is derived from the events.
func (v *verifier) integrity(ctx context.Context) error {
	var result string
	if err := v.db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&result); err != nil {
		return err
	}
	if result != "ok" {
		return damaged(0, "the database is damaged: %s", result)
	}
	steps, err := clockSteps(ctx, v.db, maxSequence)
	if err != nil {
		return err
	}
	slices.Reverse(steps)
	if !slices.Equal(steps, v.steps) {
		return damaged(0, "the steps of the clock are noted at %v, the events have them at %v", steps, v.steps)
	}
	return nil
}
