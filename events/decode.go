package events

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// A replay decodes every payload of a log, and encoding/json would be most of its
// time. The decoder here reads what EncodeData writes for our own types: compact
// JSON, names spelled exactly, each once. Wherever a payload is anything else it
// gives up, and encoding/json decides; where it does not give up, the two agree.

// shape is how the members of a struct type are decoded.
type shape struct {
	fields []field
	byName map[string]int
}

type field struct {
	name   string
	index  []int
	decode decodeFunc
}

// of returns the field in a struct.
func (f *field) of(v reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return v.Field(f.index[0])
	}
	return v.FieldByIndex(f.index)
}

// decoder is where texts and documents that a payload refers to come from.
type decoder struct {
	resolve func(hash string) (*Loaded, error) // nil for a payload that has all inline
}

// content returns the content that b refers to, if b begins with a reference to one
// of that kind.
func (d *decoder) content(b []byte, text bool) (c *Loaded, rest []byte, ok bool) {
	if d.resolve == nil || len(b) == 0 || b[0] != '{' {
		return nil, nil, false
	}
	hash, isText, ok := CutRef(b)
	if !ok || isText != text {
		return nil, nil, false
	}
	c, err := d.resolve(hash)
	return c, b[RefLen:], err == nil
}

// value returns the JSON value at the beginning of b, with all inline.
func (d *decoder) value(b []byte) (value, rest []byte, ok bool) {
	end := valueEnd(b, 0)
	value = b[:end]
	if d.resolve != nil {
		var err error
		if value, err = Inline(value, d.resolve); err != nil {
			return nil, nil, false
		}
	}
	return value, b[end:], true
}

// decodeFunc sets v, which is zero, from the JSON value at the beginning of b and
// returns what follows it; false if it gives up.
type decodeFunc func(d *decoder, b []byte, v reflect.Value) (rest []byte, ok bool)

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	timeType = reflect.TypeFor[time.Time]()
)

// newShape returns the shape of a struct type.
func newShape(t reflect.Type) *shape {
	s := &shape{byName: map[string]int{}}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		s.byName[name] = len(s.fields)
		s.fields = append(s.fields, field{name, f.Index, decoderOf(f.Type)})
	}
	return s
}

// decoderOf returns the decoder of a type.
func decoderOf(t reflect.Type) decodeFunc {
	switch {
	case t == rawType:
		return decodeRaw
	case t == timeType:
		return decodeTime
	}
	switch t.Kind() {
	case reflect.String:
		return decodeString
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int64:
		return decodeInt
	case reflect.Struct:
		return newShape(t).decode
	case reflect.Pointer:
		return decodePointer(decoderOf(t.Elem()))
	case reflect.Slice:
		return decodeSlice(decoderOf(t.Elem()))
	}
	panic("events: a payload has a " + t.String() + ", which no decoder reads")
}

// decode reads an object.
func (s *shape) decode(d *decoder, b []byte, v reflect.Value) ([]byte, bool) {
	if len(b) == 0 || b[0] != '{' {
		return nil, false
	}
	if b = b[1:]; len(b) > 0 && b[0] == '}' {
		return b[1:], true
	}
	var seen uint64
	next := 0 // the field that most likely comes: they are written in order
	for {
		if len(b) == 0 || b[0] != '"' {
			return nil, false
		}
		end := bytes.IndexByte(b[1:], '"') + 1
		if end == 0 || end+1 >= len(b) || b[end+1] != ':' {
			return nil, false
		}
		name := b[1:end]
		b = b[end+2:]
		i, known := s.find(name, next)
		next = i + 1
		switch {
		case !known:
			// encoding/json matches names in any case, and reads escapes in them.
			if s.resembles(name) {
				return nil, false
			}
			end := valueEnd(b, 0)
			if !json.Valid(b[:end]) {
				return nil, false
			}
			b = b[end:]
		case i >= 64 || seen&(1<<i) != 0:
			return nil, false
		default:
			seen |= 1 << i
			f := &s.fields[i]
			var ok bool
			if b, ok = f.decode(d, b, f.of(v)); !ok {
				return nil, false
			}
		}
		if len(b) == 0 {
			return nil, false
		}
		switch b[0] {
		case ',':
			b = b[1:]
		case '}':
			return b[1:], true
		default:
			return nil, false
		}
	}
}

