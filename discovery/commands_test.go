package discovery_test

import (
	"context"
	"testing"
	"time"
)

func TestADiscoveryOfNoServersIsOverAtOnce(t *testing.T) {
	r := newWorld(t).start()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runID, done, err := r.Discover(context.Background(), nil, "", "tester")
		if err != nil || runID != "" {
			t.Errorf("run %q, %v", runID, err)
			return
		}
		<-done
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("it looks for something to do")
	}
}
