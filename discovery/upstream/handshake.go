package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/events"
)

// probeLimit is how long server/discover may take after initialize was refused. A
// server that ignores what it does not know must not hide its refusal by silence.
const probeLimit = 5 * time.Second

// initializeOrDiscover begins as servers up to 2025-11-25 want it, and as the others do
// where that is refused in the protocol's own words.
func (s *Session) initializeOrDiscover(ctx context.Context) *Failure {
	refusal := s.initialize(ctx)
	if refusal == nil || !refusesEra(refusal) {
		return refusal
	}
	ctx, cancel := s.target.withLimit(ctx, probeLimit, "answer server/discover")
	defer cancel()
	if s.discover(ctx) != nil {
		return refusal
	}
	return nil
}

// initialize is the handshake of revisions up to 2025-11-25.
func (s *Session) initialize(ctx context.Context) *Failure {
	raw, f := s.request(ctx, events.PhaseHandshake, string(mcp.MethodInitialize), map[string]json.RawMessage{
		"protocolVersion": encoded(mcp.LATEST_LEGACY_PROTOCOL_VERSION),
		"capabilities":    json.RawMessage(`{}`),
		"clientInfo":      encoded(s.target.Client),
	}, nil)
	if f != nil {
		return f
	}
	var result struct {
		ProtocolVersion string            `json:"protocolVersion"`
		Capabilities    json.RawMessage   `json:"capabilities"`
		ServerInfo      events.ServerInfo `json:"serverInfo"`
		Instructions    string            `json:"instructions"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || result.ProtocolVersion == "" {
		return handshakeFailure(malformed("the answer to initialize names no protocol version"))
	}
	s.info.ProtocolVersion = s.target.Redactor.Text(result.ProtocolVersion, events.MaxHeaderBytes)
	if !slices.Contains(mcp.LegacyProtocolVersions(), result.ProtocolVersion) {
		return handshakeFailure(unsupported(s.info.ProtocolVersion))
	}
	s.info.Era = EraLegacy
	s.info.Server = result.ServerInfo
	s.info.Capabilities = result.Capabilities
	s.info.Instructions = result.Instructions
	s.conn.setVersion(result.ProtocolVersion)

	f = s.conn.notify(ctx, events.PhaseInitialized, mcp.JSONRPCNotification{
		JSONRPC:      mcp.JSONRPC_VERSION,
		Notification: mcp.Notification{Method: string(mcp.MethodNotificationInitialized)},
	})
	if f != nil && f.Evidence.Phase == "" {
		f.Evidence.Phase = events.PhaseInitialized
	}
	return f
}

// discover asks a server of 2026-07-28 or later what it is. If that fails, the
// session is as it was before.
func (s *Session) discover(ctx context.Context) (f *Failure) {
	before := s.info
	defer func() {
		if f != nil {
			s.info = before
			s.conn.setVersion(before.ProtocolVersion)
		}
	}()
	s.info.Era = EraModern
	s.info.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	s.conn.setVersion(mcp.LATEST_PROTOCOL_VERSION)
	raw, f := s.request(ctx, events.PhaseHandshake, string(mcp.MethodServerDiscover), nil, nil)
	if f != nil {
		return f
	}
	var result struct {
		SupportedVersions []string        `json:"supportedVersions"`
		Capabilities      json.RawMessage `json:"capabilities"`
		Instructions      string          `json:"instructions"`
		Meta              struct {
			ServerInfo events.ServerInfo `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || len(result.SupportedVersions) == 0 {
		return handshakeFailure(malformed("the answer to server/discover names no protocol version"))
	}
	if !slices.Contains(result.SupportedVersions, mcp.LATEST_PROTOCOL_VERSION) {
		offered := s.target.Redactor.Text(fmt.Sprint(result.SupportedVersions), events.MaxHeaderBytes)
		return handshakeFailure(unsupported(offered))
	}
	s.info.Server = result.Meta.ServerInfo
	s.info.Capabilities = result.Capabilities
	s.info.Instructions = result.Instructions
	return nil
}

// withMeta adds to params what 2026-07-28 wants in every request.
func (s *Session) withMeta(params map[string]json.RawMessage) map[string]json.RawMessage {
	if s.info.Era != EraModern {
		return params
	}
	meta := map[string]json.RawMessage{}
	if len(params["_meta"]) > 0 && json.Unmarshal(params["_meta"], &meta) != nil {
		return params
	}
	meta[mcp.MetaKeyProtocolVersion] = encoded(s.info.ProtocolVersion)
	meta[mcp.MetaKeyClientCapabilities] = json.RawMessage(`{}`)
	meta[mcp.MetaKeyClientInfo] = encoded(s.target.Client)
	with := map[string]json.RawMessage{"_meta": encoded(meta)}
	for name, value := range params {
		if name != "_meta" {
			with[name] = value
		}
	}
	return with
}

// refusesEra reports whether a failure is a server's way to say that it does not
// begin like this: versions of the other era, a JSON-RPC error that names the method,
// the parameters or the version, or over HTTP a status of the same meaning. A server that
// dies, stays silent or asks for credentials says nothing of the kind.
func refusesEra(f *Failure) bool {
	if f.Evidence.Phase != events.PhaseHandshake {
		return false
	}
	if errors.Is(f, errUnsupported) {
		return true
	}
	if f.RPC != nil {
		switch f.RPC.Code {
		case mcp.METHOD_NOT_FOUND, mcp.INVALID_REQUEST, mcp.INVALID_PARAMS,
			mcp.UNSUPPORTED_PROTOCOL_VERSION, mcp.HEADER_MISMATCH:
			return f.Evidence.HTTPStatus != http.StatusUnauthorized && f.Evidence.HTTPStatus != http.StatusForbidden
		}
		return false
	}
	switch f.Evidence.HTTPStatus {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable:
		return true
	}
	return false
}

// errUnsupported is the cause of a failure for want of a common protocol version.
var errUnsupported = errors.New("unsupported protocol version")

func unsupported(version string) *Failure {
	err := fmt.Errorf("%w %s", errUnsupported, version)
	return &Failure{cause: err, Evidence: events.Evidence{Error: err.Error()}}
}

func handshakeFailure(f *Failure) *Failure {
	f.Evidence.Phase = events.PhaseHandshake
	return f
}

// encoded is the JSON of a value of ours, which always encodes.
func encoded(v any) json.RawMessage {
	b, _ := json.Marshal(v)
	return b
}
