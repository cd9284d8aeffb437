package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table prints rows in aligned columns under a line of headings. Nothing is printed
// before flush.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, headings ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(headings...)
	return t
}

// row adds a row. Cells come from servers too, so what would break the line is
// replaced.
func (t table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
	}
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t "))
}

func (t table) flush() error { return t.w.Flush() }

// dash stands for an empty cell, so that columns can be counted.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// stamp writes a time as people read it, in their time zone; "-" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// milliseconds writes a duration given in milliseconds.
func milliseconds(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < time.Second {
		return fmt.Sprintf("%d ms", ms)
	}
	return d.Round(100 * time.Millisecond).String()
}
