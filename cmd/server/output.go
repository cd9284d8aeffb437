package main

import (
	"fmt"
	"io"
	"sync"
)

// output is where a command prints. It remembers the first print that failed, so that
// no command has to look after each of its lines: a command whose output is lost, on a
// disk that is full, has failed.
type output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = fmt.Errorf("print the answer: %w", err)
		}
	}
	return n, err
}

// lost returns why something could not be printed, nil if all was.
func (o *output) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
