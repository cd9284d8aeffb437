-- +goose Up

-- marks are snapshots kept along the log, for questions about past moments. They are
-- no part of the log: deleting them costs time.
CREATE TABLE marks (
    version  TEXT    NOT NULL,
    sequence INTEGER NOT NULL, -- folded up to here
    hash     BLOB    NOT NULL, -- of the event there
    mac      BLOB    NOT NULL, -- HMAC-SHA-256 of all the rest
    body     BLOB    NOT NULL,
    UNIQUE (version, sequence)
) STRICT;

-- They were one snapshot that held them all.
DELETE FROM snapshots WHERE version LIKE 'moments/%';
