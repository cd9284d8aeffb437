package main

import "testing"

func TestDifferencesAreToldAsMoreOrFewer(t *testing.T) {
	for _, c := range []struct {
		n, ms int64
		want  string
	}{
		{0, 0, "as many attempts avoided"},
		{2, 270_000, "2 more attempts avoided (4m30s)"},
		{-1, -47, "1 fewer attempts avoided (47 ms)"},
		{0, 90_000, "as many attempts avoided (1m30s)"},
	} {
		if got := beside("attempts avoided", c.n, c.ms); got != c.want {
			t.Errorf("beside %d, %d ms: got %q, want %q", c.n, c.ms, got, c.want)
		}
	}
}
