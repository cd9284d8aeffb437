package sqlite

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	"mcpledger/events"
)

// keptSnapshots is how many versions of folds have a snapshot, the last saved.
const keptSnapshots = 4

// snapshot is a saved fold.
type snapshot struct {
	version string
	place   // folded up to here
	body    []byte
}

func (s *snapshot) sign(key []byte) []byte {
	mac := hmac.New(sha256.New, DeriveKey(key, "snapshot"))
	buf := appendText(nil, s.version)
	buf = appendInt(buf, s.sequence)
	mac.Write(append(buf, s.hash[:]...))
	mac.Write(s.body)
	return mac.Sum(nil)
}

// SaveSnapshot keeps the state of folds at a sequence, in the place of an earlier
// one of the same version. The version names the shape of body and all that body
// depends on besides the events, such as the rules. Body must not change until it
// returns and, if ctx ended first, not after.
func (l *Log) SaveSnapshot(ctx context.Context, version string, sequence events.Sequence, body []byte) error {
	if l.writer == nil {
		return ErrReadOnly
	}
	s := &snapshot{version: version, place: place{sequence: int64(sequence)}, body: body}
	if err := l.snapshotHash(ctx, &s.place); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return l.writer.submit(ctx, &request{beside: func(store *store) error { return store.saveSnapshot(s) }})
}

// LoadSnapshot returns the snapshot of that version and the sequence it stands at;
// events.ErrNotFound if there is none that belongs to this log and is whole.
func (l *Log) LoadSnapshot(ctx context.Context, version string) (events.Sequence, []byte, error) {
	s, err := l.loadSnapshot(ctx, version, "SELECT sequence, hash, mac, body FROM snapshots WHERE version = ?", version)
	if err != nil {
		return 0, nil, fmt.Errorf("snapshot %q: %w", version, err)
	}
	return events.Sequence(s.sequence), s.body, nil
}

// loadSnapshot reads the row of a snapshot of that version. It returns
// events.ErrNotFound for one that is not there, not signed by this folder's key, or of
// another log.
func (l *Log) loadSnapshot(ctx context.Context, version, query string, args ...any) (snapshot, error) {
	s := snapshot{version: version}
	if l.key == nil {
		return s, events.ErrNotFound
	}
	var hash, mac []byte
	err := l.reads.QueryRowContext(ctx, query, args...).Scan(&s.sequence, &hash, &mac, &s.body)
	if errors.Is(err, sql.ErrNoRows) {
		return s, events.ErrNotFound
	}
	if err != nil {
		return s, l.readError(ctx, err)
	}
	copy(s.hash[:], hash)
	here := place{sequence: s.sequence}
	if err := l.snapshotHash(ctx, &here); err != nil {
		return s, err // events.ErrNotFound beyond the head: of a log that was rolled back
	}
	if here.hash != s.hash || !hmac.Equal(mac, s.sign(l.key)) {
		return s, events.ErrNotFound
	}
	return s, nil
}

// snapshotHash sets the hash of a place by its sequence; events.ErrNotFound past
// the head. Before the first event it is zero.
func (l *Log) snapshotHash(ctx context.Context, p *place) error {
	if p.sequence == 0 {
		return nil
	}
	var hash []byte
	err := l.reads.QueryRowContext(ctx, "SELECT hash FROM events WHERE sequence = ?", p.sequence).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("event %d: %w", p.sequence, events.ErrNotFound)
	}
	if err != nil {
		return l.readError(ctx, err)
	}
	copy(p.hash[:], hash)
	return nil
}

// saveSnapshot stores a snapshot and drops the oldest past keptSnapshots.
func (s *store) saveSnapshot(snap *snapshot) error {
	_, err := s.conn.ExecContext(background,
		"INSERT OR REPLACE INTO snapshots (version, sequence, hash, mac, body) VALUES (?, ?, ?, ?, ?)",
		snap.version, snap.sequence, snap.hash[:], snap.sign(s.key), snap.body)
	if err != nil {
		return err
	}
	_, err = s.conn.ExecContext(background,
		"DELETE FROM snapshots WHERE rowid NOT IN (SELECT rowid FROM snapshots ORDER BY rowid DESC LIMIT ?)", keptSnapshots)
	return err
}
