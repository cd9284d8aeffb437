package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// runner is a program that fetches a package or an image, then runs it.
type runner struct {
	words     []string // the program, then its subcommands
	packageIn []string // flags whose value is the package itself
	valued    []string // flags followed by a value, besides
	switches  []string // if set, the only flags that are not followed by a value
}

var (
	npmFlags       = []string{"-c", "--call", "-w", "--workspace", "--registry", "--cache", "--prefix", "--userconfig", "--loglevel", "--node-options"}
	npmPackage     = []string{"-p", "--package"}
	uvFlags        = []string{"--with", "--with-requirements", "--with-editable", "-p", "--python", "--index", "--index-url", "-i", "--extra-index-url", "--default-index", "--find-links", "-f", "--env-file", "--cache-dir", "--directory", "--project", "--config-file", "--refresh-package", "-P", "--upgrade-package", "--constraints", "-c", "--overrides", "--index-strategy", "--keyring-provider", "--resolution", "--prerelease", "--exclude-newer", "--link-mode", "--color"}
	dockerSwitches = []string{"-i", "--interactive", "-t", "--tty", "-d", "--detach", "--rm", "--init", "--privileged", "--read-only", "-P", "--publish-all", "-q", "--quiet", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--disable-content-trust", "--no-hosts", "--replace", "--tls-verify"}
)

var runners = []runner{
	{words: []string{"npx"}, packageIn: npmPackage, valued: npmFlags},
	{words: []string{"npm", "exec"}, packageIn: npmPackage, valued: npmFlags},
	{words: []string{"pnpx"}, packageIn: npmPackage, valued: npmFlags},
	{words: []string{"pnpm", "dlx"}, packageIn: npmPackage, valued: npmFlags},
	{words: []string{"yarn", "dlx"}, packageIn: npmPackage, valued: npmFlags},
	{words: []string{"bunx"}, packageIn: npmPackage},
	{words: []string{"bun", "x"}, packageIn: npmPackage},
	{words: []string{"uvx"}, packageIn: []string{"--from"}, valued: uvFlags},
	{words: []string{"uv", "tool", "run"}, packageIn: []string{"--from"}, valued: uvFlags},
	{words: []string{"pipx", "run"}, packageIn: []string{"--spec"}, valued: []string{"--python", "--index-url", "-i", "--pip-args", "--with"}},
	{words: []string{"docker", "run"}, switches: dockerSwitches},
	{words: []string{"docker", "container", "run"}, switches: dockerSwitches},
	{words: []string{"podman", "run"}, switches: dockerSwitches},
	{words: []string{"podman", "container", "run"}, switches: dockerSwitches},
}

// packageRunner tells whether a command line starts a package runner: its name, such
// as "npx" or "uv tool run", and what it runs. Both are empty for another program;
// pkg alone is if the arguments name no package.
func packageRunner(command string, args []string) (name, pkg string) {
	words := append([]string{programName(command)}, args...)
	for _, r := range runners {
		if n := len(r.words); len(words) >= n && slices.Equal(words[:n], r.words) {
			return strings.Join(r.words, " "), r.packageOf(words[n:])
		}
	}
	return "", ""
}

// programName returns the name of a program without its folder and the extension
// that Windows gives it.
func programName(command string) string {
	name := filepath.Base(strings.ReplaceAll(command, `\`, "/"))
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".cmd", ".exe", ".bat", ".ps1":
		return name[:len(name)-len(ext)]
	}
	return name
}

// packageOf returns the package among the arguments after the runner's own words:
// the value of a flag that names it, else the first argument that is no flag.
func (r runner) packageOf(args []string) string {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			continue
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			return arg
		}
		flag, value, joined := strings.Cut(arg, "=")
		switch {
		case slices.Contains(r.packageIn, flag):
			if !joined && i+1 < len(args) {
				value = args[i+1]
			}
			return value
		case !joined && r.takesValue(flag):
			i++
		}
	}
	return ""
}

// takesValue reports a flag that is followed by its value.
func (r runner) takesValue(flag string) bool {
	if r.switches == nil {
		return slices.Contains(r.valued, flag)
	}
	if strings.HasPrefix(flag, "--") {
		return !slices.Contains(r.switches, flag)
	}
	// Several short flags in one: of "-it" none takes a value, of "-ie" the last does,
	// and in "-p80:80" the value is joined to the first that takes one.
	for i := 1; i < len(flag); i++ {
		if !slices.Contains(r.switches, "-"+flag[i:i+1]) {
			return i == len(flag)-1
		}
	}
	return false
}
