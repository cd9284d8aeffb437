package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table prints rows in aligned columns under a line of headings. Nothing is printed
// before flush.
type table struct {
	out     io.Writer
	aligned *bytes.Buffer
	w       *tabwriter.Writer // into aligned
}

func newTable(out io.Writer, headings ...string) table {
	aligned := new(bytes.Buffer)
	t := table{out, aligned, tabwriter.NewWriter(aligned, 0, 0, 2, ' ', 0)}
	t.row(headings...)
	return t
}

// row adds a row, with a cell for each heading: where one lacks its last cells, the columns
// of those below it begin anew. Cells come from servers too, so what would break the line
// is replaced.
func (t table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// flush prints the rows, without the blanks that stand for empty cells at their ends.
func (t table) flush() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	var trimmed []byte
	for line := range bytes.Lines(t.aligned.Bytes()) {
		trimmed = append(append(trimmed, bytes.TrimRight(line, " \n")...), '\n')
	}
	_, err := t.out.Write(trimmed)
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
