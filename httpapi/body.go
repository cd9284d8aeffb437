package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

// strictBinder reads a body as one JSON value of the shape asked for, as decodeStrict
// does. It looks at nothing but the body.
type strictBinder struct{}

// Bind implements echo.Binder. For an empty body the error wraps io.EOF, which an
// operation whose body is optional takes for none.
func (strictBinder) Bind(into any, c echo.Context) error {
	return decodeStrict(c.Request().Body, into)
}

// decodeStrict reads one JSON value and nothing else from r. It is UTF-8, no object in
// it has a field twice, and those of into's shape have its fields only, spelled as it
// spells them.
func decodeStrict(r io.Reader, into any) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return badBody(err)
	}
	if !utf8.Valid(text) {
		return refuse(codeBadBody, "the body is not UTF-8")
	}
	if string(bytes.TrimSpace(text)) == "null" {
		return refuse(codeBadBody, "the body: a JSON null is not taken there") // encoding/json takes it for anything
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return badBody(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return refuse(codeBadBody, "something follows the JSON value")
	}
	again := json.NewDecoder(bytes.NewReader(text))
	again.UseNumber()
	return checkFields(again, reflect.TypeOf(into))
}

// checkFields reads the next JSON value and refuses in it what encoding/json lets
// pass: a field given twice, of which it takes the last, and a field of t in other
// case. A t that is nil, or reads itself, may have any fields.
func checkFields(dec *json.Decoder, t reflect.Type) error {
	open, err := dec.Token()
	if err != nil {
		return badBody(err)
	}
	switch open {
	case json.Delim('['):
		for dec.More() {
			if err := checkFields(dec, elementOf(t)); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		fields, seen := fieldsOf(t), map[string]bool{}
		for dec.More() {
			token, err := dec.Token()
			if err != nil {
				return badBody(err)
			}
			name, _ := token.(string)
			if seen[name] {
				return refuse(codeBadBody, "field %q is given twice", name)
			}
			seen[name] = true
			of := elementOf(t)
			if fields != nil {
				if of = fields[name]; of == nil {
					return refuse(codeBadBody, "unknown field %q; upper and lower case differ", name)
				}
			}
			if err := checkFields(dec, of); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	if _, err = dec.Token(); err != nil {
		return badBody(err)
	}
	return nil
}

// plain returns the type behind a pointer, nil for one that reads its JSON itself.
func plain(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	return t
}

// elementOf returns the type of the elements of a list or map, nil for other types.
func elementOf(t reflect.Type) reflect.Type {
	if t = plain(t); t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Array) {
		return t.Elem()
	}
	return nil
}

// fieldsOf returns the types of a struct's JSON fields by name, nil for other types.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t = plain(t); t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" && (!f.Anonymous || name != "") {
			fields[cmp.Or(name, f.Name)] = f.Type
		}
	}
	return fields
}

// badBody says in our words why a body cannot be read.
func badBody(err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	var badTime *time.ParseError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		return &problem{code: codeBadBody, detail: "a body is needed", cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(codeBadBody, "the JSON ends too early")
	case errors.As(err, &syntax):
		return refuse(codeBadBody, "no JSON: wrong at byte %d", syntax.Offset)
	case errors.As(err, &mismatch):
		field := mismatch.Field
		if field == "" {
			field = "the body"
		}
		return refuse(codeBadBody, "%s: a JSON %s is not taken there", field, mismatch.Value)
	case errors.As(err, &badTime):
		return refuse(codeBadBody, "%q is no RFC 3339 time", badTime.Value)
	case errors.As(err, &tooLarge):
		return err
	}
	return refuse(codeBadBody, "%s", strings.TrimPrefix(err.Error(), "json: "))
}
