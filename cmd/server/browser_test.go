//go:build e2e

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpledger/httpapi/access"
)

// playwright drives the browser; it brings none of its own.
const playwright = "playwright-core@1.65.1"

// dashboardSeen is what testdata/browser/dashboard.mjs found on the page.
type dashboardSeen struct {
	Address   string   `json:"address"`
	Rows      []string `json:"rows"`
	BoldNames int      `json:"boldNames"`
	Detail    string   `json:"detail"`
	Errors    []string `json:"errors"`

	WrongToken      string `json:"wrongToken"`      // where one signs in, after a token that is none
	Refused         string `json:"refused"`         // in the details, after an act that was refused with "made up"
	FocusAfterAct   string `json:"focusAfterAct"`   // the text of the element that has it
	FocusAfterClose string `json:"focusAfterClose"` // of the details
	ReasonFits      bool   `json:"reasonFits"`      // into a window of 360 pixels
	Faults          string `json:"faults"`          // of the config
	LastAttempt     string `json:"lastAttempt"`     // of the server, where the browser's clock is a day ahead
}

func TestE2EDashboardShowsEveryServerInABrowser(t *testing.T) {
	work := t.TempDir()
	service := startService(t, work, map[string]any{
		"toolbox":     map[string]any{"command": "server", "args": []string{"sample-server", "toolbox"}},
		"aside":       map[string]any{"command": "server", "args": []string{"sample-server", "toolbox"}},
		"broken":      map[string]any{"command": "server", "args": []string{"sample-server", "import-error"}},
		"<b>bold</b>": map[string]any{"command": "server", "args": []string{"sample-server", "toolbox"}},
		"":            map[string]any{"command": "server"},
	})
	service.settledTools(t)
	token, err := access.ReadOperatorToken(filepath.Join(work, "data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := newNetworkClient(service.base, token).ask(t.Context(), http.MethodPut, "/api/servers/aside/skip", nil, map[string]any{}, nil); err != nil {
		t.Fatal(err)
	}

	seen := browse(t, service.base+"/#token="+token, "broken")
	for _, want := range []struct{ server, says string }{
		{"toolbox", "ready"}, {"aside", "skipped"}, {"aside", "0 of 3"}, {"broken", "failed"}, {"<b>bold</b>", "ready"},
	} {
		if !slices.ContainsFunc(seen.Rows, func(row string) bool {
			return strings.HasPrefix(row, want.server) && strings.Contains(row, want.says)
		}) {
			t.Errorf("no row of %s says %q", want.server, want.says)
		}
	}
	if seen.BoldNames > 0 {
		t.Error("a server's name became part of the page")
	}
	if !strings.Contains(seen.Detail, "reportlib") {
		t.Error("the details do not say what is missing")
	}
	if strings.Contains(seen.Address, token) {
		t.Error("the token stays in the address")
	}
	if !strings.Contains(seen.WrongToken, "the token is not known") {
		t.Error("a token that is none is refused in silence")
	}
	if seen.Refused != "Refused: made up" {
		t.Error("an act is refused in silence")
	}
	if seen.FocusAfterAct != "Discover now" || seen.FocusAfterClose != "broken" {
		t.Error("who uses the keyboard loses the place")
	}
	if !seen.ReasonFits {
		t.Error("a narrow window does not show why")
	}
	if !strings.Contains(seen.Faults, "a server has no name") {
		t.Error("nothing tells what is wrong in the config")
	}
	if !strings.HasPrefix(seen.LastAttempt, "failed ") || strings.Contains(seen.LastAttempt, "day") {
		t.Error("times are told by the browser's clock")
	}
	if len(seen.Errors) > 0 {
		t.Errorf("the browser complains: %q", seen.Errors)
	}
	if t.Failed() {
		t.Logf("the page: %+v", seen)
	}
}

// browserTries is how often a browser is started at most that crashes of itself.
const browserTries = 3

// browserCrashed is what is printed of a browser that did.
var browserCrashed = regexp.MustCompile(`browser has been closed|(?:Page|Target) crashed|signal=SIG(?:SEGV|ILL|TRAP|BUS|ABRT)`)

// browse opens the dashboard in headless Chromium by the link that signs in, and
// the details of one server on it.
func browse(t *testing.T, link, server string) dashboardSeen {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("chromium is not installed: apt-get install chromium")
	}
	modules := npmInstall(t, playwright)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var out []byte
	for try := 1; ; try++ {
		cmd := exec.CommandContext(ctx, "node", "testdata/browser/dashboard.mjs", chromium, link, server)
		cmd.Env = append(os.Environ(), "NODE_PATH="+modules, "HOME="+t.TempDir())
		cmd.WaitDelay = 5 * time.Second
		if out, err = cmd.Output(); err == nil {
			break
		}
		complaint := ""
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			complaint = string(exit.Stderr)
		}
		if try == browserTries || !browserCrashed.MatchString(complaint) {
			t.Fatalf("browse: %v\n%s", err, complaint)
		}
		t.Logf("the browser crashed, it is started again: %v\n%s", err, complaint)
	}
	var seen dashboardSeen
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatal(err)
	}
	return seen
}
