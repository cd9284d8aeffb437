package events

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
)

// codecs has one entry per known type of event.
var codecs = map[Type]codec{}

// codec decodes the payloads of one type.
type codec struct {
	quickly func(d *decoder, stored []byte) (Data, bool) // false where slowly decides
	slowly  func(raw json.RawMessage) (Data, error)
}

func init() {
	register[ServiceStarted]()
	register[ServiceStopped]()
	register[ConfigLoaded]()
	register[ConfigRejected]()
	register[ServerConfigured]()
	register[ServerRemoved]()
	register[DiscoveryRunStarted]()
	register[DiscoveryRunCompleted]()
	register[DiscoveryStarted]()
	register[DiscoverySucceeded]()
	register[DiscoveryFailed]()
	register[DiscoveryCancelled]()
	register[DiscoveryAbandoned]()
	register[DiscoverySkipped]()
	register[CatalogueChanged]()
	register[ToolCallStarted]()
	register[ToolCallSucceeded]()
	register[ToolCallFailed]()
	register[ToolCallAbandoned]()
	register[ToolCallRefused]()
	register[SessionOpened]()
	register[SessionDiscarded]()
	register[SkipPinned]()
	register[SkipCleared]()
	register[SkipRequalified]()
	register[RulesActivated]()
	register[LogImported]()
}

func register[D Data]() {
	var zero D
	shape := newShape(reflect.TypeFor[D]())
	// A payload is decoded in a place that is used again: decoded in one of its own it
	// would be allocated twice, there and as a Data.
	places := sync.Pool{New: func() any { return new(D) }}
	codecs[zero.EventType()] = codec{
		quickly: func(d *decoder, stored []byte) (Data, bool) {
			place := places.Get().(*D)
			rest, ok := shape.decode(d, stored, reflect.ValueOf(place).Elem())
			data := *place
			*place = zero
			places.Put(place)
			return data, ok && len(rest) == 0
		},
		slowly: func(raw json.RawMessage) (Data, error) {
			var data D
			err := json.Unmarshal(raw, &data)
			return data, err
		},
	}
}

// Types lists the types of event that this program knows, by name.
func Types() []Type { return slices.Sorted(maps.Keys(codecs)) }

// DecodeData reads a payload's JSON, long texts inline. A type it does not know
// gives Unknown and no error.
func DecodeData(t Type, raw json.RawMessage) (Data, error) {
	c, known := codecs[t]
	if !known {
		return Unknown{Type: t, JSON: raw}, nil
	}
	if data, ok := c.quickly(&decoder{}, raw); ok {
		return data, nil
	}
	data, err := c.slowly(raw)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", t, err)
	}
	return data, nil
}
