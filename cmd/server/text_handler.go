package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"mcpledger/projections"
)

// The keys that textHandler gives a place of their own.
const (
	serverKey = "server" // the server's name, in a column after the time
	stateKey  = "state"  // of that server, in a column in place of the message
	reasonKey = "reason" // a sentence, as it is
)

// textHandler is a slog.Handler for people: the time, the server if the record names
// one, its state or the message, the reason, then what else there is as key=value. A
// line for a skip reads
//
//	12:04:05  weather  skipped  No module named 'x': 3 identical failures, next attempt at 13:04
//
// Warnings and errors say so in front of the message; a server's state says it itself.
// Columns widen as longer names come and never shrink.
type textHandler struct {
	out    *alignedOutput
	attrs  []slog.Attr
	prefix string // of keys, from WithGroup; "" or "group."
}

// alignedOutput is what the handlers derived from one share.
type alignedOutput struct {
	mu          sync.Mutex
	w           io.Writer
	serverWidth int
	stateWidth  int
}

// The columns begin wide enough for what most servers are called and for every state.
const (
	usualServerWidth = 16
	maxColumnWidth   = 32
)

func newTextHandler(w io.Writer) *textHandler {
	return &textHandler{out: &alignedOutput{w: w, serverWidth: usualServerWidth, stateWidth: len(projections.StateDiscovering)}}
}

// Enabled reports whether the level is printed: those from info on are.
func (h *textHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// Handle prints one line.
func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	var server, state, reason string
	var rest strings.Builder
	add := func(prefix string, a slog.Attr) {
		switch key := prefix + a.Key; key {
		case serverKey:
			server = a.Value.String()
		case stateKey:
			state = a.Value.String()
		case reasonKey:
			reason = a.Value.String()
		default:
			writeAttr(&rest, key, a.Value)
		}
	}
	for _, a := range h.attrs {
		add("", a)
	}
	r.Attrs(func(a slog.Attr) bool {
		add(h.prefix, a)
		return true
	})

	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	parts := []string{r.Time.UTC().Format("15:04:05Z")}
	if server != "" {
		parts = append(parts, pad(oneLine(server), &h.out.serverWidth))
	}
	switch {
	case state != "":
		parts = append(parts, pad(state, &h.out.stateWidth))
	case r.Level >= slog.LevelWarn:
		parts = append(parts, strings.ToLower(r.Level.String())+": "+r.Message)
	default:
		parts = append(parts, r.Message)
	}
	if reason != "" {
		parts = append(parts, oneLine(reason))
	}
	if rest.Len() > 0 {
		parts = append(parts, rest.String()[1:])
	}
	_, err := fmt.Fprintln(h.out.w, strings.Join(parts, "  "))
	return err
}

// WithAttrs returns a handler whose lines also carry attrs.
func (h *textHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.attrs = append([]slog.Attr{}, h.attrs...)
	for _, a := range attrs {
		a.Key = h.prefix + a.Key
		derived.attrs = append(derived.attrs, a)
	}
	return &derived
}

// WithGroup returns a handler that puts name before the keys to come.
func (h *textHandler) WithGroup(name string) slog.Handler {
	derived := *h
	if name != "" {
		derived.prefix += name + "."
	}
	return &derived
}

func writeAttr(b *strings.Builder, key string, v slog.Value) {
	v = v.Resolve()
	if v.Kind() == slog.KindGroup {
		for _, a := range v.Group() {
			writeAttr(b, key+"."+a.Key, a.Value)
		}
		return
	}
	text := v.String()
	if v.Kind() == slog.KindTime {
		text = v.Time().UTC().Format("2006-01-02T15:04:05Z07:00")
	}
	if text == "" || strings.ContainsAny(text, " =\"") || strings.ContainsFunc(text, isUnprintable) {
		text = strconv.Quote(text)
	}
	b.WriteString(" " + key + "=" + text)
}

func isUnprintable(r rune) bool { return !unicode.IsPrint(r) }

// pad widens s to the column's width, which grows to fit s up to maxColumnWidth.
func pad(s string, width *int) string {
	n := len([]rune(s))
	*width = max(*width, min(n, maxColumnWidth))
	return s + strings.Repeat(" ", max(*width-n, 0))
}

// oneLine replaces whatever would break a line or move a terminal's cursor, and drops
// what would show the rest in another order, or is there and not seen.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
}
