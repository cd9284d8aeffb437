package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mcpledger/events"
	"mcpledger/migrations"
)

// DatabaseFile is the name of the database in a data folder.
const DatabaseFile = "ledger.db"

// Options of a log. Zero fields but Now have a default.
type Options struct {
	// Now is the clock that dates what is recorded. Required.
	Now func() time.Time
	// Logger is told when the log becomes unavailable and available again. Default:
	// nobody.
	Logger *slog.Logger
	// MaxGroup is how many events one transaction gathers, 256 by default.
	MaxGroup int
	// CacheBytes bounds the long texts kept in memory for reading, 16 MiB by default.
	CacheBytes int64
	// RetryEvery is how often a log that is unavailable looks, without an append,
	// whether it can be written again; 5 s by default.
	RetryEvery time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxGroup <= 0 {
		o.MaxGroup = 256
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.RetryEvery <= 0 {
		o.RetryEvery = 5 * time.Second
	}
	return o
}

const (
	defaultCacheBytes = 16 << 20
	readConns         = 4 // connections for reading
)

// Log is an event log in a data folder.
type Log struct {
	dir      string
	reads    *sql.DB
	names    *names
	contents *contentCache
	key      []byte // nil where there is none
	closing  chan struct{}
	close    func() error

	writer     *writer // nil in a log opened for reading
	keyCreated bool
}

var _ events.Log = (*Log)(nil)

// Open opens the log in dir for writing, and makes dir, key and database if they
// are missing. It returns events.ErrInUse while another process has it open,
// events.ErrNewer for one that a newer version wrote, events.ErrCorrupt for a
// damaged one and events.ErrUnavailable where it cannot write.
func Open(ctx context.Context, dir string, opts Options) (*Log, error) {
	if opts.Now == nil {
		return nil, errors.New("open log: Options.Now is missing")
	}
	opts = opts.withDefaults()
	h, err := hold(ctx, dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, DatabaseFile)
	reads, err := openDB(path, "ro", busyTimeout)
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	checkpoints, err := openDB(path, "rw", checkpointWait, writing...)
	if err != nil {
		return nil, errors.Join(err, reads.Close(), h.close())
	}
	l := newLog(dir, reads, h.store.key, opts.CacheBytes)
	l.keyCreated = h.keyCreated
	due := make(chan struct{}, 1)
	l.writer = &writer{
		store: h.store, dir: dir, now: opts.Now, log: opts.Logger, maxGroup: opts.MaxGroup, retry: opts.RetryEvery,
		requests: make(chan *request, opts.MaxGroup), closing: l.closing, closed: make(chan struct{}),
		committed: newBroadcast(), due: due,
	}
	head := h.store.head.headOf()
	l.writer.head.Store(&head)
	l.writer.announced.Store(int64(head.Sequence))
	c := &checkpointer{db: checkpoints, log: opts.Logger, due: due}

	var running sync.WaitGroup
	running.Go(l.writer.run)
	running.Go(func() { c.run(l.writer.closed) })
	l.close = sync.OnceValue(func() error {
		close(l.closing)
		running.Wait()
		return errors.Join(reads.Close(), checkpoints.Close(), h.close())
	})
	return l, nil
}

// holding is a data folder held for writing: its lock, and a store on its database.
type holding struct {
	lock       *os.File
	db         *sql.DB
	store      *store
	keyCreated bool // for events that were there before
}

// hold takes the folder dir for writing, making what is missing in it.
func hold(ctx context.Context, dir string) (h *holding, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open log in %s: %w", dir, explain(err)), h.close())
			h = nil
		}
	}()
	h = &holding{}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return h, unwritable(err)
	}
	if h.lock, err = acquire(ctx, dir); err != nil {
		return h, err
	}
	key, keyCreated, err := ensureKey(dir)
	if errors.Is(err, ErrDamagedKey) {
		return h, err
	}
	if err != nil {
		return h, unwritable(err)
	}
	path := filepath.Join(dir, DatabaseFile)
	if err := createPrivate(path); err != nil {
		return h, unwritable(err)
	}
	h.db, err = openDB(path, "rw", busyTimeout, writing...)
	if err != nil {
		return h, err
	}
	if err := migrations.Apply(ctx, h.db); err != nil {
		return h, schemaError(err)
	}
	if h.store, err = newStore(ctx, h.db, key); err != nil {
		return h, err
	}
	if err := checkHead(ctx, h.store, keyCreated); err != nil {
		return h, err
	}
	h.keyCreated = keyCreated && h.store.head.sequence > 0
	return h, nil
}

// close lets go of what is held, in whatever state hold left it.
func (h *holding) close() error {
	var errs []error
	if h.store != nil {
		errs = append(errs, h.store.close())
	}
	if h.db != nil {
		errs = append(errs, h.db.Close())
	}
	if h.lock != nil {
		errs = append(errs, h.lock.Close())
	}
	return errors.Join(errs...)
}

// OpenReader opens the log in dir for reading, whether or not a process has it open
// for writing. It creates and migrates nothing; Append returns ErrReadOnly and
// OnCommit's functions are never called. A log that was closed can be read where nothing
// can be written, too. The error is fs.ErrNotExist where there is no log, else as for
// Open.
func OpenReader(ctx context.Context, dir string) (*Log, error) {
	reads, err := openReads(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("open log in %s: %w", dir, err)
	}
	// Without a key snapshots cannot be trusted; all else can be read.
	key, err := LoadKey(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("open log in %s: %w", dir, err), reads.Close())
	}
	l := newLog(dir, reads, key, defaultCacheBytes)
	l.close = sync.OnceValue(func() error {
		close(l.closing)
		return reads.Close()
	})
	return l, nil
}

func newLog(dir string, reads *sql.DB, key []byte, cacheBytes int64) *Log {
	reads.SetMaxOpenConns(readConns)
	reads.SetMaxIdleConns(readConns)
	return &Log{
		dir: dir, reads: reads, names: &names{db: reads}, contents: newContentCache(cacheBytes),
		key: key, closing: make(chan struct{}),
	}
}

// Close ends the log after what is being appended is stored.
func (l *Log) Close() error { return l.close() }

func (l *Log) isClosed() bool {
	select {
	case <-l.closing:
		return true
	default:
		return false
	}
}

// KeyCreated reports that Open found events but no key, and made one. What was
// keyed by the old one, such as config keys, matches nothing any more.
func (l *Log) KeyCreated() bool { return l.keyCreated }

// createPrivate makes an empty file that only its owner can read, if there is none.
// SQLite gives the files beside it the same mode.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// schemaError adds the sentinel of package events to an error of migrations.
func schemaError(err error) error {
	if errors.Is(err, migrations.ErrNewer) {
		return fmt.Errorf("%w: %w", events.ErrNewer, err)
	}
	return err
}

func unwritable(err error) error {
	return fmt.Errorf("%w: %w", events.ErrUnavailable, err)
}
