package config

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// pollInterval is how often files are looked at where no notice comes: on network
// file systems, or when the system's watches are used up.
const pollInterval = 10 * time.Second

// maxLinks bounds the symbolic links followed from one file.
const maxLinks = 16

// Watcher tells when files change. It watches their folders, since editors replace a
// file instead of writing it, and the folders of all symbolic links on the way, since
// Kubernetes swaps such a link. Files and folders may be missing, and come and go.
type Watcher struct {
	debounce time.Duration
	changes  chan struct{}
	replaced chan struct{} // paths were replaced
	done     chan struct{}

	mu   sync.Mutex
	seen Look // at the files that are watched
}

// Watch starts to watch paths until ctx ends. A change is told once nothing has
// changed for a whole debounce; one that came after the look, too, so that whoever reads
// the files between the two misses none. A path that was not looked at is watched from now
// on.
func Watch(ctx context.Context, paths []string, since Look, debounce time.Duration) *Watcher {
	w := &Watcher{
		debounce: debounce,
		changes:  make(chan struct{}, 1),
		replaced: make(chan struct{}, 1),
		done:     make(chan struct{}),
		seen:     LookAt(paths).since(since),
	}
	notices, err := fsnotify.NewWatcher()
	if err != nil {
		notices = nil // then polling must do
	}
	go (&watchLoop{Watcher: w, notices: notices, watched: map[string]bool{}}).run(ctx)
	return w
}

// Changes receives after one or more of the files changed. It is never closed.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

// Done is closed when the watcher has ended.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// SetPaths replaces the files that are watched. A file that was watched before and
// has changed meanwhile is still told.
func (w *Watcher) SetPaths(paths []string) {
	now := LookAt(paths)
	w.mu.Lock()
	w.seen = now.since(w.seen)
	w.mu.Unlock()
	poke(w.replaced)
}

// paths returns the files that are watched.
func (w *Watcher) paths() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.seen))
}

// update looks at the files again and reports whether one has changed.
func (w *Watcher) update() (changed bool) {
	now := LookAt(w.paths())
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, state := range now {
		if before, watched := w.seen[path]; watched && !before.same(state) {
			w.seen[path] = state
			changed = true
		}
	}
	return changed
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watchLoop is what a watcher's goroutine has for itself.
type watchLoop struct {
	*Watcher
	notices *fsnotify.Watcher // nil: polling only
	watched map[string]bool   // folders
	pending bool              // a change was seen and is not told yet
}

func (l *watchLoop) run(ctx context.Context) {
	defer close(l.done)
	var noticed <-chan fsnotify.Event
	var failed <-chan error
	if l.notices != nil {
		defer func() { _ = l.notices.Close() }() // it always returns nil
		noticed, failed = l.notices.Events, l.notices.Errors
	}
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	settle := time.NewTimer(l.debounce)
	settle.Stop()
	waiting := false
	wait := func() {
		// The timer is not put off by further notices, so that a busy folder cannot
		// hold a change back for ever.
		if !waiting {
			waiting = true
			settle.Reset(l.debounce)
		}
	}
	l.watchFolders()
	wait() // for what changed before the folders were watched
	for {
		select {
		case <-ctx.Done():
			return
		case <-noticed:
			wait()
		case <-failed: //nolint:errcheck // whichever notices were lost, look
			wait()
		case <-poll.C:
			wait()
		case <-l.replaced:
			l.watchFolders()
			wait()
		case <-settle.C:
			waiting = false
			if l.check() {
				wait()
			}
		}
	}
}

// check looks at the files. A change makes it look again after another debounce;
// when nothing changes any more it is told.
func (l *watchLoop) check() (again bool) {
	l.watchFolders()
	if l.update() {
		l.pending = true
		return true
	}
	if l.pending {
		l.pending = false
		poke(l.changes)
	}
	return false
}

// watchFolders watches the folders that the files rest on as they are now. A folder
// that is missing is waited for in the nearest one above it that is there.
func (l *watchLoop) watchFolders() {
	if l.notices == nil {
		return
	}
	wanted := map[string]bool{}
	for _, path := range l.paths() {
		for _, dir := range foldersOf(path) {
			wanted[dir] = true
		}
	}
	for dir := range l.watched {
		if !wanted[dir] {
			_ = l.notices.Remove(dir) // it may be gone already
			delete(l.watched, dir)
		}
	}
	for dir := range wanted {
		// A folder that was removed and made anew has lost its watch; adding one that
		// is watched changes nothing.
		if l.notices.Add(dir) == nil {
			l.watched[dir] = true
		}
	}
}

// foldersOf returns the folders in which a change can change what path leads to: its
// own, and those of the links on the way.
func foldersOf(path string) []string {
	var dirs []string
	for range maxLinks {
		dir := filepath.Dir(path)
		dirs = append(dirs, existing(dir))
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			dirs = append(dirs, linkFolders(dir)...)
			path = filepath.Join(real, filepath.Base(path))
			dirs = append(dirs, real)
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return dirs
}

// linkFolders returns the folders that hold the links among dir and those above it.
func linkFolders(dir string) []string {
	var dirs []string
	for up := filepath.Dir(dir); up != dir; dir, up = up, filepath.Dir(up) {
		if info, err := os.Lstat(dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
			dirs = append(dirs, up)
		}
	}
	return dirs
}

// existing returns dir, or the nearest folder above it that is there.
func existing(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return dir
		}
		dir = up
	}
}

// fileState is what a file looks like from outside; info is nil for one that is missing.
type fileState struct{ info os.FileInfo }

// Look is how files looked from outside at one moment, by their paths.
type Look map[string]fileState

// LookAt looks at files, which may be missing.
func LookAt(paths []string) Look {
	all := make(Look, len(paths))
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			info = nil
		}
		all[path] = fileState{info}
	}
	return all
}

// since returns the look with what is known of an earlier one in place of its own.
func (l Look) since(earlier Look) Look {
	for path := range l {
		if before, known := earlier[path]; known {
			l[path] = before
		}
	}
	return l
}

func (a fileState) same(b fileState) bool {
	if a.info == nil || b.info == nil {
		return a.info == b.info
	}
	return os.SameFile(a.info, b.info) && a.info.Size() == b.info.Size() &&
		a.info.ModTime().Equal(b.info.ModTime()) && a.info.Mode() == b.info.Mode()
}
