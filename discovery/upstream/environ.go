package upstream

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mcpledger/discovery/config"
)

// inherited are the variables a program needs to find its files and to reach the
// network. Everything else in our environment, where other servers' credentials
// may be, stays with us.
var inherited = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true, "TERM": true,
	"LANG": true, "LANGUAGE": true, "TZ": true, "TMPDIR": true,
	"XDG_CACHE_HOME": true, "XDG_CONFIG_HOME": true, "XDG_DATA_HOME": true, "XDG_RUNTIME_DIR": true,
	"SSL_CERT_FILE": true, "SSL_CERT_DIR": true, "NODE_EXTRA_CA_CERTS": true,
	"HTTP_PROXY": true, "HTTPS_PROXY": true, "NO_PROXY": true, "ALL_PROXY": true,
	"http_proxy": true, "https_proxy": true, "no_proxy": true, "all_proxy": true,
	"DOCKER_HOST": true,
}

// Environ returns a server's environment, sorted: the few variables of parent that
// programs need, or with inheritAll all of them, and its own, which win. Those that
// begin with config.OwnPrefix are never inherited. parent has the form of os.Environ.
func Environ(parent []string, own map[string]string, inheritAll bool) []string {
	env := map[string]string{}
	for _, pair := range parent {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, config.OwnPrefix) {
			continue
		}
		if inheritAll || inherited[name] || strings.HasPrefix(name, "LC_") {
			env[name] = value
		}
	}
	maps.Copy(env, own)
	pairs := make([]string, 0, len(env))
	for name, value := range env {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return pairs
}

// LookPath finds the program a server's command starts: on the PATH of env, or, if
// the command holds a slash, relative to dir. Unlike exec.LookPath it reads the
// server's environment and not ours, and never finds a program in an unnamed
// current directory. The error is an *exec.Error that wraps exec.ErrNotFound, for a
// path fs.ErrNotExist, or for a file that may not be run fs.ErrPermission.
func LookPath(command, dir string, env []string) (string, error) {
	if command == "" {
		return "", &exec.Error{Name: command, Err: exec.ErrNotFound}
	}
	if strings.Contains(command, "/") {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", &exec.Error{Name: command, Err: err}
		}
		return filepath.Abs(path)
	}
	found := exec.ErrNotFound
	for _, folder := range filepath.SplitList(lookupEnv(env, "PATH")) {
		if !filepath.IsAbs(folder) {
			continue
		}
		path := filepath.Join(folder, command)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			found = err
		}
	}
	return "", &exec.Error{Name: command, Err: found}
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return syscall.ENOENT
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}

// lookupEnv returns the value of the last variable of that name, as exec does.
func lookupEnv(env []string, name string) string {
	for _, pair := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}
