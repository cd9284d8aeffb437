package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// trimEvery is how often the process gives back what it does not use.
	trimEvery = 30 * time.Second
	// headroomBytes is how much garbage may gather before it is collected, as far as
	// the bounds of the percentage let it. A heap that is twice what is alive is cheap
	// while little is, and too much for a fleet of a thousand servers.
	headroomBytes = 16 << 20
	// leastGCPercent keeps a large heap from being collected all the time;
	// mostGCPercent is Go's own.
	leastGCPercent, mostGCPercent = 40, 100
)

// keepSmall holds the process's memory near what is alive, until ctx ends. A burst,
// such as a large answer or a question about the past, leaves a heap that Go would
// fill again before it collects, and return only over minutes. GOGC in the
// environment is left in force.
func keepSmall(ctx context.Context) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	_, given := os.LookupEnv("GOGC")
	for {
		if !given {
			debug.SetGCPercent(gcPercent(liveBytes()))
		}
		select {
		case <-tick.C:
			debug.FreeOSMemory()
		case <-ctx.Done():
			return
		}
	}
}

// gcPercent returns how much the heap may grow over what is alive.
func gcPercent(live uint64) int {
	return int(min(max(100*headroomBytes/max(live, 1), leastGCPercent), mostGCPercent))
}

// liveBytes returns how much of the heap the last collection found alive.
func liveBytes() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
