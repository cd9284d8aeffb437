package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestTextLogIsReadAtAGlance(t *testing.T) {
	at := time.Date(2026, 3, 4, 7, 4, 5, 0, time.FixedZone("EST", -5*3600))
	tests := []struct {
		name  string
		level slog.Level
		msg   string
		attrs []slog.Attr
		want  string
	}{
		{
			"a server's transition is its name, its state and the reason",
			slog.LevelInfo, "server skipped",
			[]slog.Attr{slog.String("server", "weather"), slog.String("state", "skipped"), slog.String("reason", "No module named 'x': 3 identical failures")},
			"12:04:05Z  weather           skipped      No module named 'x': 3 identical failures\n",
		},
		{
			"a warning says that it is one",
			slog.LevelWarn, "snapshot not saved",
			[]slog.Attr{slog.Any("err", errors.New("disk full"))},
			"12:04:05Z  warn: snapshot not saved  err=\"disk full\"\n",
		},
		{
			"a server cannot break the line nor move the cursor",
			slog.LevelInfo, "server failed",
			[]slog.Attr{slog.String("server", "a\nb"), slog.String("state", "failed"), slog.String("reason", "\x1b[2Jgone\r\n12:00:00  fake")},
			"12:04:05Z  a b               failed        [2Jgone  12:00:00  fake\n",
		},
		{
			"nor turn it round or hide in it",
			slog.LevelInfo, "server failed",
			[]slog.Attr{slog.String("server", "a\u202eb"), slog.String("state", "failed"), slog.String("reason", "x\u2066y\u200bz\u2028end"), slog.String("path", "\x1b\u202eevil")},
			"12:04:05Z  ab                failed       xyz end  path=\"\\x1b\\u202eevil\"\n",
		},
		{
			"groups are written as prefixes",
			slog.LevelInfo, "started",
			[]slog.Attr{slog.Group("http", slog.Int("port", 80))},
			"12:04:05Z  started  http.port=80\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			r := slog.NewRecord(at, tt.level, tt.msg, 0)
			r.AddAttrs(tt.attrs...)
			if err := newTextHandler(&out).Handle(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if out.String() != tt.want {
				t.Errorf("got  %q\nwant %q", out.String(), tt.want)
			}
		})
	}
}

func TestTextLogKeepsItsColumns(t *testing.T) {
	var out strings.Builder
	log := slog.New(newTextHandler(&out))
	for _, name := range []string{"git", "google-sheets"} {
		log.LogAttrs(t.Context(), slog.LevelInfo, "server ready",
			slog.String("server", name), slog.String("state", "ready"), slog.String("reason", "3 tools"))
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || strings.Index(lines[0], "3 tools") != strings.Index(lines[1], "3 tools") {
		t.Errorf("the reasons are not in one column:\n%s", out.String())
	}
}

func TestTextLogHandlersShareWhatTheyWereGiven(t *testing.T) {
	var out strings.Builder
	log := slog.New(newTextHandler(&out)).With(slog.String("server", "git")).WithGroup("call")
	log.LogAttrs(t.Context(), slog.LevelInfo, "slow", slog.Int("ms", 12))
	log.LogAttrs(t.Context(), slog.LevelDebug, "not printed")
	if got := out.String()[len("12:04:05Z"):]; got != "  git               slow  call.ms=12\n" {
		t.Errorf("got %q", got)
	}
}
