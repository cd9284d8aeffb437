package upstream_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpledger/discovery/upstream"
)

func TestTheEnvironmentIsMinimalUnlessAskedFor(t *testing.T) {
	parent := []string{"PATH=/bin", "HOME=/home/me", "LC_ALL=C", "GITHUB_TOKEN=x", "MCPLEDGER_TOKEN=y"}
	own := map[string]string{"API_KEY": "k", "PATH": "/opt/bin", "EMPTY": ""}
	tests := []struct {
		name       string
		inheritAll bool
		want       []string
	}{
		{"minimal", false, []string{"API_KEY=k", "EMPTY=", "HOME=/home/me", "LC_ALL=C", "PATH=/opt/bin"}},
		{"all but ours", true, []string{"API_KEY=k", "EMPTY=", "GITHUB_TOKEN=x", "HOME=/home/me", "LC_ALL=C", "PATH=/opt/bin"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, upstream.Environ(parent, own, tt.inheritAll)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProgramIsFoundOnTheServersOwnPath(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	program, locked := write("weather", 0o700), write("locked", 0o600)
	path := []string{"PATH=relative::" + folder}
	tests := []struct {
		name    string
		command string
		dir     string
		env     []string
		want    string
		err     error
	}{
		{"by name", "weather", "", path, program, nil},
		{"by path", program, "", nil, program, nil},
		{"relative to the working directory", "./weather", folder, nil, program, nil},
		{"not on this path", "weather", "", []string{"PATH=/bin"}, "", exec.ErrNotFound},
		{"never from an unnamed folder", "weather", folder, []string{"PATH=.:"}, "", exec.ErrNotFound},
		{"a file that may not be run", "locked", "", path, "", fs.ErrPermission},
		{"the same by path", locked, "", nil, "", fs.ErrPermission},
		{"a folder", folder, "", nil, "", fs.ErrPermission},
		{"nothing", "", "", path, "", exec.ErrNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := upstream.LookPath(tt.command, tt.dir, tt.env)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("found %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}
