package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

func TestAHealthyServerTellsWhatItIs(t *testing.T) {
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			info := open(t, c.target(t)).Info()
			want := upstream.Info{
				ProtocolVersion: "2025-11-25",
				Era:             upstream.EraLegacy,
				Server:          events.ServerInfo{Name: "fake", Version: "1.2.3", Title: "A fake"},
				Capabilities:    json.RawMessage(`{"tools":{"listChanged":true}}`),
				Instructions:    "Ask kindly.",
				ProcessGroup:    info.ProcessGroup,
			}
			if strings.HasSuffix(c.name, "2026-07-28") {
				want.ProtocolVersion, want.Era = "2026-07-28", upstream.EraModern
			}
			if diff := cmp.Diff(want, info); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
			if (info.ProcessGroup != 0) != strings.HasPrefix(c.name, "stdio") {
				t.Errorf("process group %d", info.ProcessGroup)
			}
		})
	}
}

func TestTheEraIsFoundAndRemembered(t *testing.T) {
	tests := []struct {
		name     string
		server   mcptest.Era
		hint     upstream.Era
		want     upstream.Era
		launches int
	}{
		{"a legacy server", mcptest.Legacy, upstream.EraAuto, upstream.EraLegacy, 1},
		{"a modern server refuses initialize and is asked to discover", mcptest.Modern, upstream.EraAuto, upstream.EraModern, 1},
		{"a server of both eras is taken at its first word", mcptest.Both, upstream.EraAuto, upstream.EraLegacy, 1},
		{"a server known as modern", mcptest.Both, upstream.EraModern, upstream.EraModern, 1},
		{"a server known as legacy that speaks both is not asked twice", mcptest.Both, upstream.EraLegacy, upstream.EraLegacy, 1},
		{"a server no longer legacy refuses initialize and is asked to discover", mcptest.Modern, upstream.EraLegacy, upstream.EraModern, 1},
		{"a server no longer modern is started anew", mcptest.Spoilt, upstream.EraModern, upstream.EraLegacy, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkLeaks(t)
			launches := filepath.Join(t.TempDir(), "launches")
			server := target(mcptest.Fake{Era: tt.server, Launches: launches})
			server.Era = tt.hint
			s := open(t, server)
			if got := s.Info().Era; got != tt.want {
				t.Errorf("era %q, want %q", got, tt.want)
			}
			if got := mcptest.Launches(launches); got != tt.launches {
				t.Errorf("%d launches, want %d", got, tt.launches)
			}
			if _, err := s.CallTool(t.Context(), "echo", nil, upstream.CallOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnAttemptThatIsStoppedIsNoFailureOfTheServer(t *testing.T) {
	checkLeaks(t)
	launches := filepath.Join(t.TempDir(), "launches")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer once(launched(launches))(time.Time{}, func() { cancel(errors.New("shutdown")) }).Stop()
	_, err := upstream.Open(ctx, target(mcptest.Fake{Fault: mcptest.Silent, Launches: launches}))
	wantEvidence(t, evidenceOf(t, err), events.Evidence{
		Phase: events.PhaseHandshake, Transport: events.TransportStdio, Command: "fake",
		Error: "shutdown", ErrorKind: events.KindCancelled, EndedBy: events.EndedByUs,
	})
}

func TestASilentServerIsAskedOnce(t *testing.T) {
	checkLeaks(t)
	launches := filepath.Join(t.TempDir(), "launches")
	server := target(mcptest.Fake{Fault: mcptest.Silent, Launches: launches})
	server.At = once(launched(launches))
	openFails(t, server)
	if got := mcptest.Launches(launches); got != 1 {
		t.Errorf("%d launches, want 1", got)
	}
}
