package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"mcpledger/httpapi/api"
)

func TestTimestampsAreUTCWithMillisecondsOrFiner(t *testing.T) {
	cet := time.FixedZone("CET", 3600)
	for want, at := range map[string]time.Time{
		`"2026-03-04T12:00:00.000Z"`:       time.Date(2026, 3, 4, 13, 0, 0, 0, cet),
		`"2026-03-04T12:00:00.100Z"`:       time.Date(2026, 3, 4, 12, 0, 0, 1e8, time.UTC),
		`"2026-03-04T12:00:00.100000001Z"`: time.Date(2026, 3, 4, 12, 0, 0, 1e8+1, time.UTC),
	} {
		got, err := json.Marshal(api.Timestamp(at))
		if err != nil || string(got) != want {
			t.Errorf("%v: %s, %v; want %s", at, got, err, want)
		}
		var back api.Timestamp
		if err := json.Unmarshal(got, &back); err != nil || !back.Time().Equal(at) {
			t.Errorf("%s came back as %v, %v", got, back.Time(), err)
		}
	}
	if api.NewTimestamp(time.Time{}) != nil {
		t.Error("the zero time is shown")
	}
	var bad api.Timestamp
	if json.Unmarshal([]byte(`"noon"`), &bad) == nil {
		t.Error("noon was taken for a time")
	}
}
