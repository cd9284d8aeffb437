package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"mcpledger/events"
)

// exchange is what was seen on the wire of one HTTP request, recorded while the
// client library makes of it what it likes. It is safe for concurrent use.
type exchange struct {
	id json.RawMessage // of the JSON-RPC request; nil if it awaits no reply

	mu          sync.Mutex
	claimed     bool
	connected   bool // a connection was there to write to
	sessionSent bool
	status      int
	header      http.Header
	body        []byte // the beginning
	bodyBytes   int64
	bodyErr     error  // how the body ended, io.EOF included
	garbage     bool   // an event came that is no JSON
	reply       []byte // the beginning of the event that answers the request
}

type exchangeKey struct{}

// withExchange returns a context whose HTTP requests are recorded in the exchange.
func withExchange(ctx context.Context) (context.Context, *exchange) {
	x := &exchange{}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// exchangeOf returns the exchange to record req in, and whether it is that of a
// request of ours. The client library makes others by itself: it listens for
// notices, and answers the server's requests while ours waits.
func exchangeOf(req *http.Request) (x *exchange, ours bool) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok || req.Method == http.MethodPost && !x.claim() {
		return &exchange{}, false
	}
	return x, true
}

// claim reports whether the caller's is the first request in the exchange.
func (x *exchange) claim() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	first := !x.claimed
	x.claimed = true
	return first
}

// isForeign reports whether a reply with that id answers another request. A reply
// without an id answers a request that the server could not read.
func (x *exchange) isForeign(id json.RawMessage) bool {
	return x.id != nil && !bytes.Equal(id, x.id) && !bytes.Equal(id, []byte("null"))
}

func (x *exchange) update(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
}

// refused reports whether the response itself is a failure, whatever its body says.
func (x *exchange) refused() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.status != 0 && x.status != http.StatusOK && x.status != http.StatusAccepted
}

// reached reports whether anything may have been sent.
func (x *exchange) reached() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.connected
}

// timeout says what the exchange was waiting for.
func (x *exchange) timeout() events.ErrorKind {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case !x.connected:
		return events.KindTimeoutConnect
	case x.status == 0:
		return events.KindTimeoutHeaders
	default:
		return events.KindTimeoutBody
	}
}

// kindOf tells by types and numbers what err is. Where there was an answer, what
// counts is how its body ended, and then what was in it.
func (x *exchange) kindOf(err error) events.ErrorKind {
	x.mu.Lock()
	defer x.mu.Unlock()
	ended := errors.Is(x.bodyErr, io.EOF)
	switch {
	case x.status == 0:
		return networkKind(err)
	case x.bodyErr != nil && !ended && networkKind(x.bodyErr) != "":
		return networkKind(x.bodyErr)
	case !ended || x.garbage || !isReply(x.header):
		return events.KindMalformed
	case x.bodyBytes == 0 || isEventStream(x.header):
		return events.KindEOF
	default:
		return events.KindMalformed
	}
}

// networkKind is the kind of an error of the network, empty for any other.
func networkKind(err error) events.ErrorKind {
	var (
		dns       *net.DNSError
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		authority x509.UnknownAuthorityError
		timeout   net.Error
	)
	switch {
	case errors.Is(err, errOversized):
		return events.KindOversized
	case errors.As(err, &dns):
		return events.KindDNS
	case errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert),
		errors.As(err, &authority), errors.Is(err, http.ErrSchemeMismatch):
		return events.KindTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return events.KindRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return events.KindReset
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return events.KindUnreachable
	case errors.Is(err, syscall.ETIMEDOUT), errors.As(err, &timeout) && timeout.Timeout():
		return events.KindTimeoutConnect
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return events.KindEOF
	}
	return ""
}

// describe puts what was seen into ev.
func (x *exchange) describe(t Target, ev *events.Evidence) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ev.SessionSent = x.sessionSent
	if x.status == 0 {
		return
	}
	ev.HTTPStatus = x.status
	ev.ContentType = t.Redactor.Text(x.header.Get("Content-Type"), events.MaxHeaderBytes)
	ev.WWWAuthenticate = t.Redactor.Text(strings.Join(x.header.Values("WWW-Authenticate"), ", "), events.MaxHeaderBytes)
	ev.Location = t.Redactor.Text(bareLocation(x.header.Get("Location")), events.MaxHeaderBytes)
	ev.RetryAfterMS = retryAfter(x.header.Get("Retry-After"), t.Now()).Milliseconds()
	if ev.ErrorKind != events.KindJSONRPC {
		ev.BodyExcerpt = t.excerptStart(x.body, x.bodyBytes, events.MaxBodyBytes)
	}
}

// rpcError returns the JSON-RPC error in the body, nil if there is none.
func (x *exchange) rpcError() *RPCError {
	x.mu.Lock()
	defer x.mu.Unlock()
	var reply struct {
		JSONRPC string    `json:"jsonrpc"`
		Error   *RPCError `json:"error"`
	}
	body := x.body
	if x.reply != nil {
		body = x.reply
	}
	if json.Unmarshal(body, &reply) != nil || reply.JSONRPC == "" {
		return nil
	}
	return reply.Error
}

// statusFailure is the failure a response status is.
func (x *exchange) statusFailure(t Target) *Failure {
	f := &Failure{Evidence: events.Evidence{ErrorKind: events.KindHTTPStatus}}
	if rpc := x.rpcError(); rpc != nil {
		f.RPC = rpc
		t.describeRPC(&f.Evidence, rpc)
	}
	x.mu.Lock()
	status := x.status
	redirect := status >= 300 && status < 400 && x.header.Get("Location") != ""
	x.mu.Unlock()
	if redirect {
		f.Evidence.ErrorKind = events.KindRedirect
	}
	f.Evidence.Error = strings.TrimSpace("HTTP status " + strconv.Itoa(status) + " " + http.StatusText(status))
	f.cause = errors.New(f.Evidence.Error)
	return f
}

// sessionGone reports whether the server does not know the session it was sent.
func (x *exchange) sessionGone() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sessionSent && x.status == http.StatusNotFound
}

// bareLocation leaves of a redirect's target what says where it pointed: no
// credentials, no query, which may carry some.
func bareLocation(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment = nil, "", "", ""
	return u.String()
}

// retryAfter reads a Retry-After header, in seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
