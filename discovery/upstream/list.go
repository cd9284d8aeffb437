package upstream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/events"
)

// Bounds on a list of tools, over all pages.
const (
	maxListPages = 512
	maxListBytes = 16 << 20
)

// ListTools reads all pages of the server's list of tools. The error is a *Failure.
// A server that says it has no tools and refuses to list them has an empty list.
func (s *Session) ListTools(ctx context.Context) (Catalogue, error) {
	began := s.target.Now()
	ctx, cancel := s.target.withLimit(ctx, s.target.Budget.List, "list its tools")
	defer cancel()
	pages, f := s.listPages(ctx)
	if f != nil && s.hasNoTools(f) {
		pages, f = nil, nil
	}
	if f != nil {
		return Catalogue{}, s.complete(f, events.PhaseListTools, began, s.target.Now())
	}
	catalogue, err := newCatalogue(pages)
	if err != nil {
		return Catalogue{}, s.complete(malformed(s.target.errorText(err)), events.PhaseListTools, began, s.target.Now())
	}
	return catalogue, nil
}

// listPages returns the tools of all pages, each as sent.
func (s *Session) listPages(ctx context.Context) ([]json.RawMessage, *Failure) {
	var tools []json.RawMessage
	seen := map[string]bool{}
	params := map[string]json.RawMessage{}
	size := 0
	for range maxListPages {
		raw, f := s.request(ctx, events.PhaseListTools, string(mcp.MethodToolsList), params, nil)
		if f != nil {
			return nil, f
		}
		if size += len(raw); size > maxListBytes {
			return nil, oversizedList(fmt.Sprintf("over %d bytes", maxListBytes))
		}
		var page struct {
			Tools      *[]json.RawMessage `json:"tools"`
			NextCursor string             `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil || page.Tools == nil {
			return nil, malformed("the answer to tools/list holds no list of tools")
		}
		tools = append(tools, *page.Tools...)
		if page.NextCursor == "" {
			return tools, nil
		}
		if seen[page.NextCursor] {
			return nil, malformed("the list of tools repeats a cursor")
		}
		seen[page.NextCursor] = true
		params = map[string]json.RawMessage{"cursor": encoded(page.NextCursor)}
	}
	return nil, oversizedList(fmt.Sprintf("over %d pages", maxListPages))
}

func oversizedList(detail string) *Failure {
	f := malformed("the list of tools is too long: " + detail)
	f.Evidence.ErrorKind = events.KindOversized
	return f
}

// hasNoTools reports whether a failed listing is that of a server without tools.
func (s *Session) hasNoTools(f *Failure) bool {
	if f.RPC == nil || f.RPC.Code != mcp.METHOD_NOT_FOUND {
		return false
	}
	var capabilities map[string]json.RawMessage
	if json.Unmarshal(s.info.Capabilities, &capabilities) != nil {
		return false
	}
	_, has := capabilities["tools"]
	return !has
}
