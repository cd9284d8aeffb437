package upstream

import (
	"os"
	"time"
)

// watched reports each read that brought something, and the end.
type watched struct {
	file   *os.File
	active func()
	ended  chan struct{} // closed at the end; may be nil
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.file.Read(p)
	if n > 0 {
		w.active()
	}
	if err != nil && w.ended != nil {
		close(w.ended)
		w.ended = nil
	}
	return n, err
}

// drain copies stderr until it ends.
func drain(src *watched, dst *capture) {
	buf := make([]byte, 8<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			_, _ = dst.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// waitFor reports whether done closed before the timer fired.
func waitFor(timer <-chan time.Time, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-timer:
		return false
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
