package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"mcpledger/events"
)

func TestTheLineThatIsDrawnAnewFitsTheTerminal(t *testing.T) {
	for _, width := range []int{1, 2, 10, 40, 80, 200} {
		var shown bytes.Buffer
		v := &discoverView{w: &shown, width: width, now: time.Now, began: time.Now(), planned: 9}
		for _, name := range []events.ServerName{"a-server-with-a-long-name", "another-server-with-a-long-name", "größer"} {
			v.begin(name, "started")
		}
		v.draw()
		lines := strings.Split(shown.String(), "\r")
		if last := []rune(lines[len(lines)-1]); len(last) >= max(width, 2) || (width == 200 && !strings.HasSuffix(string(last), "größer")) {
			t.Errorf("on %d columns the line has %d: %q", width, len(last), string(last))
		}
	}
}
