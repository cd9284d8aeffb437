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

// Content returns a long text or document by its hash.
func (l *Log) Content(ctx context.Context, hash string) ([]byte, error) {
	content, err := l.content(ctx, hash)
	if err != nil {
		return nil, err
	}
	return content.Body(), nil
}

func (l *Log) content(ctx context.Context, hash string) (*events.Loaded, error) {
	if content, ok := l.contents.get(hash); ok {
		return content, nil
	}
	body, err := selectContent(ctx, l.reads, hash)
	if errors.Is(err, events.ErrNotFound) {
		return nil, err
	}
	if err != nil {
		return nil, l.readError(ctx, err)
	}
	return l.contents.put(hash, body), nil
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

// hexText gives a SHA-256 in hex.
func hexText(d digest) string {
	var text [2 * len(d)]byte
	hex.Encode(text[:], d[:])
	return string(text[:])
}

// parseDigest reads what hexText wrote.
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
	hash    string
	content *events.Loaded
}

// size is what a content takes in memory: its text, and the same as JSON.
func (c cachedContent) size() int64 { return 2 * int64(c.content.Len()) }

func newContentCache(limit int64) *contentCache {
	return &contentCache{limit: limit, recent: list.New(), byHash: map[string]*list.Element{}}
}

func (c *contentCache) get(hash string) (*events.Loaded, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byHash[hash]
	if !ok {
		return nil, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(cachedContent).content, true
}

func (c *contentCache) put(hash string, body []byte) *events.Loaded {
	added := cachedContent{hash, events.Load(body)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byHash[hash]; ok || added.size() > c.limit {
		return added.content
	}
	c.byHash[hash] = c.recent.PushFront(added)
	c.size += added.size()
	for c.size > c.limit {
		old := c.recent.Remove(c.recent.Back()).(cachedContent)
		delete(c.byHash, old.hash)
		c.size -= old.size()
	}
	return added.content
}
