package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

// The bounds of a Namer's limit, and the one it has by default. Clients put a prefix
// of their own before the names, and some take no more than 64 characters in all.
const (
	MinNameLimit     = 32
	MaxNameLimit     = 128
	DefaultNameLimit = 48
)

// separator stands between a server's name and that of its tool or prompt.
const separator = "__"

// OwnPrefix begins the names of the gateway's own tools.
const OwnPrefix = config.ReservedName + separator

// Namer gives the tools and prompts of many servers names in one list: letters,
// digits, "_" and "-", at most Limit bytes. A name depends on its server and tool
// alone, and no two pairs share one: a plain pair is joined by "__", any other is
// made plain, shortened, and told apart by a hash of both, in a form that no plain
// name has.
type Namer struct {
	Limit int
}

var (
	// plainServer has no "__" and ends in no "_", so the first "__" of a joined name is
	// where the server's name ends.
	plainServer = regexp.MustCompile(`^[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*$`)
	plainTool   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	hashed      = regexp.MustCompile(`_[0-9a-f]{10}$`)
	unclean     = regexp.MustCompile(`[^A-Za-z0-9-]+`)
)

// Name returns the name of a server's tool.
func (n Namer) Name(server events.ServerName, tool string) string {
	name, _ := n.name(server, tool)
	return name
}

// name also says whether the name is plain: the pair can be split from it.
func (n Namer) name(server events.ServerName, tool string) (name string, plain bool) {
	joined := string(server) + separator + tool
	if plainServer.MatchString(string(server)) && plainTool.MatchString(tool) &&
		len(joined) <= n.Limit && !hashed.MatchString(joined) {
		return joined, true
	}
	sum := sha256.Sum256([]byte(string(server) + "\x00" + tool))
	suffix := "_" + hex.EncodeToString(sum[:5])
	room := n.Limit - len(suffix) - len(separator)
	// The tool's name says more than the server's, which gets what the other leaves.
	first, second := cleaned(string(server)), cleaned(tool)
	if over := len(first) + len(second) - room; over > 0 {
		first = first[:max(len(first)-over, min(len(first), room/3))]
		second = second[:min(len(second), room-len(first))]
	}
	return first + separator + second + suffix, false
}

// cleaned returns the name with each run of other characters as one "_", so that it
// holds no separator; "x" if nothing else is left.
func cleaned(name string) string {
	name = strings.Trim(unclean.ReplaceAllString(name, "_"), "_")
	if name == "" {
		return "x"
	}
	return name
}

// Split returns the pair that a name was joined from. It is not ok for a name that
// holds a hash, whose pair must be looked up, nor for one that Name never gives.
func (n Namer) Split(name string) (server events.ServerName, tool string, ok bool) {
	first, tool, found := strings.Cut(name, separator)
	server = events.ServerName(first)
	if joined, plain := n.name(server, tool); !found || !plain || joined != name {
		return "", "", false
	}
	return server, tool, true
}
