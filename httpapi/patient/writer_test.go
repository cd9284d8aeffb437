package patient_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"mcpledger/httpapi/patient"
)

const limit = 10 * time.Second

// client is one that takes a while over each write and flush; a write that waits fails
// when a deadline passes.
type client struct {
	http.ResponseWriter
	pause   time.Duration
	taken   int // bytes
	largest int // write

	deadline time.Time
	cut      chan struct{} // closed when the deadline passed
}

func newClient(pause time.Duration) *client {
	return &client{ResponseWriter: httptest.NewRecorder(), pause: pause, cut: make(chan struct{})}
}

func (c *client) SetWriteDeadline(t time.Time) error {
	if c.deadline = t; !t.IsZero() && t.Before(time.Now()) {
		close(c.cut)
	}
	return nil
}

func (c *client) wait() error {
	select {
	case <-time.After(c.pause):
		return nil
	case <-c.cut:
		return os.ErrDeadlineExceeded
	}
}

func (c *client) Write(b []byte) (int, error) {
	if err := c.wait(); err != nil {
		return 0, err
	}
	c.taken, c.largest = c.taken+len(b), max(c.largest, len(b))
	return len(b), nil
}

func (c *client) FlushError() error { return c.wait() }

func TestASlowClientGetsALargeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(limit - time.Second)
		w := patient.New(c, limit)
		answer := make([]byte, 1<<20)
		n, err := w.Write(answer)
		if n != len(answer) || c.taken != len(answer) || err != nil || w.FlushError() != nil {
			t.Errorf("%d of %d bytes, %d taken: %v", n, len(answer), c.taken, err)
		}
		if c.largest == len(answer) {
			t.Error("the whole answer was written under one limit")
		}
	})
}

func TestAClientThatTakesNothingIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for story, do := range map[string]func(*patient.Writer) error{
			"a write": func(w *patient.Writer) error {
				n, err := w.Write([]byte("hello"))
				if n != 0 {
					t.Errorf("%d bytes are said to be written", n)
				}
				return err
			},
			"a flush": (*patient.Writer).FlushError,
		} {
			began := time.Now()
			err := do(patient.New(newClient(time.Hour), limit))
			if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took != limit {
				t.Errorf("%s ended after %s: %v", story, took, err)
			}
		}
	})
}

// The limit may pass at the very moment at which a write is done.
func TestAWriteThatWasDoneCutsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			c := newClient(limit)
			w := patient.New(c, limit)
			_, err := w.Write([]byte("hello"))
			if err == nil && !c.deadline.IsZero() {
				t.Fatalf("a deadline of %s is left", c.deadline)
			}
		}
	})
}

// A writer without deadlines is waited for.
func TestAWriterWithoutDeadlinesIsNoError(t *testing.T) {
	w := patient.New(httptest.NewRecorder(), limit)
	if n, err := w.Write([]byte("hello")); n != 5 || err != nil || http.NewResponseController(w).Flush() != nil {
		t.Errorf("%d bytes: %v", n, err)
	}
}
