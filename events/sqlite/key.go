package sqlite

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	keyFile  = "secret.key"
	keyBytes = 32
)

// LoadKey returns the secret of the data folder dir, 32 bytes that Open made. The
// error is fs.ErrNotExist where there is none, such as in a backup without key, and
// ErrDamagedKey where it is of another size.
func LoadKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, keyFile)
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if len(key) != keyBytes {
		return nil, fmt.Errorf("%w: %s has %d bytes, want %d", ErrDamagedKey, path, len(key), keyBytes)
	}
	return key, nil
}

// DeriveKey returns the subkey of key for one purpose, HMAC-SHA-256 of the
// purpose's name, so that a value made for one purpose says nothing about another.
func DeriveKey(key []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// ensureKey returns the key of dir, and whether it had to be made.
func ensureKey(dir string) (key []byte, made bool, err error) {
	key, err = LoadKey(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	key = make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, false, fmt.Errorf("make key: %w", err)
	}
	if err := writeFileSync(filepath.Join(dir, keyFile), key); err != nil {
		return nil, false, fmt.Errorf("make key: %w", err)
	}
	return key, true, nil
}

// writeFileSync writes a new private file and has it on disk, whole, under its name
// before it returns.
func writeFileSync(path string, content []byte) error {
	temp := path + ".tmp"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
