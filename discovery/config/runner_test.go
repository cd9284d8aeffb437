package config_test

import (
	"encoding/json"
	"testing"
)

func TestTheRunnerAndItsPackageAreKnown(t *testing.T) {
	for _, tt := range []struct {
		command string
		args    []string
		runner  string
		pkg     string
	}{
		{"npx", []string{"-y", "@acme/a@1.0"}, "npx", "@acme/a@1.0"},
		{"npx", []string{"--yes", "--registry", "https://r.example.com", "a", "b"}, "npx", "a"},
		{"npx", []string{"-p", "@acme/a", "acme-bin"}, "npx", "@acme/a"},
		{"npx", []string{"--package=@acme/a", "acme-bin"}, "npx", "@acme/a"},
		{"npx", []string{"-y", "--", "a"}, "npx", "a"},
		{"npx", nil, "npx", ""},
		{"/usr/local/bin/npx", []string{"a"}, "npx", "a"},
		{`C:\Program Files\nodejs\npx.cmd`, []string{"a"}, "npx", "a"},
		{"npm", []string{"exec", "a"}, "npm exec", "a"},
		{"npm", []string{"start"}, "", ""},
		{"bunx", []string{"--bun", "a"}, "bunx", "a"},
		{"pnpm", []string{"dlx", "a"}, "pnpm dlx", "a"},
		{"uvx", []string{"--from", "git+https://h/r", "a"}, "uvx", "git+https://h/r"},
		{"uvx", []string{"--python", "3.12", "a"}, "uvx", "a"},
		{"uv", []string{"tool", "run", "--with", "b", "a"}, "uv tool run", "a"},
		{"uv", []string{"run", "a.py"}, "", ""},
		{"pipx", []string{"run", "--spec", "a==1", "b"}, "pipx run", "a==1"},
		{"docker", []string{"run", "-i", "--rm", "-e", "K", "acme/a:1"}, "docker run", "acme/a:1"},
		{"docker", []string{"run", "-it", "--network", "host", "--env=K=1", "acme/a", "--flag"}, "docker run", "acme/a"},
		{"docker", []string{"run", "-ie", "K", "-p80:80", "acme/a"}, "docker run", "acme/a"},
		{"docker.exe", []string{"container", "run", "a"}, "docker container run", "a"},
		{"docker", []string{"exec", "a"}, "", ""},
		{"podman", []string{"run", "--tls-verify", "a"}, "podman run", "a"},
		{"node", []string{"npx"}, "", ""},
		{"/srv/npx/server", []string{"a"}, "", ""},
	} {
		line, err := json.Marshal(map[string]any{"command": tt.command, "args": append([]string{}, tt.args...)})
		if err != nil {
			t.Fatal(err)
		}
		s := server(t, environ(), string(line[1:len(line)-1]))
		if s.Runner != tt.runner || s.Package != tt.pkg {
			t.Errorf("%s %q: got %q and %q, want %q and %q", tt.command, tt.args, s.Runner, s.Package, tt.runner, tt.pkg)
		}
	}
}
