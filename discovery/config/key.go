package config

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"hash"
	"maps"
	"slices"
	"time"

	"mcpledger/events"
)

// keyPartLen is the length of each of the two parts of a config key, in base32
// digits of 5 bits.
const keyPartLen = 16

var keyDigits = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// configKey returns the key of an entry and of what its references gave:
// "k1_<entry>.<values>". What goes into it, and how, is fixed for ever under "k1".
func configKey(secret []byte, e *entry, readings []reading) events.ConfigKey {
	return events.ConfigKey("k1_" + entryPart(secret, e) + "." + valuesPart(secret, readings))
}

// entryPart covers the entry as written. Absent and empty are the same, and so are
// all orders of keys.
func entryPart(secret []byte, e *entry) string {
	d := newDigest(secret, "entry")
	d.text("name", string(e.name))
	if len(e.faults) > 0 {
		// Nothing of it can be trusted to mean something, so all of it counts.
		d.json("malformed", plain(e.value))
		return d.sum()
	}
	d.text("transport", string(e.transport))
	d.text("command", e.command)
	d.list("args", e.args)
	d.pairs("env", e.env)
	d.text("cwd", e.cwd)
	d.text("url", e.url)
	d.pairs("headers", e.headers)
	if e.settings.RequiresAuth {
		d.json("oauth", e.oauth)
	}
	d.span("timeouts.start", e.timeouts.Start)
	d.span("timeouts.silence", e.timeouts.Silence)
	d.span("timeouts.call", e.timeouts.Call)
	d.span("timeouts.call_total", e.timeouts.CallTotal)
	d.list("inherit_env", e.inheritEnv)
	d.text("era", e.era)
	return d.sum()
}

// valuesPart covers what references and envFile gave. It is the same for all entries
// without any.
func valuesPart(secret []byte, readings []reading) string {
	lines := map[string]string{}
	for _, r := range readings {
		if r.set {
			lines[r.name] = r.value
		}
	}
	d := newDigest(secret, "values")
	d.pairs("values", lines)
	return d.sum()
}

// digest is a keyed hash of named fields. Lengths go before texts, so that no two
// lists of fields look alike.
type digest struct {
	mac hash.Hash
}

func newDigest(secret []byte, purpose string) digest {
	d := digest{mac: hmac.New(sha256.New, secret)}
	d.write("mcpledger config key 1", purpose)
	return d
}

func (d digest) write(texts ...string) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(texts)))
	d.mac.Write(length[:])
	for _, t := range texts {
		binary.BigEndian.PutUint64(length[:], uint64(len(t)))
		d.mac.Write(length[:])
		d.mac.Write([]byte(t))
	}
}

func (d digest) text(field, value string) {
	if value != "" {
		d.write(field, value)
	}
}

func (d digest) list(field string, values []string) {
	if len(values) > 0 {
		d.write(append([]string{field}, values...)...)
	}
}

func (d digest) pairs(field string, values map[string]string) {
	flat := make([]string, 0, 2*len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		flat = append(flat, name, values[name])
	}
	d.list(field, flat)
}

func (d digest) span(field string, value time.Duration) {
	if value != 0 {
		d.write(field, value.String())
	}
}

// json covers a value in JSON, whose encoder sorts the keys of maps.
func (d digest) json(field string, value any) {
	b, err := json.Marshal(value)
	if err != nil {
		b = []byte(err.Error()) // no value of a config file gives one
	}
	d.write(field, string(b))
}

func (d digest) sum() string {
	return keyDigits.EncodeToString(d.mac.Sum(nil))[:keyPartLen]
}
