//go:build e2e

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// driveTypeScript has testdata/gateway/client.mjs go through the story.
func (e endpoint) driveTypeScript(t *testing.T, era string, stdio bool) (seen clientSeen) {
	t.Helper()
	script := filepath.Join(filepath.Dir(e.modules), "client.mjs") // where node finds the modules
	source, err := os.ReadFile("testdata/gateway/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, source, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{script, era, e.note(), "http", e.service.base + "/mcp"}
	if stdio {
		args = append([]string{script, era, e.note(), "stdio", e.program}, e.stdio()...)
	}
	cmd := exec.CommandContext(storyContext(t), "node", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if lines.Text() == "ready for a change" {
			e.addServer(t, t.Name())
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &seen); err != nil {
			t.Errorf("%s: %v", lines.Text(), err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the client: %v\n%s", err, stderr.String())
	}
	return seen
}
