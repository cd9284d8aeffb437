package main

import (
	"fmt"
	"strings"
)

// progressBar shows on a terminal how far something is.
type progressBar struct {
	p     *program
	drawn string // as it stands there; empty: nothing does
	shown bool   // standard error is a terminal
}

func (p *program) newProgressBar() *progressBar {
	return &progressBar{p: p, shown: isTerminal(p.stderr)}
}

// barCells is the width of a full bar.
const barCells = 30

// show draws the bar; share is from 0 to 1.
func (b *progressBar) show(share float64) {
	if !b.shown {
		return
	}
	full := min(barCells, int(share*barCells))
	bar := fmt.Sprintf("\r[%s%s] %3.0f %%", strings.Repeat("#", full), strings.Repeat(".", barCells-full), share*100)
	if bar == b.drawn {
		return
	}
	fmt.Fprint(b.p.stderr, bar)
	b.drawn = bar
}

// end takes the bar away.
func (b *progressBar) end() {
	if b.drawn != "" {
		fmt.Fprintf(b.p.stderr, "\r%s\r", strings.Repeat(" ", barCells+8))
	}
}
