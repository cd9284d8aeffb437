package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
)

// shape is what the protocol has of an item in a list. Clients hold the whole list
// against it: one server's item of another shape would take all servers' items from them.
type shape struct {
	required, optional map[string]check
}

// check reports whether a member's value, which is valid JSON, is of its type.
type check func(json.RawMessage) bool

// itemShapes are the shapes of the items of each list, by the method that lists them.
var itemShapes = map[string]shape{
	methodToolsList: {
		required: map[string]check{"name": isString, "inputSchema": isSchema},
		optional: map[string]check{"title": isString, "description": isString, "icons": isIcons, "outputSchema": isSchema,
			"annotations": objectOf(map[string]check{"title": isString, "readOnlyHint": isBool, "destructiveHint": isBool, "idempotentHint": isBool, "openWorldHint": isBool}),
			"execution":   objectOf(map[string]check{"taskSupport": oneOf("required", "optional", "forbidden")})},
	},
	methodResources: {
		required: map[string]check{"name": isString, "uri": isString},
		optional: map[string]check{"title": isString, "description": isString, "icons": isIcons, "mimeType": isString, "annotations": isAnnotations, "size": isWhole},
	},
	methodTemplates: {
		required: map[string]check{"name": isString, "uriTemplate": isString},
		optional: map[string]check{"title": isString, "description": isString, "icons": isIcons, "mimeType": isString, "annotations": isAnnotations},
	},
	methodPrompts: {
		// Without its arguments a prompt could not be asked for.
		required: map[string]check{"name": isString, "arguments": orAbsent(arrayOf(objectOf(map[string]check{"description": isString, "required": isBool}, "name")))},
		optional: map[string]check{"title": isString, "description": isString, "icons": isIcons},
	},
}

// noParameters is the schema of a tool whose server gives none.
var noParameters = []byte(`{"type":"object"}`)

// fit returns the item without the optional members that are of another type than the
// protocol's, in valid UTF-8, and with everything else as it was sent. The error names a
// member for want of which it is no item at all.
func (s shape) fit(item []byte) ([]byte, error) {
	item = bytes.ToValidUTF8(item, []byte("\uFFFD"))
	if _, takesArguments := s.required["inputSchema"]; takesArguments && isAbsent(member(item, "inputSchema")) {
		var err error
		if item, err = splice(item, map[string][]byte{"inputSchema": noParameters}, "inputSchema"); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.required)) {
		if !s.required[name](member(item, name)) {
			return nil, fmt.Errorf("its %s is not what the protocol has there", name)
		}
	}
	var unfit []string
	for name, fits := range s.optional {
		if value := member(item, name); value != nil && !fits(value) {
			unfit = append(unfit, name)
		}
	}
	if len(unfit) == 0 {
		return item, nil
	}
	return omit(item, unfit...)
}

// omit returns the object without the members of those names.
func omit(object []byte, names ...string) ([]byte, error) {
	fields, err := fieldsOf(object)
	if err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for _, f := range fields {
		if slices.Contains(names, f.name) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted(f.name)...), ':'), object[f.start:f.end]...)
	}
	return append(out, '}'), nil
}

func isAbsent(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }
func isString(v json.RawMessage) bool { return len(v) > 0 && v[0] == '"' }
func isBool(v json.RawMessage) bool   { return string(v) == "true" || string(v) == "false" }
func isNumber(v json.RawMessage) bool {
	return len(v) > 0 && (v[0] == '-' || '0' <= v[0] && v[0] <= '9')
}
func isObject(v json.RawMessage) bool { return len(v) > 0 && v[0] == '{' }

// orAbsent is fits for a member that may be missing.
func orAbsent(fits check) check {
	return func(v json.RawMessage) bool { return v == nil || fits(v) }
}

// oneOf is the check for one of those strings.
func oneOf(words ...string) check {
	return func(v json.RawMessage) bool {
		var word string
		return isString(v) && json.Unmarshal(v, &word) == nil && slices.Contains(words, word)
	}
}

// arrayOf is the check for an array whose elements fit.
func arrayOf(fits check) check {
	return func(v json.RawMessage) bool {
		var elements []json.RawMessage
		return len(v) > 0 && v[0] == '[' && json.Unmarshal(v, &elements) == nil &&
			!slices.ContainsFunc(elements, func(e json.RawMessage) bool { return !fits(e) })
	}
}

// objectOf is the check for an object whose members fit, where it has any of these, and
// that has the texts: members that are strings.
func objectOf(members map[string]check, texts ...string) check {
	return func(v json.RawMessage) bool {
		if !isObject(v) {
			return false
		}
		for name, fits := range members {
			if value := member(v, name); value != nil && !fits(value) {
				return false
			}
		}
		return !slices.ContainsFunc(texts, func(name string) bool { return !isString(member(v, name)) })
	}
}

var (
	isIcons       = arrayOf(objectOf(map[string]check{"mimeType": isString, "sizes": arrayOf(isString), "theme": oneOf("light", "dark")}, "src"))
	isAnnotations = objectOf(map[string]check{
		"audience": arrayOf(oneOf(string(mcp.RoleUser), string(mcp.RoleAssistant))), "priority": isShare, "lastModified": isString,
	})
)

// isWhole is the check for a whole number, as sizes are: some clients take no other.
func isWhole(v json.RawMessage) bool {
	var n int64
	return isNumber(v) && json.Unmarshal(v, &n) == nil
}

// isShare is the check for a number from 0 to 1.
func isShare(v json.RawMessage) bool {
	var n float64
	return isNumber(v) && json.Unmarshal(v, &n) == nil && n >= 0 && n <= 1
}

// isSchema is the check for a JSON schema of an object, as far as the protocol looks at it.
func isSchema(v json.RawMessage) bool {
	if !objectOf(map[string]check{"required": arrayOf(isString)})(v) || !oneOf("object")(member(v, "type")) {
		return false
	}
	properties := member(v, "properties")
	if properties == nil {
		return true
	}
	fields, err := fieldsOf(properties)
	return err == nil && !slices.ContainsFunc(fields, func(f field) bool { return !isObject(properties[f.start:f.end]) })
}
