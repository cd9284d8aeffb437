package upstream_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mcpledger/discovery/mcptest"
	"mcpledger/discovery/upstream"
)

// envParent makes the test binary open a session with a stubborn server, write the
// server's process id to the file that is named, and wait to be killed.
const envParent = "UPSTREAM_TEST_PARENT"

func holdSession(file string) {
	s, err := upstream.Open(context.Background(), target(mcptest.Fake{Stubborn: true}))
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(file+".new", fmt.Append(nil, s.Info().ProcessGroup), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		panic(err)
	}
	<-s.Done()
}

// startParent starts such a process, and returns it and the server's process id. file
// is open in it as an inherited descriptor.
func startParent(t *testing.T, file *os.File) (parent *exec.Cmd, pidFile string) {
	t.Helper()
	pidFile = filepath.Join(t.TempDir(), "pid")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent = exec.Command(self)
	parent.Env = append(os.Environ(), envParent+"="+pidFile)
	parent.Stderr = os.Stderr
	parent.ExtraFiles = []*os.File{file}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = parent.Process.Kill()
		_ = parent.Wait()
	})
	eventually(t, "the session is open", func() bool { _, err := os.Stat(pidFile); return err == nil })
	return parent, pidFile
}

func TestAServerDiesWithUs(t *testing.T) {
	parent, pidFile := startParent(t, os.Stderr)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	awaitDeath(t, pidFile)
}

func TestAServerInheritsNoDescriptors(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "ours"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	parent, pidFile := startParent(t, file)
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if !holds(t, fmt.Sprint(parent.Process.Pid), file.Name()) {
		t.Error("the parent does not hold the file, so this test shows nothing")
	}
	if holds(t, string(pid), file.Name()) {
		t.Error("the server holds a descriptor of ours")
	}
}

// holds reports whether a process has a file open.
func holds(t *testing.T, pid, file string) bool {
	t.Helper()
	links, err := filepath.Glob("/proc/" + pid + "/fd/*")
	if err != nil || len(links) == 0 {
		t.Skip("no /proc")
	}
	for _, link := range links {
		if target, _ := os.Readlink(link); target == file {
			return true
		}
	}
	return false
}
