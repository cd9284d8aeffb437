package upstream

import (
	"bytes"
	"encoding/json"
	"sync"
)

// sentErrors keeps the JSON-RPC errors on a process's stdout as they were sent until
// whoever asked fetches them: the client library decodes an error's data, which rounds
// large integers. It is safe for concurrent use.
type sentErrors struct {
	mu   sync.Mutex
	byID map[string]*RPCError
}

// maxSentErrors bounds how many errors wait to be fetched. A server may answer what
// nobody waits for any more.
const maxSentErrors = 64

// note keeps the error that a message is, if it is one. Most messages are told by a
// search; a long one is not looked into.
func (s *sentErrors) note(message []byte) {
	if len(message) > sniffBytes || !bytes.Contains(message, []byte(`"error"`)) {
		return
	}
	var reply struct {
		ID    json.RawMessage `json:"id"`
		Error *RPCError       `json:"error"`
	}
	if json.Unmarshal(message, &reply) != nil || reply.Error == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil || len(s.byID) >= maxSentErrors {
		s.byID = map[string]*RPCError{}
	}
	s.byID[string(reply.ID)] = reply.Error
}

// take returns the error that answered the request of that id and forgets it; nil if
// it was not kept.
func (s *sentErrors) take(id json.RawMessage) *RPCError {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byID[string(id)]
	delete(s.byID, string(id))
	return e
}

// sentAs gives the failure the data of its JSON-RPC error as it was sent, if that is
// known.
func (f *Failure) sentAs(e *RPCError) {
	if f.RPC != nil && e != nil {
		f.RPC.Data = e.Data
	}
}
