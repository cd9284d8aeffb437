package discovery_test

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// watchMemory looks at the resident memory of the process from now on; peak ends it
// and returns the most that was seen, in bytes. What other tests left is given back
// first.
func watchMemory(t testing.TB) (peak func() int64) {
	t.Helper()
	debug.FreeOSMemory()
	quit, done := make(chan struct{}), make(chan struct{})
	most := int64(0)
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, resident(t))
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
	}()
	peak = sync.OnceValue(func() int64 {
		close(quit)
		<-done
		return most
	})
	t.Cleanup(func() { peak() })
	return peak
}

func resident(t testing.TB) int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Errorf("memory: %v", err)
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		t.Errorf("memory: %v", err)
	}
	return pages * int64(os.Getpagesize())
}
