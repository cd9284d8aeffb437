package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// usualWidth is the width of a terminal that does not tell its own, in characters.
const usualWidth = 80

// terminalWidth returns how many characters wide the terminal is that w is, so that what
// is written is seen by somebody at once; 0 where it is none.
func terminalWidth(w io.Writer) int {
	if out, ok := w.(*output); ok {
		w = out.w
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	switch {
	case err != nil:
		return 0
	case size.Col == 0:
		return usualWidth
	}
	return int(size.Col)
}
