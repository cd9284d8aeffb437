package mcptest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Mishap is something an HTTP server does wrong.
type Mishap string

// The mishaps. At says at which method they happen.
const (
	Fine        Mishap = ""
	Status      Mishap = "status"       // answers HTTP.Status with Header and Body
	HangHeaders Mishap = "hang_headers" // never answers
	HangBody    Mishap = "hang_body"    // sends half of the answer and no more
	CutBody     Mishap = "cut_body"     // sends half of the answer and ends the connection
	Reset       Mishap = "reset"        // resets the connection
	HugeBody    Mishap = "huge_body"    // answers with HTTP.Bytes bytes
	Garbled     Mishap = "garbled"      // answers Body, as JSON
	Misnumbered Mishap = "misnumbered"  // answers with another id
	Empty       Mishap = "empty"        // answers with an empty body
	Twice       Mishap = "twice"        // sends the answer five times, as events
)

func (s *Server) mishap(w http.ResponseWriter, r *http.Request, req message) {
	reply, _ := s.answer(req, w)
	body := marshal(reply)
	switch s.spec.Mishap {
	case Status:
		for name, value := range s.spec.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(s.spec.Status)
		_, _ = io.WriteString(w, s.spec.Body)
	case HangHeaders:
		s.wait(r)
	case HangBody, CutBody:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		flush(w)
		if s.spec.Mishap == HangBody {
			s.wait(r)
		}
		panic(http.ErrAbortHandler)
	case Reset:
		reset(w)
	case HugeBody:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"`)
		for range s.spec.Bytes / 1024 {
			if _, err := io.WriteString(w, strings.Repeat("x", 1024)); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"}`)
	case Garbled:
		s.reply(w, req, []byte(s.spec.Body))
	case Misnumbered:
		reply.ID = json.RawMessage(`424242`)
		s.reply(w, req, marshal(reply))
	case Empty:
		s.reply(w, req, nil)
	case Twice:
		w.Header().Set("Content-Type", "text/event-stream")
		for range 5 {
			event(w, reply)
		}
	}
}

// wait stays until the client or the test has gone.
func (s *Server) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.quit:
	}
}

func event(w http.ResponseWriter, m message) {
	_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", marshal(m))
	flush(w)
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// reset ends the connection so that the client's kernel sees a reset.
func reset(w http.ResponseWriter) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic("mcptest: connection cannot be taken over")
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
