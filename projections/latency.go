package projections

import (
	"fmt"
	"math"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

// Bounds of a latency: one part in a hundred, over at most so many bins. From one
// millisecond they reach half a day; what is slower makes the fastest less exact.
const (
	latencyAccuracy = 0.01
	latencyBins     = 900
)

// latencyBuckets places milliseconds in bins. The accuracy is valid.
var latencyBuckets, _ = mapping.NewLogarithmicMapping(latencyAccuracy)

func newLatencyBins() store.Store { return store.NewCollapsingLowestDenseStore(latencyBins) }

// latency is how long calls took, in milliseconds, in bounded space: a DDSketch. The
// zero latency has none.
type latency struct{ sketch *ddsketch.DDSketch }

// add counts one call. A clock that was set back counts as no time at all.
func (l *latency) add(ms int64) {
	if l.sketch == nil {
		l.sketch = ddsketch.NewDDSketchFromStoreProvider(latencyBuckets, newLatencyBins)
	}
	_ = l.sketch.Add(float64(max(ms, 0))) // any int64 can be placed
}

// quantile returns the time within which that part of the calls was done.
func (l latency) quantile(q float64) int64 {
	if l.sketch == nil {
		return 0
	}
	ms, err := l.sketch.GetValueAtQuantile(q)
	if err != nil {
		return 0
	}
	return int64(math.Round(ms))
}

// IsZero reports whether no call was counted.
func (l latency) IsZero() bool { return l.sketch == nil }

// MarshalBinary gives the sketch's own encoding. Equal sketches give equal bytes.
func (l latency) MarshalBinary() ([]byte, error) {
	var b []byte
	if l.sketch != nil {
		l.sketch.Encode(&b, true)
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (l *latency) UnmarshalBinary(b []byte) error {
	sketch, err := ddsketch.DecodeDDSketch(b, newLatencyBins, latencyBuckets)
	if err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	l.sketch = sketch
	return nil
}
