package rules

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed sets/*.yaml
var setFiles embed.FS

// Schema is the JSON Schema of rule sets, for editors.
//
//go:embed schema.json
var Schema string

// DefaultName is the name of the set that is active when none was chosen.
const DefaultName = "default"

// BuiltinNames lists the sets that come with the program, sorted by name.
func BuiltinNames() []string {
	entries, err := setFiles.ReadDir("sets")
	if err != nil {
		panic(err) // of an embedded folder
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	slices.Sort(names)
	return names
}

// Builtin parses the set of that name that comes with the program. The error for a
// name it does not have lists those it has.
func Builtin(name string) (*Set, error) {
	if !slices.Contains(BuiltinNames(), name) {
		return nil, fmt.Errorf("%q: %w; built in are %s", name, ErrNoSuchSet, strings.Join(BuiltinNames(), ", "))
	}
	text, err := setFiles.ReadFile("sets/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("rule set %q: %w", name, err)
	}
	return Parse(name, text)
}

// Default returns the default set, parsed once.
var Default = sync.OnceValue(func() *Set {
	s, err := Builtin(DefaultName)
	if err != nil {
		panic(err) // of an embedded file, which the tests parse
	}
	return s
})
