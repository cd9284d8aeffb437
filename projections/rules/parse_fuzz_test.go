package rules_test

import (
	"errors"
	"os"
	"testing"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	for _, name := range rules.BuiltinNames() {
		text, err := os.ReadFile("sets/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := rules.Parse("fuzz.yaml", text)
		if err != nil {
			if _, ok := errors.AsType[rules.ParseErrors](err); !ok {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		s.Check()
		s.Classify(events.Evidence{Error: "connection refused"})
	})
}
