package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"mcpledger/events"
)

// store writes events through one connection, in transactions that the caller
// begins and commits. It is used by one goroutine at a time.
type store struct {
	conn *sql.Conn
	key  []byte

	head         place
	lastRecorded int64                   // recorded_at of the event at head
	ids          map[string]driver.Value // of names; int64
	fresh        []string                // names numbered since begin
	kept         map[digest]bool         // contents known to be in the database; a cache
	stale        bool                    // the fields above may differ from the database
	buf          []byte

	args                                                        []driver.NamedValue // of exec, used again
	beginTx, commitTx, rollbackTx, save, release, undo          driver.Stmt
	insertEvent, insertContent, insertName, insertStep, setHead driver.Stmt
	insertEvents                                                [maxTogether + 1]driver.Stmt // of so many; prepared when needed

	values []driver.Value // of the events that the next of insertEvents stores
	stmts  []driver.Stmt  // all of them
}

// eventValues has a place for each of columns.
var eventValues = "(?" + strings.Repeat(", ?", columnCount-1) + ")"

// maxKept bounds the cache of content hashes.
const maxKept = 1 << 14

// background is the context of every write: what was begun is finished or undone,
// whoever stops waiting for it.
var background = context.Background()

func newStore(ctx context.Context, db *sql.DB, key []byte) (*store, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := &store{conn: conn, key: key, stale: true}
	if err := conn.Raw(func(c any) error { return s.prepare(ctx, c.(driver.ConnPrepareContext)) }); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *store) prepare(ctx context.Context, c driver.ConnPrepareContext) error {
	for _, p := range []struct {
		to   *driver.Stmt
		text string
	}{
		{&s.beginTx, "BEGIN IMMEDIATE"},
		{&s.commitTx, "COMMIT"},
		{&s.rollbackTx, "ROLLBACK"},
		{&s.save, "SAVEPOINT batch"},
		{&s.release, "RELEASE batch"},
		{&s.undo, "ROLLBACK TO batch"},
		{&s.insertEvent, "INSERT INTO events (" + columns + ") VALUES " + eventValues},
		{&s.insertContent, "INSERT INTO contents (hash, sequence, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"},
		{&s.insertName, "INSERT INTO names (name) VALUES (?)"},
		{&s.insertStep, "INSERT INTO clock_steps (sequence) VALUES (?)"},
		{&s.setHead, "INSERT OR REPLACE INTO head (one, sequence, hash, mac) VALUES (1, ?, ?, ?)"},
	} {
		stmt, err := c.PrepareContext(ctx, p.text)
		if err != nil {
			return err
		}
		*p.to = stmt
		s.stmts = append(s.stmts, stmt)
	}
	return nil
}

// close lets go of the connection. A statement left open would keep SQLite from
// closing the database, and from its last checkpoint.
func (s *store) close() error {
	var errs []error
	_ = s.conn.Raw(func(any) error {
		for _, stmt := range s.stmts {
			errs = append(errs, stmt.Close())
		}
		return nil
	})
	return errors.Join(append(errs, s.conn.Close())...)
}

// exec runs a statement of the store. Like query it asks the driver itself, which
// takes a fifth off the time of an insert.
func (s *store) exec(stmt driver.Stmt, args ...driver.Value) (result driver.Result, err error) {
	s.args = s.args[:0]
	for i, arg := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	err = s.conn.Raw(func(any) error {
		result, err = stmt.(driver.StmtExecContext).ExecContext(background, s.args)
		return err
	})
	return result, err
}

// begin starts a transaction that holds the database's write lock.
func (s *store) begin() error {
	if _, err := s.exec(s.beginTx); err != nil {
		return err
	}
	s.fresh, s.values = s.fresh[:0], s.values[:0]
	if !s.stale {
		return nil
	}
	if err := s.reload(); err != nil {
		s.rollback()
		return err
	}
	s.stale = false
	return nil
}

// reload takes the end of the chain from the database.
func (s *store) reload() error {
	s.ids, s.kept = map[string]driver.Value{}, map[digest]bool{}
	s.head, s.lastRecorded = place{}, 0
	var hash []byte
	err := s.conn.QueryRowContext(background,
		"SELECT sequence, hash, recorded_at FROM events ORDER BY sequence DESC LIMIT 1").
		Scan(&s.head.sequence, &hash, &s.lastRecorded)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	copy(s.head.hash[:], hash)
	return nil
}

// commit signs the head and makes the transaction durable.
func (s *store) commit() error {
	if s.head.sequence > 0 {
		if _, err := s.exec(s.setHead, s.head.sequence, s.head.hash[:], s.head.sign(s.key)); err != nil {
			return err
		}
	}
	_, err := s.exec(s.commitTx)
	return err
}

// rollback ends the transaction without a trace. After an error SQLite may have
// ended it already, so the outcome says nothing; the next begin looks for itself.
func (s *store) rollback() {
	_, _ = s.exec(s.rollbackTx)
	s.stale = true
}

// numberOf returns the number of a name, giving it one if it has none; nil for the
// empty name.
func (s *store) numberOf(name string) (driver.Value, error) {
	if name == "" {
		return nil, nil
	}
	if id, ok := s.ids[name]; ok {
		return id, nil
	}
	var id int64
	err := s.conn.QueryRowContext(background, "SELECT id FROM names WHERE name = ?", name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		var res driver.Result
		if res, err = s.exec(s.insertName, name); err == nil {
			id, err = res.LastInsertId()
			s.fresh = append(s.fresh, name)
		}
	}
	if err != nil {
		return nil, err
	}
	s.ids[name] = id
	return id, nil
}

func (s *store) nameOf(id int64) (name string, err error) {
	if id == 0 {
		return "", nil
	}
	err = s.conn.QueryRowContext(background, "SELECT name FROM names WHERE id = ?", id).Scan(&name)
	return name, err
}

// keep stores a content that an event refers to, once.
func (s *store) keep(c events.Content, sequence int64) error {
	hash, err := parseDigest(c.Hash)
	if err != nil {
		return err
	}
	if s.kept[hash] {
		return nil
	}
	if _, err := s.exec(s.insertContent, hash[:], sequence, c.Body); err != nil {
		return err
	}
	if len(s.kept) >= maxKept {
		clear(s.kept)
	}
	s.kept[hash] = true
	return nil
}
