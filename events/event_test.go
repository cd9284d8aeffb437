package events_test

import (
	"slices"
	"testing"

	"mcpledger/events"
)

func TestOnlyAKeyOfOursHasTwoParts(t *testing.T) {
	for key, want := range map[events.ConfigKey]string{
		"k1_qmkhbbptww5lbpw4.aajz4shhkgsewz6n": "k1_qmkhbbptww5lbpw4",
		"k1_qmkhbbptww5lbpw4":                  "k1_qmkhbbptww5lbpw4",
		"host.example.com/weather":             "host.example.com/weather",
		"v1.2":                                 "v1.2",
		events.DefaultConfigKey:                "x_default",
		"":                                     "",
	} {
		if got := key.Entry(); got != want {
			t.Errorf("the entry of %q is %q, want %q", key, got, want)
		}
	}
}

func TestEvidenceIsHeldByTheTypesThatAreNamedForIt(t *testing.T) {
	for _, typ := range events.Types() {
		d, err := events.DecodeData(typ, []byte(`{"evidence":{"error":"connection refused"}}`))
		if err != nil {
			t.Fatal(err)
		}
		holds := events.Event{Type: typ, Data: d}.Evidence() != nil
		if named := slices.Contains(events.EvidenceTypes, typ); holds != named {
			t.Errorf("%s holds evidence: %v, is named for it: %v", typ, holds, named)
		}
	}
}
