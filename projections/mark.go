package projections

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

// mark is the place of a snapshot, and what it was packed into while no store has it.
type mark struct {
	at   events.Sequence
	size int    // bytes it was packed into
	body []byte // nil for one that is in the store
}

// unstored reports that no store has the mark.
func (m mark) unstored() bool { return m.body != nil }

// errMarkLost reports a mark that is not where it was, or not what it was.
var errMarkLost = errors.New("mark lost")

// marksVersion names the stored form of the marks under the set with that hash.
func marksVersion(hash string) string { return "moments/" + FoldVersion + "/" + hash }

// deflaters keeps compressors between marks, since a new one costs a megabyte.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // of a constant level
	}
	return w
}}

// packMark compresses a snapshot: its length, a varint, and then DEFLATE (RFC 1951).
func packMark(snapshot []byte) ([]byte, error) {
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	var packed bytes.Buffer
	packed.Write(binary.AppendUvarint(nil, uint64(len(snapshot))))
	w.Reset(&packed)
	if _, err := w.Write(snapshot); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(packed.Bytes()), nil
}

// unpackMark returns the state of a mark under its set.
func unpackMark(set *rules.Set, packed []byte) (*State, error) {
	length, n := binary.Uvarint(packed)
	if n <= 0 {
		return nil, errors.New("unpack mark: no length")
	}
	snapshot := make([]byte, length)
	if _, err := io.ReadFull(flate.NewReader(bytes.NewReader(packed[n:])), snapshot); err != nil {
		return nil, fmt.Errorf("unpack mark: %w", err)
	}
	return Restore(set, snapshot)
}
