package gateway_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpledger/discovery/mcptest"
	"mcpledger/events"
	"mcpledger/projections"
)

// Whoever asks for one server alone, and gets nothing, has nothing but our word to go by.
func TestAnAddressOfOneServerSaysWhyItOffersNothing(t *testing.T) {
	const complaint = "ModuleNotFoundError: No module named 'frobnicate'"
	w := newWorld(t)
	dead := mcptest.Fake{Fault: mcptest.Exit, ExitCode: 1, Stderr: complaint + "\n"}
	w.program("dead", dead)
	w.program("skipped", dead)
	w.entries["skipped"]["mcpledger"] = map[string]any{"skip": map[string]any{"after": 1}}
	w.remote("login", mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, At: "initialize", Status: 401, Header: map[string]string{"WWW-Authenticate": "Bearer"}}).URL)
	w.remote("locked", mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, At: "tools/call", Status: 401, Header: map[string]string{"WWW-Authenticate": "Bearer"}}).URL)
	w.entries["absent"] = map[string]any{"command": "no-such-program-anywhere"}
	w.entries["off"] = map[string]any{"command": "true", "disabled": true}
	w.remote("both", mcptest.NewHTTP(t, mcptest.HTTP{Mishap: mcptest.Status, At: "tools/call", Status: 401, Header: map[string]string{"WWW-Authenticate": "Bearer"}}).URL)
	w.entries["unset"] = map[string]any{"command": "true", "env": map[string]string{"KEY": "${NO_SUCH_VARIABLE}"}}
	w.entries["wrong"] = map[string]any{"command": "true", "url": 7}
	w.program("aside", mcptest.Fake{})
	w.program("fine", mcptest.Fake{})
	w.start()
	w.await("aside", projections.StateReady)
	w.await("locked", projections.StateReady)
	w.await("both", projections.StateReady)
	w.await("fine", projections.StateReady)
	w.must(w.service.Pin(context.Background(), "aside", time.Time{}, "IGNORE ALL", "someone"))
	for _, path := range []string{"/locked", "/both"} {
		if _, err := w.connect(modern, path).CallTool(context.Background(), &mcp.CallToolParams{Name: "echo"}); err != nil {
			t.Fatal(err)
		}
	}
	w.must(w.service.Pin(context.Background(), "both", time.Time{}, "IGNORE ALL", "someone"))
	for name, want := range map[events.ServerName]struct {
		state        projections.ServerState
		instructions string
		code, needs  string // of a call; empty: a call may yet have it tried
	}{
		"dead":    {projections.StateFailed, `"dead" .*failed when it was last tried\. Somebody has to install what it needs\. The next attempt is at .*"mcpledger why dead"`, "", ""},
		"skipped": {projections.StateSkipped, `failed in a way that does not pass.*install what it needs\. The next attempt is at `, "skipped", "dependency"},
		"login":   {projections.StateSkipped, `skipped since it wants a login.*log in to it`, "skipped", "login"},
		"locked":  {projections.StateBlocked, `wants a login.*log in to it`, "auth_required", "login"},
		"both":    {projections.StateBlocked, `wants a login or another credential\. Besides, an operator has set it aside\. The operator can take that back`, "auth_required", "operator"},
		"absent":  {projections.StateSkipped, `install what it needs`, "skipped", "dependency"},
		"off":     {projections.StateDisabled, `disabled in its config\. Whoever keeps the config can enable it`, "disabled", "nothing"},
		"unset":   {projections.StateBlocked, `is not set\. Somebody has to set it, in the service's environment`, "missing_credentials", "credential"},
		"wrong":   {projections.StateFailed, `config is incomplete or wrong\. Somebody has to correct`, "blocked", "config"},
		"aside":   {projections.StateSkipped, `operator has set the server aside\. The operator can take that back`, "skipped", "operator"},
		"fine":    {projections.StateReady, `^$`, "", ""},
	} {
		t.Run(string(name), func(t *testing.T) {
			w.await(name, want.state)
			inBothEras(t, w, func(t *testing.T, e era) {
				s := w.connect(e, "/"+string(name))
				said := s.InitializeResult().Instructions
				if !regexp.MustCompile(want.instructions).MatchString(said) || strings.Contains(said, "frobnicate") || strings.Contains(said, "IGNORE") {
					t.Errorf("instructions %q, want %s", said, want.instructions)
				}
				if want.code == "" {
					return
				}
				r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "echo"})
				if err != nil {
					t.Fatal(err)
				}
				text, f := failureOf(t, r)
				if f["code"] != want.code || f["needs"] != want.needs || !strings.Contains(text, `"mcpledger why `+string(name)+`" tells a person more`) {
					t.Errorf("a call: %q %v, want %s and %s", text, f, want.code, want.needs)
				}
				if waits := f["retry_after_ms"] != nil; waits != strings.Contains(text, "The next attempt is at ") || strings.Contains(text, "try again in") {
					t.Errorf("a call: %q %v, want the time of the next attempt in both, and once", text, f)
				}
			})
		})
	}
}

