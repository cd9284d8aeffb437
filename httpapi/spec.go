package httpapi

import (
	_ "embed" // the contract
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"mcpledger/httpapi/access"
)

//go:embed openapi.yaml
var contractYAML []byte

// operation is what the contract says of one route, as far as it is checked before
// a handler runs.
type operation struct {
	ID   string
	Role access.Role // "" is open to anybody
	// Long operations may take more time than a request is given: they stream, or wait
	// for an attempt to end.
	Long   bool
	Params map[string]schema // of the query, by name
	// MediaTypes are those its body may have; none for an operation without body.
	MediaTypes []string
}

// contract is the OpenAPI document, read once at the start.
type contract struct {
	operations []operation
	schemas    map[string]schema // those with a name
	json       []byte            // as it is served
}

// schema is what a parameter, or a member of a body, may be.
type schema struct {
	Ref        string            `yaml:"$ref"`
	Type       string            `yaml:"type"`
	Format     string            `yaml:"format"`
	Enum       []string          `yaml:"enum"`
	Minimum    *int64            `yaml:"minimum"`
	Maximum    *int64            `yaml:"maximum"`
	MinLength  int               `yaml:"minLength"` // in characters, as JSON Schema counts
	MaxLength  int               `yaml:"maxLength"`
	Properties map[string]schema `yaml:"properties"`
	Required   bool              `yaml:"-"`
}

type parameter struct {
	Ref      string `yaml:"$ref"`
	Name     string `yaml:"name"`
	In       string `yaml:"in"`
	Required bool   `yaml:"required"`
	Schema   schema `yaml:"schema"`
}

// roleOpen is the x-role of what anybody may ask.
const roleOpen = "open"

// readContract reads the document. Its errors are a programmer's mistakes.
func readContract(text []byte) (*contract, error) {
	var doc struct {
		Paths map[string]map[string]struct {
			ID          string      `yaml:"operationId"`
			Role        string      `yaml:"x-role"`
			Long        bool        `yaml:"x-long"`
			Parameters  []parameter `yaml:"parameters"`
			RequestBody struct {
				Content map[string]any `yaml:"content"`
			} `yaml:"requestBody"`
		} `yaml:"paths"`
		Components struct {
			Parameters map[string]parameter `yaml:"parameters"`
			Schemas    map[string]schema    `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	c := &contract{schemas: doc.Components.Schemas}
	for _, methods := range doc.Paths {
		for _, o := range methods {
			op := operation{ID: o.ID, Long: o.Long, Params: map[string]schema{}}
			if o.Role != roleOpen {
				op.Role = access.Role(o.Role)
			}
			op.MediaTypes = slices.Sorted(maps.Keys(o.RequestBody.Content))
			for _, p := range o.Parameters {
				if p.Ref != "" {
					p = doc.Components.Parameters[baseName(p.Ref)]
				}
				if p.Schema.Ref != "" {
					p.Schema = doc.Components.Schemas[baseName(p.Schema.Ref)]
				}
				p.Schema.Required = p.Required
				if p.In == "query" {
					op.Params[p.Name] = p.Schema
				}
			}
			c.operations = append(c.operations, op)
		}
	}
	var err error
	c.json, err = contractJSON(text)
	return c, err
}

func baseName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// contractJSON gives the document as JSON, without what only the code generator
// reads.
func contractJSON(text []byte) ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	dropGeneratorKeys(doc)
	return json.Marshal(doc)
}

func dropGeneratorKeys(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			if strings.HasPrefix(key, "x-go-") {
				delete(v, key)
				continue
			}
			dropGeneratorKeys(child)
		}
	case []any:
		for _, child := range v {
			dropGeneratorKeys(child)
		}
	}
}

// check returns what is wrong with a value, "" if nothing is.
func (s schema) check(value string) string {
	if len(s.Enum) > 0 {
		for _, allowed := range s.Enum {
			if value == allowed {
				return ""
			}
		}
		return "must be one of " + strings.Join(s.Enum, ", ")
	}
	switch s.Type {
	case "integer":
		return s.checkInteger(value)
	case "boolean":
		if value != "true" && value != "false" {
			return "must be true or false"
		}
	case "string":
		if s.Format == "date-time" {
			if _, err := time.Parse(time.RFC3339, value); err != nil {
				return "must be an RFC 3339 time, such as 2026-01-02T15:04:05Z; a + in it is %2B in a URL"
			}
		}
		if len(value) < s.MinLength {
			return "must not be empty"
		}
		if s.MaxLength > 0 && utf8.RuneCountInString(value) > s.MaxLength {
			return fmt.Sprintf("must have at most %d characters", s.MaxLength)
		}
	}
	return ""
}

func (s schema) checkInteger(value string) string {
	n, err := parseDecimal(value)
	switch {
	case err != nil, s.Minimum != nil && n < *s.Minimum, s.Maximum != nil && n > *s.Maximum:
	default:
		return ""
	}
	if s.Maximum != nil && s.Minimum != nil {
		return fmt.Sprintf("must be an integer from %d to %d", *s.Minimum, *s.Maximum)
	}
	if s.Minimum != nil {
		return fmt.Sprintf("must be an integer of at least %d", *s.Minimum)
	}
	return "must be an integer"
}
