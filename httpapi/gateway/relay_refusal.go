package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxRefusal bounds what is read of one, in bytes.
const maxRefusal = 64 << 10

// refusalIn returns the refusal that an answer is, nil for any other answer.
func refusalIn(res *http.Response) *Refusal {
	if mediaType(res) != "application/problem+json" {
		return nil
	}
	said := &Refusal{}
	// One that cannot be read has its status still.
	_ = json.NewDecoder(io.LimitReader(res.Body, maxRefusal)).Decode(said)
	said.Status = res.StatusCode
	return said
}

// lasts reports whether asking again is of no use.
func (r *Refusal) lasts() bool {
	return r.Status < http.StatusInternalServerError && r.Code != codeSessionNotFound
}

// check returns the refusal of an endpoint that would take no message of the client, so
// that whoever starts the relay with the wrong address or token learns of it at once. An
// endpoint that does not answer is the requests' affair.
func (l *relay) check(ctx context.Context) error {
	hello, err := parseRequest(encoded(map[string]any{
		"jsonrpc": "2.0", "id": 0, "method": methodDiscover,
		"params": map[string]any{"_meta": map[string]any{
			mcp.MetaKeyProtocolVersion: mcp.ProtocolVersion20260728, mcp.MetaKeyClientCapabilities: struct{}{},
			mcp.MetaKeyClientInfo: clientInfo{Name: "mcpledger"},
		}},
	}))
	if err != nil {
		return err
	}
	_, err = l.greeting(ctx, l.link(), hello)
	if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.lasts() {
		return refusal
	}
	return nil
}
