package events_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"testing"
	"time"

	"mcpledger/events"
)

// knownTypes returns the types that data.go declares.
func knownTypes(t testing.TB) []events.Type {
	t.Helper()
	source, err := os.ReadFile("data.go")
	if err != nil {
		t.Fatal(err)
	}
	var types []events.Type
	for _, m := range regexp.MustCompile(`(?m)^\tType\w+ +Type = "([^"]+)"$`).FindAllSubmatch(source, -1) {
		types = append(types, events.Type(m[1]))
	}
	if len(types) < 20 {
		t.Fatalf("data.go declares only %v", types)
	}
	return types
}

// zero returns the empty payload of a known type.
func zero(t testing.TB, typ events.Type) events.Data {
	t.Helper()
	d, err := events.DecodeData(typ, json.RawMessage("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, unknown := d.(events.Unknown); unknown {
		t.Fatalf("%s is declared and not known", typ)
	}
	return d
}

// full returns the payload of a known type with every field set.
func full(t testing.TB, typ events.Type) events.Data {
	t.Helper()
	v := reflect.New(reflect.TypeOf(zero(t, typ))).Elem()
	fill(t, v, string(typ))
	return v.Interface().(events.Data)
}

// fill sets every field below v, texts to name or to the name of their field.
func fill(t testing.TB, v reflect.Value, name string) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)))
		return
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"b":[1,2.50,"<&>"],"a":null}`))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(len(name)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), name)
		fill(t, v.Index(1), name+" 2")
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), v.Type().Field(i).Name)
		}
	default:
		t.Fatalf("%s is a %s: say here how it is filled", name, v.Type())
	}
}
