package access_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpledger/httpapi/access"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestTheOperatorsTokenIsMadeOnceForItsOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	if _, err := access.ReadOperatorToken(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first start: %v, want fs.ErrNotExist", err)
	}
	first, err := access.OperatorToken(dir)
	if err != nil || len(first) < 40 {
		t.Fatalf("made %q, %v", first, err)
	}
	for _, again := range []func(string) (string, error){access.OperatorToken, access.ReadOperatorToken} {
		if second, err := again(dir); err != nil || second != first {
			t.Errorf("read again: %q, %v; want %q", second, err, first)
		}
	}
	path := filepath.Join(dir, access.OperatorFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := access.OperatorToken(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may read: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if secret, err := access.OperatorToken(dir); err == nil {
		t.Errorf("a file without a token gave %q", secret)
	}
}

func TestTokensAreReadAsTheyWereWritten(t *testing.T) {
	dir := t.TempDir()
	if none, err := access.ReadTokens(dir); err != nil || len(none) > 0 {
		t.Errorf("without a file: %v, %v", none, err)
	}
	var written []access.Token
	for _, name := range []string{"ci", "platform-2"} {
		token, secret, err := access.NewToken(name, []access.Role{access.Read, access.Report}, noon)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(token.SHA256, secret) {
			t.Error("the token holds its secret")
		}
		written = append(written, token)
	}
	if err := access.WriteTokens(dir, written); err != nil {
		t.Fatal(err)
	}
	read, err := access.ReadTokens(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written, read); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v, %v", entries, err)
	}
}

// Scripts that set a machine up make tokens at the same time.
func TestTokensThatAreMadeAtTheSameTimeAreAllKept(t *testing.T) {
	dir := t.TempDir()
	const makers = 16
	var making sync.WaitGroup
	for i := range makers {
		token, _, err := access.NewToken(fmt.Sprintf("maker-%d", i), []access.Role{access.Read}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		making.Go(func() {
			err := access.ChangeTokens(dir, func(known []access.Token) ([]access.Token, error) { return append(known, token), nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	making.Wait()
	if all, err := access.ReadTokens(dir); err != nil || len(all) != makers {
		t.Errorf("%d tokens are left, want %d: %v", len(all), makers, err)
	}
	never := errors.New("never mind")
	if err := access.ChangeTokens(dir, func([]access.Token) ([]access.Token, error) { return nil, never }); !errors.Is(err, never) {
		t.Errorf("got %v, want %v", err, never)
	}
	if all, err := access.ReadTokens(dir); err != nil || len(all) != makers {
		t.Errorf("after a change that came to nothing: %d tokens, %v", len(all), err)
	}
}

func TestATokensFileThatCannotBeTrustedIsRefused(t *testing.T) {
	const hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	entry := func(name, hash, roles string) string {
		return "tokens:\n  - {name: " + name + ", sha256: " + hash + ", roles: " + roles + "}\n"
	}
	for what, c := range map[string]struct {
		text string
		mode fs.FileMode
	}{
		"an unknown role":     {entry("a", hash, "[admin]"), 0o600},
		"no role":             {entry("a", hash, "[]"), 0o600},
		"a short hash":        {entry("a", "abcd", "[read]"), 0o600},
		"a name with a space": {entry(`"a b"`, hash, "[read]"), 0o600},
		"no name":             {entry(`""`, hash, "[read]"), 0o600},
		"the operator's name": {entry("operator", hash, "[read]"), 0o600},
		"a stranger's name":   {entry("local", hash, "[read]"), 0o600},
		"a name twice":        {entry("a", hash, "[read]") + "  - {name: a, sha256: " + hash + ", roles: [read]}\n", 0o600},
		"an unknown field":    {"tokens:\n  - {name: a, secret: x, sha256: " + hash + ", roles: [read]}\n", 0o600},
		"no YAML":             {"tokens: [", 0o600},
		"writable by others":  {entry("a", hash, "[read]"), 0o622},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, access.TokensFile)
			if err := errors.Join(os.WriteFile(path, []byte(c.text), 0o600), os.Chmod(path, c.mode)); err != nil {
				t.Fatal(err)
			}
			if tokens, err := access.ReadTokens(dir); err == nil {
				t.Errorf("taken: %v", tokens)
			}
			if _, err := access.NewKeys(dir, "", slog.New(slog.DiscardHandler)); err == nil {
				t.Error("the service would start with it")
			}
		})
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, access.TokensFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if tokens, err := access.ReadTokens(dir); err != nil || len(tokens) > 0 {
		t.Errorf("an empty file: %v, %v", tokens, err)
	}
}

func TestNobodyIsTheOperatorWithoutAToken(t *testing.T) {
	keys, err := access.NewKeys(t.TempDir(), "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if id, _, ok := keys.Identify(t.Context(), "", noon); ok {
		t.Errorf("the empty secret belongs to %q", id.Name)
	}
}

func TestRolesGiveWhatTheySayAndOperateGivesAll(t *testing.T) {
	for _, has := range access.Roles() {
		for _, asked := range access.Roles() {
			id := access.Identity{Roles: []access.Role{has}}
			if got, want := id.May(asked), has == asked || has == access.Operate; got != want {
				t.Errorf("%s may %s: %t, want %t", has, asked, got, want)
			}
		}
	}
	if (access.Identity{}).May(access.Read) {
		t.Error("a stranger may read")
	}
}

func TestTheOldestSessionGivesWay(t *testing.T) {
	var s access.Sessions
	ids := make([]string, 300)
	for i := range ids {
		ids[i] = s.Open(access.Hash{byte(i)}, noon.Add(time.Duration(i)*time.Second))
	}
	later := noon.Add(5 * time.Minute)
	if _, ok := s.Token(ids[0], later); ok {
		t.Error("the first session is still there")
	}
	if hash, ok := s.Token(ids[299], later); !ok || hash != (access.Hash{byte(299 % 256)}) {
		t.Errorf("the last session: %v, %t", hash, ok)
	}
}
