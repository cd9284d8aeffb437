package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mcpledger/migrations"
)

// schema is what a database is made of besides its rows: the statement that made each
// table, index and trigger, by kind and name, such as "trigger events_no_update".
type schema map[string]string

// readSchema returns a database's schema, without what SQLite and the migrations keep
// for themselves.
func readSchema(ctx context.Context, db *sql.DB) (schema, error) {
	const query = `SELECT type || ' ' || name, sql FROM sqlite_schema
		WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' AND tbl_name <> 'goose_db_version'`
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	s := schema{}
	for rows.Next() {
		var name, statement string
		if err := rows.Scan(&name, &statement); err != nil {
			return nil, unscannable(err)
		}
		s[name] = withoutLayout(statement)
	}
	return s, rows.Err()
}

// migratedSchema returns the schema that the migrations up to a version make.
func migratedSchema(ctx context.Context, version int64) (s schema, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	if err := migrations.ApplyUpTo(ctx, db, version); err != nil {
		return nil, err
	}
	return readSchema(ctx, db)
}

var comment = regexp.MustCompile(`--[^\n]*`)

// withoutLayout returns a statement without what it may differ in and still make the
// same: comments, and how much white space there is.
func withoutLayout(statement string) string {
	return strings.Join(strings.Fields(comment.ReplaceAllString(statement, " ")), " ")
}

// differences says in what the schema is not the one it should be, in a fixed order.
func (s schema) differences(should schema) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(should)) {
		if made, there := s[name]; !there {
			all = append(all, "the "+name+" is missing")
		} else if made != should[name] {
			all = append(all, "the "+name+" is another")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if _, known := should[name]; !known {
			all = append(all, "the "+name+" is not of it")
		}
	}
	return all
}

// schema compares what the database is made of with what its migrations make: without
// its triggers a log can be changed, and whatever else there is could change it. It
// returns a damage, or an error if it could not look.
func (v *verifier) schema(ctx context.Context) (wrong, err error) {
	version, err := migrations.Version(ctx, v.db)
	if err != nil {
		return nil, err
	}
	is, err := readSchema(ctx, v.db)
	if err != nil {
		return nil, err
	}
	should, err := migratedSchema(ctx, version)
	if err != nil {
		return nil, fmt.Errorf("make schema %d: %w", version, err)
	}
	if found := is.differences(should); len(found) > 0 {
		return damaged(0, "the database is not as its migrations made it, schema %d: %s", version, strings.Join(found, ", ")), nil
	}
	return nil, nil // a sound schema is neither damage nor error
}
