package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"mcpledger/events"
)

// data makes a reported payload fit for the log: of the shape its type has, with
// texts sanitised, masked and cut.
func (r reporter) data(t events.Type, raw json.RawMessage) (events.Data, error) {
	var payload any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&payload); err != nil {
		return nil, refuse(codeInvalidEvent, "data is needed: a JSON object")
	}
	if _, ok := payload.(map[string]any); !ok {
		return nil, refuse(codeInvalidEvent, "data must be a JSON object")
	}
	fit, err := json.Marshal(r.fit("", payload))
	if err != nil {
		return nil, fmt.Errorf("encode reported data: %w", err)
	}
	zero, err := events.DecodeData(t, []byte("{}"))
	if err != nil {
		return nil, err
	}
	into := reflect.New(reflect.TypeOf(zero))
	if err := decodeStrict(bytes.NewReader(fit), into.Interface()); err != nil {
		p := problemOf(err)
		return nil, refuse(codeInvalidEvent, "data: %s", p.detail)
	}
	if wrong := checkNumbers("data", into.Elem()); wrong != "" {
		return nil, refuse(codeInvalidEvent, "data: %s", wrong)
	}
	return into.Elem().Interface().(events.Data), nil
}

// signed are the members of a payload that may be negative: codes that others chose.
var signed = []string{"exit_code", "jsonrpc_code"}

// maxMS bounds members that are durations: what a time.Duration can hold.
const maxMS = math.MaxInt64 / int64(time.Millisecond)

// checkNumbers returns what is wrong with the numbers in a payload, or in a member of one
// by its name, "" if nothing is: counts, sizes and durations are not negative, and none is
// longer than can be told.
func checkNumbers(name string, v reflect.Value) (wrong string) {
	switch {
	case v.CanInt() && v.Int() < 0 && !slices.Contains(signed, name):
		return name + " must not be negative"
	case v.CanInt() && v.Int() > maxMS && strings.HasSuffix(name, "_ms"):
		return fmt.Sprintf("%s must be at most %d", name, maxMS)
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return checkNumbers(name, v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := 0; i < v.Len() && wrong == ""; i++ {
			wrong = checkNumbers(name, v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for i := 0; i < v.NumField() && wrong == ""; i++ {
			if f := v.Type().Field(i); f.IsExported() {
				member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				wrong = checkNumbers(member, v.Field(i))
			}
		}
	}
	return wrong
}

// textLimits bounds reported texts, in bytes, by the name of the member; maxText
// bounds all others.
var textLimits = map[string]int{
	"error": events.MaxErrorBytes, "stderr_head": events.MaxStderrHeadBytes,
	"stderr": events.MaxStderrTailBytes, "stderr_tail": events.MaxStderrTailBytes,
	"body_excerpt": events.MaxBodyBytes, "jsonrpc_message": events.MaxJSONRPCBytes,
	"jsonrpc_data": events.MaxJSONRPCBytes, "excerpt": events.MaxJunkBytes,
	"www_authenticate": events.MaxHeaderBytes, "location": events.MaxHeaderBytes, "content_type": events.MaxHeaderBytes,
}

const maxText = 16 << 10

// fit returns a JSON value with its texts fit for the log; name is the member that
// holds it.
func (r reporter) fit(name string, value any) any {
	switch value := value.(type) {
	case string:
		limit, ok := textLimits[name]
		if !ok {
			limit = maxText
		}
		if name == "stderr_tail" {
			return lastBytes(r.api.redactor().Text(value, len(value)*4), limit)
		}
		return r.api.redactor().Text(value, limit)
	case map[string]any:
		for key, child := range value {
			value[key] = r.fit(key, child)
		}
	case []any:
		for i, child := range value {
			value[i] = r.fit(name, child)
		}
	}
	return value
}

// lastBytes returns the end of s, at most limit bytes with the "…" that stands for
// what is missing.
func lastBytes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-limit+len("…"):], "")
}
