package config_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mcpledger/discovery/config"
)

const debounce = 20 * time.Millisecond

// watch starts a watcher that ends with the test.
func watch(t *testing.T, paths ...string) *config.Watcher {
	t.Helper()
	return watchSince(t, nil, paths...)
}

func watchSince(t *testing.T, since config.Look, paths ...string) *config.Watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := config.Watch(ctx, paths, since, debounce)
	t.Cleanup(func() {
		cancel()
		<-w.Done()
	})
	return w
}

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

func wantChange(t *testing.T, w *config.Watcher, after string) {
	t.Helper()
	select {
	case <-w.Changes():
	case <-time.After(patience):
		t.Fatalf("no change was told after %s", after)
	}
}

// wantQuiet changes the file at path, which w must not tell. Another watcher tells it
// twice over meanwhile, so that w had its time.
func wantQuiet(t *testing.T, w *config.Watcher, path string) {
	t.Helper()
	other := watch(t, path)
	for _, content := range []string{"quiet", "and quiet again"} {
		write(t, path, content)
		wantChange(t, other, "a write to the file of another watcher")
	}
	select {
	case <-w.Changes():
		t.Fatalf("a change of %s was told", path)
	default:
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAChangeOfAFileIsTold(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "mcp.json"), "1")
	w := watch(t, path)
	write(t, path, "22")
	wantChange(t, w, "a write")
	write(t, filepath.Join(dir, "new"), "333")
	must(t, os.Rename(filepath.Join(dir, "new"), path))
	wantChange(t, w, "a rename over it, as editors save")
	must(t, os.Remove(path))
	wantChange(t, w, "its removal")
	write(t, path, "4")
	wantChange(t, w, "its return")
	wantQuiet(t, w, filepath.Join(dir, "neighbour"))
}

func TestAFolderMayGoAndComeBack(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a", "b", "mcp.json"), "1")
	w := watch(t, path)
	must(t, os.RemoveAll(filepath.Join(dir, "a")))
	wantChange(t, w, "the removal of the folder")
	write(t, path, "2")
	wantChange(t, w, "the folder's return")
	write(t, path, "33")
	wantChange(t, w, "a write in the new folder")
}

func TestASwapOfALinkIsTold(t *testing.T) {
	// As Kubernetes mounts a ConfigMap: mcp.json -> ..data/mcp.json, ..data -> ..1.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..1", "mcp.json"), "1")
	write(t, filepath.Join(dir, "..2", "mcp.json"), "2")
	must(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	must(t, os.Symlink("..data/mcp.json", filepath.Join(dir, "mcp.json")))
	w := watch(t, filepath.Join(dir, "mcp.json"))
	must(t, os.Symlink("..2", filepath.Join(dir, "..new")))
	must(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	wantChange(t, w, "a swap of the link")
	write(t, filepath.Join(dir, "..2", "mcp.json"), "333")
	wantChange(t, w, "a write behind the new link")
}

// What starts reads its files, and watches them only when it runs.
func TestAChangeBetweenTheReadingAndTheWatchIsTold(t *testing.T) {
	dir := t.TempDir()
	changed, left := filepath.Join(dir, "changed"), filepath.Join(dir, "left")
	write(t, changed, "as it was read")
	write(t, left, "as it was read")
	look := config.LookAt([]string{changed, left})
	write(t, changed, "as it is")
	wantChange(t, watchSince(t, look, changed, left), "a write before the watch")
	wantQuiet(t, watchSince(t, look, left), filepath.Join(dir, "another"))
}

func TestAFileBehindALinkElsewhereIsWatched(t *testing.T) {
	real := write(t, filepath.Join(t.TempDir(), "real.json"), "1")
	link := filepath.Join(t.TempDir(), "mcp.json")
	must(t, os.Symlink(real, link))
	w := watch(t, link)
	write(t, real, "22")
	wantChange(t, w, "a write behind the link")
}

func TestTheFilesThatAreWatchedCanBeReplaced(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, filepath.Join(dir, "a"), "1"), write(t, filepath.Join(dir, "b", "b"), "1")
	w := watch(t, a)
	w.SetPaths([]string{b})
	write(t, b, "22")
	wantChange(t, w, "a write to the new file")
	wantQuiet(t, w, a)
}

func TestAMissingFileIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not", "yet", "mcp.json")
	w := watch(t, path)
	write(t, path, "1")
	wantChange(t, w, "its first appearance")
}
