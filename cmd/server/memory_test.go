package main

import "testing"

func TestAHeapMayGrowTheMoreTheLessIsAlive(t *testing.T) {
	tests := []struct {
		name string
		live uint64
		want int
	}{
		{"nothing was collected yet", 0, mostGCPercent},
		{"a small fleet has room", 2 << 20, mostGCPercent},
		{"as much as the headroom may double", headroomBytes, 100},
		{"twice as much may grow by half", 2 * headroomBytes, 50},
		{"a large one is not collected all the time", 1 << 30, leastGCPercent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := gcPercent(tt.live); got != tt.want {
				t.Errorf("%d bytes alive: %d %%, want %d %%", tt.live, got, tt.want)
			}
		})
	}
}
