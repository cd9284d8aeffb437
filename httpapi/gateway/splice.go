package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// field is one member of a JSON object, with the place of its value in the object's
// bytes.
type field struct {
	name       string
	start, end int
}

// fieldsOf returns the members of a JSON object in order. Bytes in front of the
// object and behind it are an error.
func fieldsOf(object []byte) ([]field, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var fields []field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		end := int(dec.InputOffset())
		fields = append(fields, field{name: name.(string), start: end - len(value), end: end})
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	return fields, nil
}

// splice returns the object with the values of the members in set replaced, each
// where it stands, and those that it lacks added at its end, in the order of add.
// Every other byte stays as it is.
func splice(object []byte, set map[string][]byte, add ...string) ([]byte, error) {
	fields, err := fieldsOf(object)
	if err != nil {
		return nil, fmt.Errorf("splice: %w", err)
	}
	out := make([]byte, 0, len(object)+128)
	at, has := 0, map[string]bool{}
	for _, f := range fields {
		has[f.name] = true
		if value, replace := set[f.name]; replace {
			out = append(append(out, object[at:f.start]...), value...)
			at = f.end
		}
	}
	brace := bytes.LastIndexByte(object, '}')
	out = append(out, object[at:brace]...)
	empty := len(fields) == 0
	for _, name := range add {
		if has[name] {
			continue
		}
		if !empty {
			out = append(out, ',')
		}
		out, empty = append(append(append(out, quoted(name)...), ':'), set[name]...), false
	}
	return append(out, object[brace:]...), nil
}

// member returns the value of an object's member as it stands there, nil if it has
// none of that name. The last of several counts.
func member(object []byte, name string) json.RawMessage {
	fields, err := fieldsOf(object)
	if err != nil {
		return nil
	}
	var value json.RawMessage
	for _, f := range fields {
		if f.name == name {
			value = object[f.start:f.end]
		}
	}
	return value
}

// textOf returns the value of an object's member that is a string, in whichever way it is
// escaped there; false if it has none.
func textOf(object []byte, name string) (text string, ok bool) {
	value := member(object, name)
	return text, isString(value) && json.Unmarshal(value, &text) == nil
}

// quoted returns the text as JSON.
func quoted(text string) []byte { return encoded(text) }

// encoded is the JSON of a value of ours, which always encodes. Unlike
// json.Marshal it leaves "<", ">" and "&" as they are.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("gateway: encode %T: %v", v, err)) // a type that cannot be JSON
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// oneLine returns valid JSON without line breaks, which end a message on stdio and an
// event's data. Inside strings JSON has none.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return ' '
			}
			return r
		}, raw)
	}
	return b.Bytes()
}
