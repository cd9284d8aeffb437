package discovery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"mcpledger/discovery/upstream"
)

// argumentsHash is equal for equal arguments and tells nothing else of them.
func (s *Service) argumentsHash(arguments json.RawMessage) string {
	canonical, err := upstream.CanonicalJSON(arguments)
	if err != nil {
		canonical = arguments // none, or no JSON: they are equal as they stand
	}
	mac := hmac.New(sha256.New, s.callKey)
	mac.Write(canonical)
	return hex.EncodeToString(mac.Sum(nil)[:argumentsHashBytes])
}

// argumentsHashBytes is how much of the keyed SHA-256 is kept.
const argumentsHashBytes = 16
