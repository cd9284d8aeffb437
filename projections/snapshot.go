package projections

import (
	"fmt"
	"math"

	"github.com/fxamacker/cbor/v2"

	"mcpledger/projections/rules"
)

// A snapshot is CBOR (RFC 8949): a question about a past moment begins with reading
// one, and JSON takes three times as long. The names are those of the json tags.
var (
	snapshotEncoding = must(cbor.EncOptions{Sort: cbor.SortBytewiseLexical, Time: cbor.TimeRFC3339Nano}.EncMode())
	// Ids and names are whatever was appended, UTF-8 or not, and as many as there are.
	snapshotDecoding = must(cbor.DecOptions{
		UTF8: cbor.UTF8DecodeInvalid, MaxMapPairs: math.MaxInt32, MaxArrayElements: math.MaxInt32,
	}.DecMode())
)

func must[M any](mode M, err error) M {
	if err != nil {
		panic(err) // of constant options
	}
	return mode
}

// Restore returns the State of a snapshot taken under the same set.
func Restore(set *rules.Set, snapshot []byte) (*State, error) {
	s := New(set)
	if err := snapshotDecoding.Unmarshal(snapshot, &s.b); err != nil {
		return nil, fmt.Errorf("restore snapshot: %w", err)
	}
	return s, nil
}

// Snapshot returns the state as CBOR. Equal states give equal bytes.
func (s *State) Snapshot() ([]byte, error) { return snapshotEncoding.Marshal(s.b) }
