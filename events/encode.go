package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
)

// EncodeData writes a payload's JSON, long texts inline. Raw JSON inside the payload
// keeps its bytes but for white space.
func EncodeData(d Data) (json.RawMessage, error) {
	e := encoders.Get().(*encoder)
	defer e.release()
	if err := e.json.Encode(d); err != nil {
		return nil, fmt.Errorf("encode %s: %w", d.EventType(), err)
	}
	return bytes.Clone(bytes.TrimSuffix(e.buf.Bytes(), []byte("\n"))), nil
}

// encoder writes payloads into a buffer that is used again.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

// maxEncoderBytes is how large a buffer may have grown to be kept.
const maxEncoderBytes = 64 << 10

func (e *encoder) release() {
	if e.buf.Cap() <= maxEncoderBytes {
		e.buf.Reset()
		encoders.Put(e)
	}
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)
	return e
}}
