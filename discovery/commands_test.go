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
		begun, err := r.Discover(context.Background(), nil, "", "tester")
		if err != nil || begun.RunID != "" {
			t.Errorf("run %q, %v", begun.RunID, err)
			return
		}
		<-begun.Done
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("it looks for something to do")
	}
}
