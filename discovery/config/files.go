package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Bounds on the files that are read, in bytes.
const (
	MaxConfigBytes = 4 << 20
	maxValueBytes  = 64 << 10 // an envFile, or the target of ${file:}
)

var (
	errFolder     = errors.New("it is a folder; name the files in it one by one")
	errNotRegular = errors.New("not a regular file")
)

// readFile reads a regular file of at most limit bytes. One that everybody may write
// is refused, for whoever writes it says what is executed.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errFolder
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("writable by everybody (mode %04o): run chmod o-w on it", info.Mode().Perm())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	return bytes.TrimPrefix(b, []byte("\ufeff")), nil
}

// readValueFile reads a file whose content goes into variables, which cannot hold a
// zero byte.
func readValueFile(path string) ([]byte, error) {
	b, err := readFile(path, maxValueBytes)
	if err == nil && bytes.IndexByte(b, 0) >= 0 {
		return nil, errors.New("it holds a zero byte")
	}
	return b, err
}

// reason gives the cause of a file error without the path, which the sentence around
// it has.
func reason(err error) string {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// absolute makes path absolute; one that cannot be made so stays.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