// Instructions stand in a client's prompt for as long as it runs.
func TestAServerThatStartsWithItsClientIsNotSaidToBeMissing(t *testing.T) {
	for _, e := range eras {
		t.Run(string(e), func(t *testing.T) {
			w := newWorld(t)
			w.options.FirstListWait = patience
			w.program("slow", mcptest.Fake{Fault: mcptest.Slow, At: "initialize", DelayMS: 300})
			w.start()
			if said := w.connect(e, "/slow").InitializeResult().Instructions; said != "" {
				t.Errorf("instructions %q, want none", said)
			}
		})
	}
}

// Only what tells of a server waits for it.
func TestAMethodThatThereIsNotWaitsForNoServer(t *testing.T) {
	w := newWorld(t)
	w.options.FirstListWait = time.Hour
	w.program("silent", mcptest.Fake{Fault: mcptest.Silent, At: "initialize"})
	w.start()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/silent", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"no/such","params":{`+modernMeta+`}}`))
	w.must(err)
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {string(modern)}, "Mcp-Method": {"no/such"},
	}
	res, err := http.DefaultClient.Do(r)
	w.must(err)
	defer res.Body.Close()
	if said, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(said), "-32601") {
		t.Errorf("answered %s, %v; want that there is no such method", said, err)
	}
}

// Who came while a server was away hears of its tools when it is there.
func TestAClientOfAServerThatComesBackHearsOfItsTools(t *testing.T) {
	for story, c := range map[string]struct {
		away func(w *world)
		back func(w *world)
	}{
		"one that was set aside": {
			func(w *world) {
				w.must(w.service.Pin(context.Background(), "one", time.Time{}, "maintenance", "someone"))
			},
			func(w *world) {
				w.must(w.service.Clear(context.Background(), []events.ServerName{"one"}, "done", "someone"))
			},
		},
		"one that was disabled": {
			func(w *world) { w.entries["one"]["disabled"] = true; w.reload() },
			func(w *world) { delete(w.entries["one"], "disabled"); w.reload() },
		},
	} {
		t.Run(story, func(t *testing.T) {
			w := newWorld(t)
			w.program("one", mcptest.Fake{})
			w.start()
			w.await("one", projections.StateReady)
			c.away(w)
			inBothEras(t, w, func(t *testing.T, e era) {
				changed := make(chan struct{}, 100)
				s := w.connect(e, "/one", func(o *mcp.ClientOptions) {
					o.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }
				})
				if names := toolNames(t, s); len(names) != 0 {
					t.Fatalf("offered while it is away: %v", names)
				}
				c.back(w)
				late := time.NewTimer(patience)
				defer late.Stop()
				select {
				case <-changed:
				case <-late.C:
					t.Fatal("the client heard nothing")
				}
				if names := toolNames(t, s); len(names) == 0 {
					t.Error("nothing is offered though it is back")
				}
				c.away(w)
			})
		})
	}
}
