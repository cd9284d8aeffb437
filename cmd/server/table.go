package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// table prints rows in aligned columns under a line of headings. Nothing is printed
// before flush.
type table struct {
	out  io.Writer
	rows [][]string
}

// maxColumn is how many characters a cell may have and still widen its column. A longer
// one, as the name of a server may be, moves the rest of its own row alone.
const maxColumn = 40

func newTable(out io.Writer, headings ...string) *table {
	t := &table{out: out}
	t.row(headings...)
	return t
}

// row adds a row, with a cell for each heading. Cells come from servers too, so what would
// break the line is replaced.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
	}
	t.rows = append(t.rows, cells)
}

// flush prints the rows, without the blanks that stand for empty cells at their ends.
func (t *table) flush() error {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, c := range row {
			if n := utf8.RuneCountInString(c); n <= maxColumn {
				widths[i] = max(widths[i], n)
			}
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		line := ""
		for i, c := range row {
			line += fmt.Sprintf("%-*s  ", widths[i], c)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(t.out, b.String())
	return err
}

// dash stands for an empty cell, so that columns can be counted.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// stampLayout is how times are printed: in UTC, as the sentences of the service have them
// and its logs elsewhere, so that no two clocks stand in one answer.
const stampLayout = "2006-01-02 15:04:05Z07:00"

// stamp writes a time as people read it; "-" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(stampLayout)
}

// readTime reads a time as RFC 3339 has it, or as stamp prints it.
func readTime(given string) (time.Time, error) {
	if t, err := time.Parse(stampLayout, given); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, given)
}

// milliseconds writes a duration given in milliseconds.
func milliseconds(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < time.Second {
		return fmt.Sprintf("%d ms", ms)
	}
	return d.Round(100 * time.Millisecond).String()
}
