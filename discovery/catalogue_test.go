package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// holey is a log that does not give some contents.
type holey struct {
	events.Log
	mu      sync.Mutex
	missing map[string]error // by hash
}

// Content implements events.Log.
func (l *holey) Content(ctx context.Context, hash string) ([]byte, error) {
	l.mu.Lock()
	err := l.missing[hash]
	l.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("content %q: %w", hash, err)
	}
	return l.Log.Content(ctx, hash)
}

func (l *holey) lose(hash string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing[hash] = err
}

// catalogues returns the changes recorded of a server's list of tools.
func (r *running) catalogues(name events.ServerName) []events.CatalogueChanged {
	r.w.t.Helper()
	var all []events.CatalogueChanged
	for _, e := range r.recorded(name, events.TypeCatalogueChanged) {
		all = append(all, e.Data.(events.CatalogueChanged))
	}
	return all
}

// describe returns the file that describes a fake, which is configured as "one" in w
// unless that is nil.
func describe(t *testing.T, w *world, f mcptest.Fake) (file string) {
	t.Helper()
	c, err := f.CommandIn(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if w != nil {
		w.entries["one"] = map[string]any{"command": c.Path, "args": c.Args, "env": c.Env}
	}
	for _, value := range c.Env {
		file = strings.TrimPrefix(value, "@")
	}
	return file
}

func TestACatalogueThatTheLogHasLostIsRecordedAnew(t *testing.T) {
	unreadable := errors.New("input/output error")
	for _, c := range []struct {
		story       string
		lost        error
		more        int // tools that the server has by then
		recorded    int // lists of tools, the first one included
		echoChanged bool
	}{
		{"nothing is lost, and the list is the same", nil, 0, 1, false},
		{"nothing is lost, and the list is another", nil, 1, 2, false},
		{"the same list again", events.ErrNotFound, 0, 2, false},
		{"another list", events.ErrNotFound, 1, 2, true},
		{"the same list, while the disk fails", unreadable, 0, 1, false},
		{"another list, while the disk fails", unreadable, 1, 1, false},
	} {
		t.Run(c.story, func(t *testing.T) {
			w := newWorld(t)
			log := &holey{missing: map[string]error{}}
			w.through = func(under events.Log) events.Log {
				log.Log = under
				return log
			}
			file := describe(t, w, mcptest.Fake{})
			r := w.start()
			known := r.awaitState("one", projections.StateReady).Catalogue
			r.await("one", "the end of the run, which a person's would join", func(projections.Server) bool {
				return len(r.recorded("", events.TypeDiscoveryRunCompleted)) == 1
			})
			log.lose(known.Content, c.lost)
			changed := describe(t, nil, mcptest.Fake{Tools: c.more})
			if err := os.Rename(changed, file); err != nil {
				t.Fatal(err)
			}
			r.discover("one")
			recorded := r.catalogues("one")
			if len(recorded) != c.recorded {
				t.Fatalf("recorded %d lists of tools, want %d", len(recorded), c.recorded)
			}
			if c.recorded == 1 {
				return
			}
			last := recorded[1]
			if len(last.Added) != c.more || len(last.Removed) != 0 || slices.Contains(last.Changed, "echo") != c.echoChanged {
				t.Errorf("added %q, removed %q, changed %q", last.Added, last.Removed, last.Changed)
			}
			if now := r.server("one").Catalogue; len(now.Names) != len(known.Names)+c.more {
				t.Errorf("tools %q, before %q", now.Names, known.Names)
			}
		})
	}
}
