package access

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v4"
)

// The files of the data folder.
const (
	TokensFile   = "tokens.yaml"
	OperatorFile = "operator.token"
)

// tokensDocument is the form of tokens.yaml.
type tokensDocument struct {
	Tokens []Token `yaml:"tokens"`
}

// ReadTokens reads tokens.yaml of the data folder dir; none when there is no such
// file. A file that others may write is an error, for whoever writes it gives
// himself any role.
func ReadTokens(dir string) ([]Token, error) {
	path := filepath.Join(dir, TokensFile)
	text, err := readPrivate(path, 0o022)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseTokens(path, text)
}

func parseTokens(path string, text []byte) ([]Token, error) {
	var doc tokensDocument
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil && len(bytes.TrimSpace(text)) > 0 {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	seen := map[string]bool{}
	for _, t := range doc.Tokens {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("read %s: two tokens named %q", path, t.Name)
		}
		seen[t.Name] = true
	}
	return doc.Tokens, nil
}

// WriteTokens replaces tokens.yaml of the data folder dir, for its owner alone. A
// running service takes it without a restart.
func WriteTokens(dir string, tokens []Token) error {
	text, err := yaml.Marshal(tokensDocument{Tokens: tokens})
	if err != nil {
		return fmt.Errorf("encode tokens: %w", err)
	}
	return replacePrivate(filepath.Join(dir, TokensFile), text)
}

// ChangeTokens replaces the tokens of the data folder dir, which is there, by what change
// makes of them. Of several processes that do so at once each sees what the one before it
// left: a token that another one makes is not lost, nor comes one back that it revoked. An
// error of change is returned as it is, and changes nothing.
func ChangeTokens(dir string, change func([]Token) ([]Token, error)) (err error) {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }() // which lets go of the lock
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	tokens, err := ReadTokens(dir)
	if err != nil {
		return err
	}
	if tokens, err = change(tokens); err != nil {
		return err
	}
	return WriteTokens(dir, tokens)
}

// ReadOperatorToken reads the operator's secret from the data folder dir. A file
// that others may read is an error. It wraps fs.ErrNotExist when there is none yet.
func ReadOperatorToken(dir string) (string, error) {
	path := filepath.Join(dir, OperatorFile)
	text, err := readPrivate(path, 0o077)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < 32 {
		return "", fmt.Errorf("%s holds no token; remove it to have a new one made", path)
	}
	return secret, nil
}

// OperatorToken reads the operator's secret from the data folder dir, and makes one
// at the first start.
func OperatorToken(dir string) (string, error) {
	secret, err := ReadOperatorToken(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret = newSecret()
	if err := replacePrivate(filepath.Join(dir, OperatorFile), []byte(secret+"\n")); err != nil {
		return "", err
	}
	return secret, nil
}

// readPrivate reads a file unless its mode has one of the forbidden bits.
func readPrivate(path string, forbidden fs.FileMode) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&forbidden != 0 {
		return nil, fmt.Errorf("%s has mode %#o; run \"chmod 600 %s\"", path, info.Mode().Perm(), path)
	}
	return os.ReadFile(path)
}

// replacePrivate puts a file with mode 0600 in place at once, so that no reader sees
// half of it.
func replacePrivate(path string, text []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, werr := tmp.Write(text)
	if err := errors.Join(werr, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
