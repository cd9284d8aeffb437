package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"mcpledger/events"
)

// source is the folder of the whole project, seen from this package.
const source = "../.."

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noSlug    = regexp.MustCompile(`[^\p{L}\p{N}\- ]`)
	codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	for path, text := range pages(t) {
		for _, found := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", path, found[1], err)
				continue
			}
			if anchor != "" && !strings.Contains(anchors(read(t, file)), "\n"+anchor+"\n") {
				t.Errorf("%s links to %s, and %s has no such heading", path, found[1], file)
			}
		}
	}
}

// anchors lists the names under which a page's headings can be linked to, a line each.
func anchors(text string) string {
	var names strings.Builder
	names.WriteByte('\n')
	for _, h := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		name := noSlug.ReplaceAllString(strings.ToLower(h[1]), "")
		names.WriteString(strings.ReplaceAll(name, " ", "-") + "\n")
	}
	return names.String()
}

// pages returns the text of every page by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, at := range []string{"README.md", "CHANGELOG.md", "docs"} {
		err := filepath.WalkDir(filepath.Join(source, at), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".md" {
				all[path] = read(t, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheReferenceHasEveryCommandAndFlagOfServe(t *testing.T) {
	page := read(t, source+"/docs/reference/command-line.md")
	root := (&program{}).rootCommand()
	for _, cmd := range root.Commands() {
		if named := regexp.MustCompile("`" + cmd.Name() + `\b`); !cmd.Hidden && !named.MatchString(page) {
			t.Errorf("the page lacks the command %s", cmd.Name())
		}
	}
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(page, "`--"+f.Name) {
			t.Errorf("the page lacks the flag --%s", f.Name)
		}
	})
}

func TestTheReferenceHasEveryTypeOfEvent(t *testing.T) {
	page := read(t, source+"/docs/reference/events.md")
	for _, kind := range events.Types() {
		family, what, _ := strings.Cut(string(kind), ".")
		if !strings.Contains(page, "`"+string(kind)+"`") && !(strings.Contains(page, "`"+family+".") && strings.Contains(page, "`."+what+"`")) {
			t.Errorf("the page lacks %s", kind)
		}
	}
}
