package main

import (
	"net"
	"testing"
	"time"

	"mcpledger/discovery/mcptest"
)

func TestAStartWaitsForThePortOfAServiceThatEnds(t *testing.T) {
	before, err := net.Listen("tcp", mcptest.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = before.Close() })
	after, err := listen(t.Context(), before.Addr().String())
	if err != nil {
		t.Fatalf("the port is free in a moment: %v", err)
	}
	if err := after.Close(); err != nil {
		t.Error(err)
	}
}
