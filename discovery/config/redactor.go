package config

import (
	"bytes"
	"encoding/json"
	"io"
)

// MinSecretBytes is the length from which a secret is masked in running text.
// Shorter ones would mask words that only look alike.
const MinSecretBytes = 8

// Secret is a value that must not be recorded, logged or shown.
type Secret struct {
	Name  string // what stands in its place, as «Name»
	Value string
}

// Redactor masks secrets in text: those it was made with, as they are and URL-,
// JSON- and base64-encoded, each by «NAME»; and whatever has the shape of a
// well-known kind of token, by the name of its kind, such as «github-token». A nil
// Redactor masks shapes only. It is safe for concurrent use.
type Redactor struct {
	literals *literals
}

// NewRedactor returns a redactor of the given secrets. A value shorter than
// MinSecretBytes is passed over.
func NewRedactor(secrets ...Secret) *Redactor {
	var patterns []pattern
	for _, s := range secrets {
		if len(s.Value) < MinSecretBytes {
			continue
		}
		m := mark(s.Name)
		for _, text := range forms(s.Value) {
			patterns = append(patterns, pattern{text: text, mark: m})
		}
	}
	return &Redactor{literals: newLiterals(patterns)}
}

// Merge returns a redactor of all secrets of rs, for texts that belong to no single
// server. Where two know the same secret by different names, the first one's stands.
func Merge(rs ...*Redactor) *Redactor {
	var patterns []pattern
	for _, r := range rs {
		if r != nil && r.literals != nil {
			patterns = append(patterns, r.literals.patterns...)
		}
	}
	return &Redactor{literals: newLiterals(patterns)}
}

// String returns s with its secrets masked.
func (r *Redactor) String(s string) string {
	return string(r.Bytes([]byte(s)))
}

// Bytes is String for bytes. It does not change b, and may return it.
func (r *Redactor) Bytes(b []byte) []byte {
	f := r.filter()
	out := f.finish(f.write(make([]byte, 0, len(b)+64), b))
	if bytes.Equal(out, b) {
		return b
	}
	return out
}

// Text makes outside text fit to record: sanitised, then masked, then cut to limit
// bytes.
func (r *Redactor) Text(s string, limit int) string {
	return Cut(r.String(Sanitize(s)), limit)
}

// JSON returns raw with every string and member name in it masked; a number that is
// a secret becomes a string. What is no JSON comes back as one masked JSON string.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return quote(r.String(string(raw)))
	}
	out := make([]byte, 0, len(raw)+64)
	for i := 0; i < len(raw); {
		end := tokenEnd(raw, i)
		out = r.appendToken(out, raw[i:end])
		i = end
	}
	return out
}

// Stream returns a writer that masks what passes to w, with the same result as
// String over all of it, however it is split into writes. It holds back what may be
// the beginning of a secret, a few KiB at most; Close writes that out and leaves w
// open. The first error of w is returned from then on.
func (r *Redactor) Stream(w io.Writer) io.WriteCloser {
	return &stream{w: w, filter: r.filter()}
}

func (r *Redactor) filter() *filter {
	if r == nil {
		return &filter{}
	}
	return &filter{literals: literalFilter{set: r.literals}}
}

// appendToken appends one token of valid JSON, masked.
func (r *Redactor) appendToken(out, token []byte) []byte {
	switch c := token[0]; {
	case c == '"':
		var text string
		if err := json.Unmarshal(token, &text); err != nil {
			return append(out, quote(r.String(string(token)))...)
		}
		if masked := r.String(text); masked != text {
			return append(out, quote(masked)...)
		}
	case c == '-' || '0' <= c && c <= '9':
		if masked := r.Bytes(token); !bytes.Equal(masked, token) {
			return append(out, quote(string(masked))...)
		}
	}
	return append(out, token...)
}

// tokenEnd returns the index after the token of valid JSON that starts at raw[i]: a
// string, a number, or a single byte.
func tokenEnd(raw []byte, i int) int {
	switch c := raw[i]; {
	case c == '"':
		for i++; raw[i] != '"'; i++ {
			if raw[i] == '\\' {
				i++
			}
		}
	case c == '-' || '0' <= c && c <= '9':
		for i+1 < len(raw) && bytes.IndexByte([]byte("+-.0123456789Ee"), raw[i+1]) >= 0 {
			i++
		}
	}
	return i + 1
}

func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always encodes
	return b
}

// mark returns what stands in the place of a secret called name.
func mark(name string) string {
	if name == "" {
		name = "redacted"
	}
	return "«" + name + "»"
}

// filter masks a text that comes in pieces: first the known secrets, then shapes.
type filter struct {
	literals literalFilter
	shapes   shapeFilter
	between  []byte
}

// write takes the next piece and appends to dst what is settled by now.
func (f *filter) write(dst, p []byte) []byte {
	f.between = f.literals.write(f.between[:0], p)
	return f.shapes.write(dst, f.between)
}

// finish appends what was held back.
func (f *filter) finish(dst []byte) []byte {
	f.between = f.literals.finish(f.between[:0])
	return f.shapes.finish(f.shapes.write(dst, f.between))
}

type stream struct {
	w      io.Writer
	filter *filter
	out    []byte
	err    error // w's, or io.ErrClosedPipe once closed
	closed bool
}

func (s *stream) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if err := s.pass(s.filter.write(s.out[:0], p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	if s.err != nil {
		return s.err
	}
	err := s.pass(s.filter.finish(s.out[:0]))
	s.err = io.ErrClosedPipe
	return err
}

// pass writes out, and keeps its array for the next time.
func (s *stream) pass(out []byte) error {
	s.out = out
	if len(out) > 0 {
		_, s.err = s.w.Write(out)
	}
	return s.err
}
