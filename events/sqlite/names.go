package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"mcpledger/events"
)

// names spells out the numbers that stand for sources, types, subjects, config keys
// and actors. A name never changes, so what was read once holds. It is safe for
// concurrent use.
type names struct {
	db    *sql.DB
	known atomic.Pointer[[]string] // by number, from 1
}

// text returns the name with that number, the empty text for 0.
func (n *names) text(ctx context.Context, id int64) (string, error) {
	if id == 0 {
		return "", nil
	}
	if known := n.known.Load(); known != nil && id > 0 && id < int64(len(*known)) {
		return (*known)[id], nil
	}
	known, err := n.load(ctx)
	if err != nil {
		return "", err
	}
	if id < 0 || id >= int64(len(known)) {
		return "", fmt.Errorf("%w: no name has number %d", events.ErrCorrupt, id)
	}
	return known[id], nil
}

// number returns the number of a name, 0 if it has none.
func (n *names) number(ctx context.Context, name string) (int64, error) {
	var id int64
	err := n.db.QueryRowContext(ctx, "SELECT id FROM names WHERE name = ?", name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// load reads the names that are new since the last load.
func (n *names) load(ctx context.Context) ([]string, error) {
	known := []string{""} // numbers begin at 1
	if old := n.known.Load(); old != nil {
		known = *old
	}
	// Cut to its length, so that two loads at once do not append into one array.
	known = known[:len(known):len(known)]
	rows, err := n.db.QueryContext(ctx, "SELECT id, name FROM names WHERE id >= ? ORDER BY id", len(known))
	if err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			return nil, fmt.Errorf("read names: %w", unscannable(err))
		}
		if id != len(known) {
			return nil, fmt.Errorf("%w: name %d follows name %d", events.ErrCorrupt, id, len(known)-1)
		}
		known = append(known, name)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	n.known.Store(&known)
	return known, nil
}
