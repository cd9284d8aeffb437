package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// strictBinder reads a body as one JSON value of the shape asked for: nothing may
// follow it and no field may be unknown. It looks at nothing but the body.
type strictBinder struct{}

// Bind implements echo.Binder. For an empty body the error wraps io.EOF, which an
// operation whose body is optional takes for none.
func (strictBinder) Bind(into any, c echo.Context) error {
	return decodeStrict(c.Request().Body, into)
}

// decodeStrict reads one JSON value and nothing else from r.
func decodeStrict(r io.Reader, into any) error {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return badBody(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return err
		}
		return refuse(codeBadBody, "something follows the JSON value")
	}
	return nil
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
