-- +goose Up

-- names holds each source, type, subject, config key and actor once; events refer
-- to them by number. The types that come with every attempt and call have the first
-- sixteen numbers, so that an index can leave them out.
CREATE TABLE names (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

INSERT INTO names (id, name) VALUES
    (1, 'discovery.run_started'), (2, 'discovery.run_completed'),
    (3, 'discovery.started'), (4, 'discovery.succeeded'), (5, 'discovery.failed'),
    (6, 'discovery.cancelled'), (7, 'discovery.abandoned'), (8, 'discovery.skipped'),
    (9, 'toolcall.started'), (10, 'toolcall.succeeded'), (11, 'toolcall.failed'),
    (12, 'toolcall.abandoned'), (13, 'toolcall.refused'),
    (14, 'session.opened'), (15, 'session.discarded'), (16, 'catalogue.changed');

-- events is the log. A column is NULL where the event's field is empty. An id that
-- is a UUID in lower case is a BLOB of its 16 bytes, any other is TEXT.
CREATE TABLE events (
    sequence    INTEGER PRIMARY KEY, -- from 1, no gaps
    id          ANY     NOT NULL,
    source      INTEGER NOT NULL,    -- names.id, like type, subject, config_key, actor
    type        INTEGER NOT NULL,
    subject     INTEGER,
    time        INTEGER,             -- Unix nanoseconds
    dataversion INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,    -- Unix nanoseconds
    config_key  INTEGER,
    run_id      ANY,
    attempt_id  ANY,
    call_id     ANY,
    actor       INTEGER,
    traceparent TEXT,
    data        BLOB    NOT NULL,    -- packed JSON, long texts by hash
    hash        BLOB    NOT NULL     -- SHA-256 over the hash before and the columns above
) STRICT;

CREATE UNIQUE INDEX events_id ON events (id, source);
CREATE INDEX events_subject ON events (subject) WHERE subject IS NOT NULL;
CREATE INDEX events_rare ON events (type) WHERE type > 16;
CREATE INDEX events_run ON events (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX events_call ON events (call_id) WHERE call_id IS NOT NULL;

-- contents holds long texts and documents, each once.
CREATE TABLE contents (
    hash     BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of body
    sequence INTEGER NOT NULL,             -- the event that first refers to it
    body     BLOB    NOT NULL
) STRICT;

-- head is one row: the last event, signed, so that a log that was cut shows.
CREATE TABLE head (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    sequence INTEGER NOT NULL,
    hash     BLOB    NOT NULL,
    mac      BLOB    NOT NULL -- HMAC-SHA-256 of sequence and hash
) STRICT;

-- clock_steps names the events recorded earlier than the event before them: between
-- two steps recorded_at never falls, so a time is found by bisection.
CREATE TABLE clock_steps (
    sequence INTEGER PRIMARY KEY
) STRICT;

-- snapshots are saved folds. They are no part of the log: deleting them costs time.
CREATE TABLE snapshots (
    version  TEXT    PRIMARY KEY,
    sequence INTEGER NOT NULL, -- folded up to here
    hash     BLOB    NOT NULL, -- of the event there
    mac      BLOB    NOT NULL, -- HMAC-SHA-256 of all the rest
    body     BLOB    NOT NULL
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER contents_no_update BEFORE UPDATE ON contents
BEGIN SELECT RAISE(ABORT, 'contents are never changed'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER contents_no_delete BEFORE DELETE ON contents
BEGIN SELECT RAISE(ABORT, 'contents are never removed'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER names_no_update BEFORE UPDATE ON names
BEGIN SELECT RAISE(ABORT, 'names are never changed'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER names_no_delete BEFORE DELETE ON names
BEGIN SELECT RAISE(ABORT, 'names are never removed'); END;
-- +goose StatementEnd
