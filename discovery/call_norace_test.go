//go:build !race

package discovery_test

const raced = false