// find returns the place of the field with that name, which may be next.
func (s *shape) find(name []byte, next int) (place int, known bool) {
	if next < len(s.fields) && s.fields[next].name == string(name) {
		return next, true
	}
	place, known = s.byName[string(name)]
	return place, known
}

// resembles reports whether name may stand for one of the fields without being
// spelled as it is.
func (s *shape) resembles(name []byte) bool {
	if !isPlain(name) {
		return true
	}
	for i := range s.fields {
		if strings.EqualFold(s.fields[i].name, string(name)) {
			return true
		}
	}
	return false
}

func decodeString(d *decoder, b []byte, v reflect.Value) ([]byte, bool) {
	if c, rest, ok := d.content(b, true); ok {
		v.SetString(c.text)
		return rest, true
	}
	text, rest, ok := readString(b)
	if !ok {
		return nil, false
	}
	v.SetString(text)
	return rest, true
}

func decodeBool(_ *decoder, b []byte, v reflect.Value) ([]byte, bool) {
	if rest, ok := bytes.CutPrefix(b, []byte("true")); ok {
		v.SetBool(true)
		return rest, true
	}
	return bytes.CutPrefix(b, []byte("false"))
}

func decodeInt(_ *decoder, b []byte, v reflect.Value) ([]byte, bool) {
	const most = 18 // digits that an int64 holds whatever they are
	digits := bytes.TrimPrefix(b, []byte("-"))
	var n int64
	i := 0
	for ; i < len(digits) && i <= most && digits[i] >= '0' && digits[i] <= '9'; i++ {
		n = 10*n + int64(digits[i]-'0')
	}
	if i == 0 || i > most || i > 1 && digits[0] == '0' {
		return nil, false
	}
	if i < len(digits) && (digits[i] == '.' || digits[i] == 'e' || digits[i] == 'E') {
		return nil, false
	}
	if len(digits) < len(b) {
		n = -n
	}
	v.SetInt(n)
	return digits[i:], true
}

func decodePointer(elem decodeFunc) decodeFunc {
	return func(d *decoder, b []byte, v reflect.Value) ([]byte, bool) {
		v.Set(reflect.New(v.Type().Elem()))
		return elem(d, b, v.Elem())
	}
}

func decodeSlice(elem decodeFunc) decodeFunc {
	var decode decodeFunc
	decode = func(d *decoder, b []byte, v reflect.Value) ([]byte, bool) {
		if c, rest, ok := d.content(b, false); ok {
			after, ok := decode(&decoder{}, []byte(c.text), v)
			return rest, ok && len(after) == 0
		}
		if len(b) < 2 || b[0] != '[' {
			return nil, false
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		if b = b[1:]; b[0] == ']' {
			return b[1:], true
		}
		for {
			v.Grow(1)
			v.SetLen(v.Len() + 1)
			var ok bool
			if b, ok = elem(d, b, v.Index(v.Len()-1)); !ok || len(b) == 0 {
				return nil, false
			}
			switch b[0] {
			case ',':
				b = b[1:]
			case ']':
				return b[1:], true
			default:
				return nil, false
			}
		}
	}
	return decode
}

func decodeRaw(d *decoder, b []byte, v reflect.Value) ([]byte, bool) {
	value, rest, ok := d.value(b)
	if !ok || !json.Valid(value) {
		return nil, false
	}
	v.SetBytes(bytes.Clone(bytes.TrimSpace(value))) // as encoding/json has it
	return rest, true
}

// decodeTime reads the times that RFC 3339 has.
func decodeTime(d *decoder, b []byte, v reflect.Value) ([]byte, bool) {
	value, rest, ok := d.value(b)
	if !ok || len(value) == 0 || value[0] != '"' {
		return nil, false
	}
	return rest, v.Addr().Interface().(*time.Time).UnmarshalJSON(value) == nil
}
