package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"mcpledger/events"
	"mcpledger/httpapi/api"
)

// GetTools answers GET /api/tools.
func (a *API) GetTools(ctx context.Context, r api.GetToolsRequestObject) (api.GetToolsResponseObject, error) {
	f, err := a.fleetAt(ctx, r.Params.At, r.Params.Rules)
	if err != nil {
		return nil, err
	}
	var answer *toolsAnswer
	if r.Params.At == "" && r.Params.Rules == "" {
		answer, err = a.presentTools(ctx, f, r.Params.Summary)
	} else {
		answer, err = a.renderTools(ctx, f, r.Params.Summary)
	}
	if err != nil {
		return nil, err
	}
	if matchesETag(r.Params.IfNoneMatch, answer.etag) {
		return api.GetTools304Response{Headers: api.GetTools304ResponseHeaders{
			ETag: answer.etag, LedgerSequence: int64(answer.sequence),
		}}, nil
	}
	return answer, nil
}

// toolsAnswer is a rendered answer, kept in pieces so that catalogues are in memory
// once.
type toolsAnswer struct {
	sequence events.Sequence
	etag     string
	pieces   [][]byte
	length   int
}

// toolsCache holds the answers for one fleet.
type toolsCache struct {
	mu      sync.Mutex // held while one is rendered: who else asks meanwhile gets the same
	fleet   *fleet
	answers map[bool]*toolsAnswer // by whether it is the summary
}

// presentTools returns the answer for the present fleet, rendered once.
func (a *API) presentTools(ctx context.Context, f *fleet, summary bool) (*toolsAnswer, error) {
	a.tools.mu.Lock()
	defer a.tools.mu.Unlock()
	if a.tools.fleet != f {
		a.tools.fleet, a.tools.answers = f, map[bool]*toolsAnswer{}
		a.catalogue.keep(f.servers)
	}
	if known := a.tools.answers[summary]; known != nil {
		return known, nil
	}
	made, err := a.renderTools(ctx, f, summary)
	if err != nil {
		return nil, err
	}
	a.tools.answers[summary] = made
	return made, nil
}

// noTools is where a server's tools go. Quotes inside a JSON string are escaped, so
// it occurs nowhere else in a server's JSON.
var noTools = []byte(`"tools":[]`)

// renderTools renders the fleet. A catalogue that cannot be read costs its server
// the tools, and no other.
func (a *API) renderTools(ctx context.Context, f *fleet, summary bool) (*toolsAnswer, error) {
	answer := &toolsAnswer{sequence: f.sequence}
	digest := sha256.New()
	add := func(piece []byte) {
		answer.pieces = append(answer.pieces, piece)
		answer.length += len(piece)
	}
	separator := []byte("[")
	for _, v := range f.servers {
		var o offer
		var broken error
		if v.Offered() && v.Catalogue != nil {
			if o, broken = a.offerOf(ctx, v); broken != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				a.logger.ErrorContext(ctx, "catalogue not shown", slog.String("server", string(v.Name)), slog.Any("err", broken))
			}
		}
		shown := showTools(v, o)
		if broken != nil {
			shown.Status, shown.Error = api.ServerToolsStatusError, "The recorded catalogue cannot be read; discover the server anew"
		}
		head, err := json.Marshal(shown)
		if err != nil {
			return nil, err
		}
		_, _ = digest.Write(head)
		add(separator)
		separator = []byte(",\n")
		before, after, _ := bytes.Cut(head, noTools)
		if summary || len(o.tools) == 0 {
			add(head)
			continue
		}
		_, _ = digest.Write([]byte(offerKey(v)))
		add(append(before[:len(before):len(before)], `"tools":[`...))
		add(o.tools)
		add(append([]byte("]"), after...))
	}
	if len(f.servers) == 0 {
		add(separator)
	}
	add([]byte("]\n"))
	answer.etag = `"` + base64.RawURLEncoding.EncodeToString(digest.Sum(nil)[:18]) + `"`
	return answer, nil
}

// buffers join small pieces into few writes.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// VisitGetToolsResponse writes the answer.
func (t *toolsAnswer) VisitGetToolsResponse(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(t.length))
	h.Set("Ledger-Sequence", strconv.FormatInt(int64(t.sequence), 10))
	h.Set("ETag", t.etag)
	w.WriteHeader(http.StatusOK)
	out := buffers.Get().(*bufio.Writer)
	out.Reset(w)
	defer func() {
		out.Reset(nil)
		buffers.Put(out)
	}()
	for _, piece := range t.pieces {
		if _, err := out.Write(piece); err != nil {
			return err
		}
	}
	return out.Flush()
}

// matchesETag reports whether an If-None-Match header names the tag.
func matchesETag(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}
