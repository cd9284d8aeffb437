package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// ownSchema is what of an input schema of the gateway's own tools is checked: it is all
// that they use.
type ownSchema struct {
	Properties map[string]struct {
		Type    string   `json:"type"` // string or integer
		Enum    []string `json:"enum"`
		Minimum *int     `json:"minimum"`
		Maximum *int     `json:"maximum"`
	} `json:"properties"`
	Required []string `json:"required"`
}

// ownSchemas are the input schemas of the gateway's own tools, by name.
var ownSchemas = sync.OnceValue(func() map[string]ownSchema {
	var tools []struct {
		Name  string    `json:"name"`
		Input ownSchema `json:"inputSchema"`
	}
	if err := json.Unmarshal(ownToolsJSON, &tools); err != nil {
		panic(err) // the file is part of the program
	}
	schemas := map[string]ownSchema{}
	for _, tool := range tools {
		schemas[tool.Name] = tool.Input
	}
	return schemas
})

// check says in a sentence what of the arguments the schema does not allow, empty if it
// allows all. What the arguments hold is not repeated.
func (s ownSchema) check(arguments json.RawMessage) string {
	var given map[string]json.RawMessage
	if len(arguments) > 0 && json.Unmarshal(arguments, &given) != nil {
		return "The arguments are to be an object."
	}
	for _, name := range s.Required {
		if given[name] == nil {
			return fmt.Sprintf("The argument %q is missing.", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		p, known := s.Properties[name]
		value := given[name]
		if !known {
			return "There is an argument that the tool does not take; it takes " + s.names() + "."
		}
		var text string
		var number int
		switch {
		case p.Type == "string" && (json.Unmarshal(value, &text) != nil || string(value) == "null"):
			return fmt.Sprintf("The argument %q is to be a string.", name)
		case p.Type == "integer" && (json.Unmarshal(value, &number) != nil || string(value) == "null"):
			return fmt.Sprintf("The argument %q is to be an integer.", name)
		case len(p.Enum) > 0 && !slices.Contains(p.Enum, text):
			return fmt.Sprintf("The argument %q is to be one of %s.", name, strings.Join(p.Enum, ", "))
		case p.Minimum != nil && number < *p.Minimum || p.Maximum != nil && number > *p.Maximum:
			return fmt.Sprintf("The argument %q is to be from %d to %d.", name, *p.Minimum, *p.Maximum)
		}
	}
	return ""
}

// names lists the arguments that a tool takes.
func (s ownSchema) names() string {
	if len(s.Properties) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(s.Properties)), " and ")
}
