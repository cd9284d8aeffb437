package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"
)

// A person who interrupts a start has got what was asked for.
func TestAStopBeforeTheLogIsOpenIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("SIGINT"))
	var said bytes.Buffer
	p := &program{stdout: &said, stderr: &said, lookupEnv: os.LookupEnv, now: time.Now, dataDir: t.TempDir()}
	err := p.runService(ctx, serveOptions{listen: "127.0.0.1:0"}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Errorf("stopped while it started: %v", err)
	}
	if said.Len() > 0 {
		t.Errorf("it said %q", said.String())
	}
}
