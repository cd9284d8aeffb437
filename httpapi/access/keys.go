package access

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Keys tells whose a presented secret is. It follows tokens.yaml: a token added or
// revoked there counts from the next request on. It is safe for concurrent use.
type Keys struct {
	dir      string
	operator *Hash // nil: there is no operator's token
	logger   *slog.Logger

	mu     sync.Mutex
	seen   fs.FileInfo // of the tokens.yaml last looked at; nil when there was none
	tokens []Token
}

// NewKeys returns the keys of the data folder dir, with the operator's secret; ""
// is none. A tokens.yaml that cannot be used is an error.
func NewKeys(dir, operator string, logger *slog.Logger) (*Keys, error) {
	k := &Keys{dir: dir, logger: logger}
	if operator != "" {
		hash := hashOf(operator)
		k.operator = &hash
	}
	k.seen = k.stat()
	tokens, err := ReadTokens(dir)
	if err != nil {
		return nil, err
	}
	k.tokens = tokens
	return k, nil
}

// Identify returns whose secret this is, and the hash it can later be looked up by;
// false for one that is not known, or expired at now.
func (k *Keys) Identify(ctx context.Context, secret string, now time.Time) (Identity, Hash, bool) {
	hash := hashOf(secret)
	id, ok := k.Lookup(ctx, hash, now)
	return id, hash, ok
}

// Lookup is Identify by the secret's hash.
func (k *Keys) Lookup(ctx context.Context, hash Hash, now time.Time) (Identity, bool) {
	if k.operator != nil && subtle.ConstantTimeCompare(hash[:], k.operator[:]) == 1 {
		return Identity{Name: OperatorName, Roles: []Role{Operate}}, true
	}
	// Every token is compared, so that the time tells nothing of which one it was.
	var found *Token
	for _, t := range k.current(ctx) {
		sum, err := hex.DecodeString(t.SHA256)
		if err == nil && subtle.ConstantTimeCompare(hash[:], sum) == 1 {
			found = &t
		}
	}
	if found == nil || (!found.Expires.IsZero() && !now.Before(found.Expires)) {
		return Identity{}, false
	}
	return Identity{Name: found.Name, Roles: found.Roles}, true
}

// current returns the tokens of the file as it is now. A file that has become
// unusable leaves the last good one in force, and says so once.
func (k *Keys) current(ctx context.Context) []Token {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.stat()
	if sameFile(k.seen, now) {
		return k.tokens
	}
	k.seen = now
	tokens, err := ReadTokens(k.dir)
	if err != nil {
		k.logger.ErrorContext(ctx, "tokens not reloaded, the last good ones stay in force", slog.Any("err", err))
		return k.tokens
	}
	k.tokens = tokens
	k.logger.InfoContext(ctx, "tokens reloaded", slog.Int("tokens", len(tokens)))
	return k.tokens
}

func (k *Keys) stat() fs.FileInfo {
	info, err := os.Stat(filepath.Join(k.dir, TokensFile))
	if err != nil {
		return nil
	}
	return info
}

func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}
