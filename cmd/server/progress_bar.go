package main

import (
	"fmt"
	"strings"
)

// progressBar shows on a terminal how far something is.
type progressBar struct {
	p     *program
	drawn string // as it stands there; empty: nothing does
	cells int    // of a full bar; 0 where standard error is no terminal, or has no place
}

func (p *program) newProgressBar() *progressBar {
	return &progressBar{p: p, cells: max(0, min(mostBarCells, terminalWidth(p.stderr)-barFrame-1))}
}

// mostBarCells is the width of a full bar where there is place, and barFrame that of what
// stands around it.
const (
	mostBarCells = 30
	barFrame     = len("[] 100 %")
)

// show draws the bar; share is from 0 to 1.
func (b *progressBar) show(share float64) {
	if b.cells == 0 {
		return
	}
	full := min(b.cells, int(share*float64(b.cells)))
	bar := fmt.Sprintf("\r[%s%s] %3.0f %%", strings.Repeat("#", full), strings.Repeat(".", b.cells-full), share*100)
	if bar == b.drawn {
		return
	}
	fmt.Fprint(b.p.stderr, bar)
	b.drawn = bar
}

// end takes the bar away.
func (b *progressBar) end() {
	if b.drawn != "" {
		fmt.Fprintf(b.p.stderr, "\r%s\r", strings.Repeat(" ", b.cells+barFrame))
	}
}
