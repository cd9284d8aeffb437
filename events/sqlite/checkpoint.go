package sqlite

import (
	"database/sql"
	"log/slog"
	"time"
)

const (
	// checkpointCommits is how many commits one checkpoint takes into the database.
	// Each has some ten pages of 4 KiB.
	checkpointCommits = 128
	// checkpointWait is how long a checkpoint holds up the appends to wait for those
	// who read an older state.
	checkpointWait = 20 * time.Millisecond
)

// checkpointer copies the write-ahead log into the database, beside the appends.
// SQLite begins to write at the start of the file again once all of it is copied;
// that is what keeps it short, and a sync of a file that does not grow is quick.
// Under load without a pause the copying would never catch up on its own, so the
// last bit is copied while the appends wait.
type checkpointer struct {
	db  *sql.DB // of its own, for it waits for no lock longer than checkpointWait
	log *slog.Logger
	due <-chan struct{}
}

func (c *checkpointer) run(closed <-chan struct{}) {
	for {
		select {
		case <-c.due:
		case <-closed:
			return
		}
		for _, mode := range []string{"PASSIVE", "FULL"} {
			if _, err := c.db.ExecContext(background, "PRAGMA wal_checkpoint("+mode+")"); err != nil {
				c.log.LogAttrs(background, slog.LevelWarn, "checkpoint put off", slog.Any("err", err))
			}
		}
	}
}
