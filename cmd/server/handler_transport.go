package main

import (
	"io"
	"net/http"
	"sync"
)

// handlerTransport is an http.RoundTripper that asks a handler in this process. The
// body streams: an answer that never ends, such as a stream of events, can be read
// while it is written.
type handlerTransport struct{ handler http.Handler }

// RoundTrip runs the handler until it returns or the body of the answer is closed.
func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, w := io.Pipe()
	answer := &pipedAnswer{header: http.Header{}, body: w, started: make(chan struct{})}
	asked := r.Clone(r.Context())
	asked.RemoteAddr, asked.RequestURI = "127.0.0.1:0", r.URL.RequestURI()
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	go func() {
		t.handler.ServeHTTP(answer, asked)
		answer.WriteHeader(http.StatusOK)
		w.Close()
	}()
	select {
	case <-answer.started:
	case <-r.Context().Done():
		body.Close()
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: answer.status, Status: http.StatusText(answer.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.sent, Body: body, ContentLength: -1, Request: r,
	}, nil
}

// pipedAnswer is the http.ResponseWriter of a handlerTransport.
type pipedAnswer struct {
	header  http.Header
	body    *io.PipeWriter
	once    sync.Once
	started chan struct{} // closed when status and sent are set
	status  int
	sent    http.Header // as they were when the body began
}

func (a *pipedAnswer) Header() http.Header { return a.header }

func (a *pipedAnswer) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.started)
	})
}

func (a *pipedAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush has nothing to do: what is written waits for the reader.
func (a *pipedAnswer) Flush() { a.WriteHeader(http.StatusOK) }
