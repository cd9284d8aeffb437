package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// serviceFile is DATA/service.json: where the service that holds the data folder
// answers. It is written when the service listens and removed when it stops; after a
// crash it stays, and its process is gone.
type serviceFile struct {
	Address string `json:"address"` // such as http://127.0.0.1:8132
	PID     int    `json:"pid"`
}

func serviceFilePath(dataDir string) string { return filepath.Join(dataDir, "service.json") }

// writeServiceFile replaces the file as a whole, so that a reader never sees half.
func writeServiceFile(dataDir string, s serviceFile) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := serviceFilePath(dataDir)
	if err := os.WriteFile(path+".new", append(body, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readServiceFile returns the running service that holds dataDir; false when there
// is none.
func readServiceFile(dataDir string) (serviceFile, bool, error) {
	path := serviceFilePath(dataDir)
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return serviceFile{}, false, nil
	}
	if err != nil {
		return serviceFile{}, false, err
	}
	var s serviceFile
	if err := json.Unmarshal(body, &s); err != nil {
		return serviceFile{}, false, fmt.Errorf("read %s: %w", path, err)
	}
	return s, alive(s.PID), nil
}

// alive reports whether a process of that id exists, whoever owns it.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return pid > 0 && (err == nil || errors.Is(err, syscall.EPERM))
}
