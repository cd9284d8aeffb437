// Package sqlite is the event log on disk: one SQLite database in a data folder.
//
// One process holds the log for writing, proven by a lock on a file beside the
// database; any number may read. A writer goroutine gathers the batches that are
// waiting into one transaction, so that many appenders share one sync to disk.
// Each event carries a hash over itself and the hash of the event before it, and a
// signed row names the last one, so that Verify finds what was changed, swapped,
// dropped or cut.
//
// The data folder holds
//
//	ledger.db     the events, the long texts they refer to, and snapshots of folds
//	ledger.lock   locked while a process writes; holds its pid
//	secret.key    32 random bytes, never part of the database, an export or,
//	              unless asked for, a backup
//
// The package knows how events are kept and nothing of what they mean.
package sqlite
