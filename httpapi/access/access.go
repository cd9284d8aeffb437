// Package access says who may do what over HTTP: roles, the tokens that carry them,
// the operator's own token, and the sessions that stand in for a token in a browser.
//
// Tokens are kept as hashes, in tokens.yaml of the data folder; only operator.token
// holds a secret as it is. The package knows files and time, and no HTTP.
package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// Role is one thing a caller may do.
type Role string

// The roles. Operate has all others in it.
const (
	Read    Role = "read"    // look at everything
	Call    Role = "call"    // call tools
	Report  Role = "report"  // report outcomes seen elsewhere
	Operate Role = "operate" // change what the service does
)

// Roles lists every role.
func Roles() []Role { return []Role{Read, Call, Report, Operate} }

// Identity is who a request comes from. The zero Identity is a stranger, who may do
// nothing.
type Identity struct {
	Name  string // of the token; empty for a caller without one
	Roles []Role
}

// May reports whether the identity has the role.
func (i Identity) May(r Role) bool {
	return slices.Contains(i.Roles, r) || slices.Contains(i.Roles, Operate)
}

// The names that no token of tokens.yaml can have, since the record would not tell
// who it was.
const (
	OperatorName = "operator" // whoever holds the operator's token
	LocalName    = "local"    // whoever asks from this machine without a token
)

// Token is one entry of tokens.yaml. The secret itself is shown once, when the token
// is made, and kept nowhere.
type Token struct {
	Name   string `yaml:"name"`   // unique; the source of what it reports
	SHA256 string `yaml:"sha256"` // of the secret, lower-case hex
	Roles  []Role `yaml:"roles,flow"`
	// Expires is when the token stops to be valid; zero for never.
	Expires time.Time `yaml:"expires,omitempty"`
}

// secretPrefix makes a secret that leaked easy to recognise.
const secretPrefix = "mcpledger_"

// NewToken makes a token and the secret that goes with it. It returns an error when
// the name or a role is none.
func NewToken(name string, roles []Role, expires time.Time) (Token, string, error) {
	secret := newSecret()
	hash := hashOf(secret)
	t := Token{Name: name, SHA256: hex.EncodeToString(hash[:]), Roles: roles, Expires: expires}
	if err := t.check(); err != nil {
		return Token{}, "", err
	}
	return t, secret, nil
}

// check returns what is wrong with the token, nil if nothing is.
func (t Token) check() error {
	if !validName(t.Name) {
		return fmt.Errorf("token name %q: 1 to 64 letters, digits, dots, dashes or underscores are allowed", t.Name)
	}
	switch t.Name {
	case OperatorName:
		return fmt.Errorf("token name %q is taken by operator.token", t.Name)
	case LocalName:
		return fmt.Errorf("token name %q is taken by callers on this machine without a token", t.Name)
	}
	if sum, err := hex.DecodeString(t.SHA256); err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("token %q: sha256 is no SHA-256 in hex", t.Name)
	}
	if len(t.Roles) == 0 {
		return fmt.Errorf("token %q has no roles", t.Name)
	}
	for _, r := range t.Roles {
		if !slices.Contains(Roles(), r) {
			return fmt.Errorf("token %q: no such role %q, give %s, %s, %s or %s", t.Name, r, Read, Call, Report, Operate)
		}
	}
	return nil
}

func validName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// newSecret returns 256 random bits as text.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return secretPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Hash is the SHA-256 of a secret, by which it is compared and remembered.
type Hash [sha256.Size]byte

func hashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }
