//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestE2EDashboardShowsEveryServerInABrowser(t *testing.T) {
	work := t.TempDir()
	service := startService(t, work, map[string]any{
		"toolbox": map[string]any{"command": "server", "args": []string{"sample-server", "toolbox"}},
		"broken":  map[string]any{"command": "server", "args": []string{"sample-server", "import-error"}},
		"<b>bold": map[string]any{"command": "server", "args": []string{"sample-server", "toolbox"}},
	})
	service.settledTools(t, time.Minute)

	page := browse(t, service.base+"/")
	for _, want := range []string{"toolbox", "ready", "broken", "reportlib", "&lt;b&gt;bold"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if strings.Contains(page, "<b>bold") {
		t.Error("a server's name became part of the page")
	}
	if t.Failed() {
		t.Logf("the page:\n%s", page)
	}
}

// browse opens a page in headless Chromium and returns its document once its scripts
// have run.
func browse(t *testing.T, url string) string {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("chromium is not installed: apt-get install chromium")
	}
	args := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-dev-shm-usage", "--user-data-dir=" + filepath.Join(t.TempDir(), "profile"),
		"--virtual-time-budget=5000", "--dump-dom", url,
	}
	cmd := exec.CommandContext(t.Context(), chromium, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	cmd.WaitDelay = 10 * time.Second
	page, err := cmd.Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return string(page)
}
