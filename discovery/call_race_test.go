//go:build race

package discovery_test

// raced says that the race detector is at work, which takes memory of its own.
const raced = true
