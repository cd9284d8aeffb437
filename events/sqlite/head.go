package sqlite

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"mcpledger/events"
)

// place is the end of the chain: the last event's sequence and hash.
type place struct {
	sequence int64
	hash     digest
}

// headOf gives the place in the form others note; the zero Head for an empty log.
func (p place) headOf() events.Head {
	if p.sequence == 0 {
		return events.Head{}
	}
	return events.Head{Sequence: events.Sequence(p.sequence), Hash: hexText(p.hash)}
}

// sign returns the signature of a place under the key of a data folder.
func (p place) sign(key []byte) []byte {
	mac := hmac.New(sha256.New, DeriveKey(key, "log head"))
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(p.sequence)))
	mac.Write(p.hash[:])
	return mac.Sum(nil)
}

// checkHead loads the end of the chain and compares it with the signed head. A key
// that was made just now signs what it finds.
func checkHead(ctx context.Context, s *store, keyCreated bool) error {
	if err := s.begin(); err != nil {
		return err
	}
	var signed place
	var hash, mac []byte
	err := s.conn.QueryRowContext(ctx, "SELECT sequence, hash, mac FROM head").Scan(&signed.sequence, &hash, &mac)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		s.rollback()
		return err
	}
	copy(signed.hash[:], hash)
	switch {
	case signed != s.head:
		err = fmt.Errorf("%w: the head names event %d, the last event is %d", events.ErrCorrupt, signed.sequence, s.head.sequence)
	case s.head.sequence > 0 && !keyCreated && !hmac.Equal(mac, signed.sign(s.key)):
		err = fmt.Errorf("%w: the head is not signed by %s", events.ErrCorrupt, keyFile)
	default:
		err = s.commit()
	}
	if err != nil {
		s.rollback()
	}
	return err
}
