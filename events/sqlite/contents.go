package sqlite

import (
	"container/list"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"mcpledger/events"
)

// Content returns a long text or document by its hash. The bytes must not be
// changed.
func (l *Log) Content(ctx context.Context, hash string) ([]byte, error) {
	if body, ok := l.contents.get(hash); ok {
		return body, nil
	}
	body, err := selectContent(ctx, l.reads, hash)
	if errors.Is(err, events.ErrNotFound) {
		return nil, err
	}
	if err != nil {
		return nil, l.readError(ctx, err)
	}
	l.contents.put(hash, body)
	return body, nil
}

// rowQuerier is a database or a connection to one.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func selectContent(ctx context.Context, db rowQuerier, hash string) ([]byte, error) {
	key, err := parseDigest(hash)
	if err != nil {
		return nil, fmt.Errorf("content %q: %w", hash, events.ErrNotFound)
	}
	var body []byte
	err = db.QueryRowContext(ctx, "SELECT body FROM contents WHERE hash = ?", key[:]).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("content %q: %w", hash, events.ErrNotFound)
	}
	return body, err
}

// parseDigest reads a SHA-256 in hex.
func parseDigest(s string) (digest, error) {
	var d digest
	if len(s) != hex.EncodedLen(len(d)) {
		return d, fmt.Errorf("%q is no SHA-256", s)
	}
	_, err := hex.Decode(d[:], []byte(s))
	return d, err
}

// contentCache keeps the contents used last, up to a number of bytes.
type contentCache struct {
	mu     sync.Mutex
	limit  int64
	size   int64
	recent *list.List // of cachedContent, the last used first
	byHash map[string]*list.Element
}

type cachedContent struct {
	hash string
	body []byte
}

func newContentCache(limit int64) *contentCache {
	return &contentCache{limit: limit, recent: list.New(), byHash: map[string]*list.Element{}}
}

func (c *contentCache) get(hash string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byHash[hash]
	if !ok {
		return nil, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(cachedContent).body, true
}

func (c *contentCache) put(hash string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byHash[hash]; ok || int64(len(body)) > c.limit {
		return
	}
	c.byHash[hash] = c.recent.PushFront(cachedContent{hash, body})
	c.size += int64(len(body))
	for c.size > c.limit {
		last := c.recent.Back()
		old := c.recent.Remove(last).(cachedContent)
		delete(c.byHash, old.hash)
		c.size -= int64(len(old.body))
	}
}
