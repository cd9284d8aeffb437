package sqlite

import (
	"encoding/hex"
	"fmt"
)

const (
	uuidBytes = 16
	uuidText  = 36
)

// idValue gives the column value of an id: the 16 bytes of a UUID in its canonical
// lower-case form, any other text as it is, nil for an empty one.
func idValue(id string) any {
	if id == "" {
		return nil
	}
	if u, ok := parseUUID(id); ok {
		return u
	}
	return id
}

// idText is the inverse of idValue.
func idText(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []byte:
		if len(v) == uuidBytes {
			return formatUUID(v), nil
		}
	}
	return "", fmt.Errorf("id column holds %T", value)
}

func parseUUID(s string) ([]byte, bool) {
	if len(s) != uuidText || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return nil, false
	}
	u := make([]byte, 0, uuidBytes)
	for i := 0; i < uuidText; i += 2 {
		if s[i] == '-' {
			i++
		}
		high, ok1 := lowerHex(s[i])
		low, ok2 := lowerHex(s[i+1])
		if !ok1 || !ok2 {
			return nil, false
		}
		u = append(u, high<<4|low)
	}
	return u, true
}

func lowerHex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

func formatUUID(u []byte) string {
	var s [uuidText]byte
	hex.Encode(s[:8], u[:4])
	s[8] = '-'
	hex.Encode(s[9:13], u[4:6])
	s[13] = '-'
	hex.Encode(s[14:18], u[6:8])
	s[18] = '-'
	hex.Encode(s[19:23], u[8:10])
	s[23] = '-'
	hex.Encode(s[24:], u[10:])
	return string(s[:])
}
