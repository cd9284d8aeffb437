package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the commands of the documentation print")

// story finds a block of commands, with the block of what they print where one follows.
var story = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:\n```text\n(.*?)```\n)?")

// A reader who types what a page says sees what it shows: the blocks marked sh are run
// in one folder, and the block marked text after one is what it prints.
func TestPagesShowWhatTheirCommandsPrint(t *testing.T) {
	for _, name := range []string{"backtest-a-rule.md"} {
		t.Run(name, func(t *testing.T) {
			page := filepath.Join("..", "..", "docs", "how-to", name)
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			told := story.ReplaceAllStringFunc(string(text), func(block string) string {
				commands := story.FindStringSubmatch(block)[1]
				printed := shell(t, dir, commands)
				if !strings.Contains(block, "```text\n") && printed == "" {
					return block
				}
				return "```sh\n" + commands + "```\n\n```text\n" + printed + "```\n"
			})
			if *update {
				if err := os.WriteFile(page, []byte(told), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(text), told); diff != "" {
				t.Errorf("%s shows something else than its commands print; go test ./cmd/server -run Pages -args -update (-page +printed):\n%s", page, diff)
			}
		})
	}
}

// shell runs commands in a folder and returns what they print.
func shell(t *testing.T, dir, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir)
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v of\n%s\nwhich printed\n%s", err, commands, printed)
	}
	return string(printed)
}
