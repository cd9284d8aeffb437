package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// batchVersion is the one revision that has batches of messages.
const batchVersion = mcp.ProtocolVersion20250326

// maxBatch bounds the messages of a batch, which are answered at the same time.
const maxBatch = 64

// isBatch reports whether a body is an array.
func isBatch(body []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) }

// postBatch takes several messages at once, in a session of 2025-03-26. The answers come
// together, without what a stream would tell meanwhile.
func (g *Gateway) postBatch(w http.ResponseWriter, r *http.Request, v *view, body []byte) error {
	c, leave, err := g.enter(r, v)
	if err != nil {
		return err
	}
	defer leave()
	var batch []json.RawMessage
	switch err := json.Unmarshal(body, &batch); {
	case err != nil:
		writeError(w, http.StatusBadRequest, mcp.PARSE_ERROR, errNoMessage.Error())
		return nil
	case c.protocolVersion() != batchVersion:
		writeError(w, http.StatusBadRequest, mcp.INVALID_REQUEST, "batches are part of "+batchVersion+" alone: send one message at a time")
		return nil
	case len(batch) == 0 || len(batch) > maxBatch:
		writeError(w, http.StatusBadRequest, mcp.INVALID_REQUEST, "a batch has one message or more, and not too many")
		return nil
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json")
	answers := make([][]byte, len(batch))
	var answering sync.WaitGroup
	for i, one := range batch {
		answering.Go(func() { answers[i] = g.answerOfBatch(r, v, one) })
	}
	answering.Wait()
	var all [][]byte
	for _, a := range answers {
		if len(a) > 0 {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	writeJSON(w, http.StatusOK, [][]byte{[]byte("["), bytes.Join(all, []byte(",")), []byte("]")})
	return nil
}

// answerOfBatch returns the answer to one message of a batch, nothing for a
// notification.
func (g *Gateway) answerOfBatch(r *http.Request, v *view, body []byte) []byte {
	req, err := parseRequest(body)
	var wrong *rpcError
	switch {
	case err != nil:
		req, wrong = &request{}, &rpcError{Code: mcp.INVALID_REQUEST, Message: err.Error()}
	case req.Method == methodInitialize:
		wrong = &rpcError{Code: mcp.INVALID_REQUEST, Message: "initialize is not part of a batch"}
	default:
		wrong = req.wrongShape()
	}
	if wrong != nil {
		return bytes.Join(answer{err: wrong}.reply(req.ID), nil)
	}
	c := &captured{header: http.Header{}}
	if err := g.postSession(c, r, v, req); err != nil {
		return bytes.Join(errorOf(mcp.INTERNAL_ERROR, "%s", err.Error()).reply(req.ID), nil)
	}
	return bytes.TrimSpace(c.body.Bytes())
}
