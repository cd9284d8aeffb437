package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// The errors of a Log, for errors.Is.
var (
	// ErrInUse reports that another process holds the log for writing. Readers may
	// still open it.
	ErrInUse = errors.New("log in use")
	// ErrUnavailable reports that the log cannot be written now: the disk is full, or
	// the file not writable. Nothing of the batch was stored. The log tries anew at
	// the next append.
	ErrUnavailable = errors.New("log unavailable")
	// ErrConflict reports an event whose source and id are in the log with other
	// content. Nothing of the batch was stored.
	ErrConflict = errors.New("event id already used with other content")
	// ErrInvalid reports an event that no log takes: an empty type, source or id, or
	// one longer than 128 bytes.
	ErrInvalid = errors.New("invalid event")
	// ErrNotFound reports that there is no such event or content.
	ErrNotFound = errors.New("not found")
	// ErrCorrupt reports a log whose file or chain is damaged.
	ErrCorrupt = errors.New("log corrupt")
	// ErrNewer reports a log written by a newer version of this program.
	ErrNewer = errors.New("log written by a newer version")
	// ErrClosed reports a call on a closed log.
	ErrClosed = errors.New("log closed")
)

// ConflictError is the ErrConflict of one event.
type ConflictError struct {
	Index      int // of the event in its batch
	ID, Source string
}

// Error names the event.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: %q from %q", ErrConflict, e.ID, e.Source)
}

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// MaxIDBytes bounds ids, sources, types, subjects and config keys.
const MaxIDBytes = 128

// Log is the one immutable sequence of events. It is safe for concurrent use.
// Package events/eventstest has the suite that every implementation passes.
type Log interface {
	// Append stores batch in order, durable before it returns, all or nothing. An
	// event that is there already with the same source, id and content keeps its first
	// place and is counted as a duplicate. The events' Sequence, RecordedAt, Hash and
	// Raw are ignored; the log assigns them. It returns ErrInvalid, a *ConflictError or
	// ErrUnavailable. If ctx ends first the error is ctx's, and the batch may have
	// been stored.
	Append(ctx context.Context, batch []Event) (Receipt, error)

	// OnCommit registers fn to be called with the events of each commit, in log
	// order and equal to what Read gives, before any Append of that commit returns.
	// Head and Read know of them by then, so whoever registers first and reads then
	// misses none. Duplicates are not among them. fn must be quick and must not call
	// the log. It is called from one goroutine at a time.
	OnCommit(fn func(committed []Event))

	// Head returns the last event's place and hash; the zero Head for an empty log.
	Head(ctx context.Context) (Head, error)

	// Read yields the events that match q in order of sequence. It ends at the head
	// of the moment it reaches it. The first error is yielded and ends it.
	Read(ctx context.Context, q Query) iter.Seq2[Event, error]

	// Follow yields every event after the given sequence, then waits for new ones,
	// without gap or repeat, until ctx ends or the log closes. An event comes once
	// all that OnCommit registered were called with it.
	Follow(ctx context.Context, after Sequence) iter.Seq2[Event, error]

	// Content returns a long text or document by its hash; ErrNotFound.
	Content(ctx context.Context, hash string) ([]byte, error)

	// SequenceAt returns the largest sequence recorded at or before t, 0 if none.
	SequenceAt(ctx context.Context, t time.Time) (Sequence, error)

	// Close ends the log after what is being appended is stored.
	Close() error
}

// Receipt is what Append did.
type Receipt struct {
	// Sequences are the places of the batch's events, in its order, first places for
	// duplicates.
	Sequences  []Sequence
	Duplicates int
}

// Last returns the largest sequence of the receipt, 0 for an empty batch.
func (r Receipt) Last() Sequence {
	var last Sequence
	for _, s := range r.Sequences {
		last = max(last, s)
	}
	return last
}

// Head is a place in the log with the hash of the event there. Noted elsewhere it
// proves later that the log was not rolled back.
type Head struct {
	Sequence Sequence
	Hash     string
}

// String gives the form that verify takes: "N:HASH".
func (h Head) String() string { return fmt.Sprintf("%d:%s", h.Sequence, h.Hash) }

// Query selects events. Zero fields select all.
type Query struct {
	After     Sequence // exclusive
	Before    Sequence // exclusive; 0: no bound
	ID        string   // one event of each source; of one, together with Source
	Subject   ServerName
	Types     []Type // any of these
	Without   []Type // none of these
	Source    string
	ConfigKey ConfigKey
	RunID     string
	AttemptID string
	CallID    string
	Since     time.Time // Time at or after
	Until     time.Time // Time before
	Limit     int       // 0: no limit
	Desc      bool      // newest first
	// Bare leaves Raw and Hash empty. Folds need neither, and to give them takes a good
	// part of the time of a read.
	Bare bool
}
