package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// The write-ahead log is copied into the database when it has passed
// checkpointBytes, beside the appends. Under load without a pause that never
// catches up, so past truncateBytes the appends wait for it.
const (
	checkpointBytes = 4 << 20
	truncateBytes   = 64 << 20
	checkpointEvery = 250 * time.Millisecond // at most
)

// checkpointer keeps the write-ahead log of a database short.
type checkpointer struct {
	db    *sql.DB // of its own, since a checkpoint takes as long as the disk does
	wal   string
	log   *slog.Logger
	grown <-chan struct{}
}

func (c *checkpointer) run(closing <-chan struct{}) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-closing:
			return
		}
		select {
		case <-c.grown:
		case <-closing:
			return
		}
		c.check()
		pause.Reset(checkpointEvery)
	}
}

func (c *checkpointer) check() {
	info, err := os.Stat(c.wal)
	if err != nil || info.Size() < checkpointBytes {
		return
	}
	mode := "PASSIVE"
	if info.Size() > truncateBytes {
		mode = "TRUNCATE"
	}
	if err := checkpoint(background, c.db, mode); err != nil {
		c.log.LogAttrs(background, slog.LevelWarn, "checkpoint", slog.Any("err", err))
	}
}

// checkpoint copies the write-ahead log into the database. What a reader or the
// writer still needs stays for the next time.
func checkpoint(ctx context.Context, db *sql.DB, mode string) error {
	if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint("+mode+")"); err != nil {
		return fmt.Errorf("checkpoint: %w", explain(err))
	}
	return nil
}
