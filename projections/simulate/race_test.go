//go:build race

package simulate_test

// underRace says that the race detector is on.
const underRace = true
