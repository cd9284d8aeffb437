package upstream

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Catalogue is a server's list of tools. The zero Catalogue is an unknown one; a
// server without tools has a Catalogue of none. It is immutable.
type Catalogue struct {
	// Tools is the array of the tools as the server sent them, in its order.
	Tools json.RawMessage
	// Hash identifies the content: the lower-case hex SHA-256 of the tools in canonical
	// form, that is sorted by name, without white space, keys sorted, numbers as
	// written. It does not depend on the order of tools, pages or keys.
	Hash string

	tools []tool // sorted by name, then by content
}

type tool struct {
	name      string
	raw       json.RawMessage
	canonical []byte
}

// Changes are the names of the tools in which two catalogues differ, each list
// sorted. A name that occurs more than once counts as one tool.
type Changes struct {
	Added, Removed, Changed []string
}

// ParseCatalogue reads an array of tools, as Catalogue.Tools has it. It returns an
// error for what is no array of objects that each have a name.
func ParseCatalogue(tools json.RawMessage) (Catalogue, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(tools, &list); err != nil {
		return Catalogue{}, fmt.Errorf("parse catalogue: %w", err)
	}
	if list == nil {
		return Catalogue{}, errors.New("parse catalogue: not an array")
	}
	return newCatalogue(list)
}

func newCatalogue(list []json.RawMessage) (Catalogue, error) {
	c := Catalogue{tools: make([]tool, 0, len(list))}
	for i, raw := range list {
		var head struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(raw, &head); err != nil || head.Name == "" {
			return Catalogue{}, fmt.Errorf("tool %d of %d has no name", i+1, len(list))
		}
		canonical, err := CanonicalJSON(raw)
		if err != nil {
			return Catalogue{}, fmt.Errorf("tool %q: %w", head.Name, err)
		}
		c.tools = append(c.tools, tool{name: head.Name, raw: raw, canonical: canonical})
	}
	c.Tools = joinArray(len(c.tools), func(i int) []byte { return c.tools[i].raw })
	slices.SortFunc(c.tools, func(a, b tool) int {
		return cmp.Or(cmp.Compare(a.name, b.name), bytes.Compare(a.canonical, b.canonical))
	})
	sum := sha256.Sum256(joinArray(len(c.tools), func(i int) []byte { return c.tools[i].canonical }))
	c.Hash = hex.EncodeToString(sum[:])
	return c, nil
}

// Len returns the number of tools.
func (c Catalogue) Len() int { return len(c.tools) }

// Names returns the tools' names, sorted.
func (c Catalogue) Names() []string {
	names := make([]string, len(c.tools))
	for i, t := range c.tools {
		names[i] = t.name
	}
	return slices.Compact(names)
}

// Tool returns a tool's definition as the server sent it.
func (c Catalogue) Tool(name string) (definition json.RawMessage, ok bool) {
	i, ok := slices.BinarySearchFunc(c.tools, name, func(t tool, name string) int { return cmp.Compare(t.name, name) })
	if !ok {
		return nil, false
	}
	return c.tools[i].raw, true
}

// Diff returns what differs in c from old.
func (c Catalogue) Diff(old Catalogue) Changes {
	was, is := old.byName(), c.byName()
	var d Changes
	for _, name := range c.Names() {
		before, known := was[name]
		switch {
		case !known:
			d.Added = append(d.Added, name)
		case !bytes.Equal(before, is[name]):
			d.Changed = append(d.Changed, name)
		}
	}
	for _, name := range old.Names() {
		if _, stays := is[name]; !stays {
			d.Removed = append(d.Removed, name)
		}
	}
	return d
}

// byName returns the canonical content of the tools of each name.
func (c Catalogue) byName() map[string][]byte {
	content := make(map[string][]byte, len(c.tools))
	for _, t := range c.tools {
		content[t.name] = append(content[t.name], t.canonical...)
	}
	return content
}

func joinArray(n int, element func(int) []byte) []byte {
	out := []byte{'['}
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, element(i)...)
	}
	return append(out, ']')
}

// CanonicalJSON returns raw without white space and with the keys of every object
// sorted. Numbers stay as they are written, so that large ones keep their value. It
// returns an error for what is not one JSON value.
func CanonicalJSON(raw json.RawMessage) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return json.Marshal(value)
}
