package events_test

import (
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
