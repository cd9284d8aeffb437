package sqlite

import (
	"context"
	"fmt"

	"mcpledger/events"
)

// keptMarks is of how many versions of folds there are marks, the last saved.
const keptMarks = 4

// SaveMarks keeps snapshots of a fold at several places, each beside the others of its
// version, and drops the marks of that version at other places. All is done or
// nothing. The version is as for SaveSnapshot; neither map nor bodies must change
// until it returns and, if ctx ended first, not after.
func (l *Log) SaveMarks(ctx context.Context, version string, bodies map[events.Sequence][]byte, drop []events.Sequence) error {
	if l.writer == nil {
		return ErrReadOnly
	}
	marks := make([]snapshot, 0, len(bodies))
	for at, body := range bodies {
		m := snapshot{version: version, place: place{sequence: int64(at)}, body: body}
		if err := l.snapshotHash(ctx, &m.place); err != nil {
			return fmt.Errorf("save marks: %w", err)
		}
		marks = append(marks, m)
	}
	return l.writer.submit(ctx, &request{beside: func(s *store) error { return s.saveMarks(version, marks, drop) }})
}

// Marks returns the places of the marks of that version, with their sizes in bytes.
// LoadMark may find that one does not belong to this log.
func (l *Log) Marks(ctx context.Context, version string) (map[events.Sequence]int, error) {
	rows, err := l.reads.QueryContext(ctx, "SELECT sequence, length(body) FROM marks WHERE version = ?", version)
	if err != nil {
		return nil, l.readError(ctx, err)
	}
	defer rows.Close()
	sizes := map[events.Sequence]int{}
	for rows.Next() {
		var at events.Sequence
		var size int
		if err := rows.Scan(&at, &size); err != nil {
			return nil, l.readError(ctx, unscannable(err))
		}
		sizes[at] = size
	}
	if err := rows.Err(); err != nil {
		return nil, l.readError(ctx, err)
	}
	return sizes, nil
}

// LoadMark returns the mark of that version at a place; events.ErrNotFound if there is
// none that belongs to this log and is whole.
func (l *Log) LoadMark(ctx context.Context, version string, at events.Sequence) ([]byte, error) {
	m, err := l.loadSnapshot(ctx, version,
		"SELECT sequence, hash, mac, body FROM marks WHERE version = ? AND sequence = ?", version, int64(at))
	if err != nil {
		return nil, fmt.Errorf("mark of %q at %d: %w", version, at, err)
	}
	return m.body, nil
}

// saveMarks stores marks of a version, drops others of it, and those of the versions
// past keptMarks.
func (s *store) saveMarks(version string, marks []snapshot, drop []events.Sequence) error {
	for i := range marks {
		m := &marks[i]
		_, err := s.conn.ExecContext(background,
			"INSERT OR REPLACE INTO marks (version, sequence, hash, mac, body) VALUES (?, ?, ?, ?, ?)",
			m.version, m.sequence, m.hash[:], m.sign(s.key), m.body)
		if err != nil {
			return err
		}
	}
	for _, at := range drop {
		if _, err := s.conn.ExecContext(background, "DELETE FROM marks WHERE version = ? AND sequence = ?", version, int64(at)); err != nil {
			return err
		}
	}
	_, err := s.conn.ExecContext(background, `DELETE FROM marks WHERE version NOT IN
		(SELECT version FROM marks GROUP BY version ORDER BY max(rowid) DESC LIMIT ?)`, keptMarks)
	return err
}
