package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Endpoint is a gateway that answers over HTTP.
type Endpoint struct {
	URL   string // of the view, such as http://127.0.0.1:8132/mcp
	Token string // empty: none is shown
}

// Relay carries a client that speaks over stdin and stdout to a gateway that answers
// over HTTP.
type Relay struct {
	// Open returns the endpoint to speak to. It is called at the start, and again when
	// that endpoint is gone: the service may have ended and another have taken its place.
	Open   func(context.Context) (Endpoint, error)
	Logger *slog.Logger
}

const (
	maxLine      = 16 << 20        // bytes of one message from the client
	maxRelayed   = 128             // requests under way
	finishTime   = 5 * time.Second // for what is under way when the client has ended
	farewellTime = time.Second     // for the service to hear that the session ends
	reopenPause  = 200 * time.Millisecond
	reopenBudget = time.Minute
)

// Run carries messages until the client's end of in, or until ctx ends. Messages are
// lines. It returns nil at the end of in, after what was asked is answered, and never
// while Open is under way. The error is a *Refusal if the first endpoint takes no messages.
func (r Relay) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	streams, endStreams := context.WithCancel(working)
	defer endStreams()
	// Connections of its own: one that was dialled and not used would hold up the stop of
	// a service in this process.
	connections := http.DefaultTransport.(*http.Transport).Clone()
	defer connections.CloseIdleConnections()
	l := &relay{
		Relay: r, life: working, out: out, http: &http.Client{Transport: connections},
		cancels: map[string]context.CancelFunc{}, places: make(chan struct{}, maxRelayed),
		standing: map[string]*request{},
	}
	if err := l.reopen(working, 0); err != nil {
		return err
	}
	defer l.end(stop)
	refused := make(chan error, 1)
	l.asking.Go(func() {
		if err := l.check(working); err != nil {
			refused <- err
		}
	})
	lines := make(chan []byte)
	read := make(chan error, 1)
	go func() { read <- readLines(working, in, lines) }()
	for {
		select {
		case err := <-refused:
			return err
		case line, more := <-lines:
			if more {
				l.take(working, streams, line)
				continue
			}
			endStreams()
			l.finish(ctx, stop)
			select {
			case err := <-refused:
				return err
			default:
				return <-read
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// readLines sends each line, until the end or ctx's. A line that is too long is an
// error.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	defer close(lines)
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 64<<10), maxLine)
	for scanner.Scan() {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		select {
		case lines <- bytes.Clone(line):
		case <-ctx.Done():
			return nil
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read from the client: %w", err)
	}
	return nil
}

// relay is a Relay under way.
type relay struct {
	Relay
	life   context.Context // of all work; ends with the client
	http   *http.Client
	places chan struct{}

	writing sync.Mutex
	out     io.Writer

	asking sync.WaitGroup // requests under way

	mu         sync.Mutex
	endpoint   Endpoint
	generation int // of the endpoint, from 1
	session    string
	version    string // of the protocol, for the header
	hello      []byte // the client's initialize; nil: it sent none yet
	listening  bool   // the session's stream is wanted
	// standing are the client's requests that its session stands for: what it subscribed
	// to, and its level of log messages.
	standing map[string]*request
	cancels  map[string]context.CancelFunc
}

// link is where a message goes.
type link struct {
	endpoint   Endpoint
	generation int
	session    string
	version    string
}

func (l *relay) link() link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return link{l.endpoint, l.generation, l.session, l.version}
}

// take carries one message of the client. What lasts until the client ends is carried
// under streams.
func (l *relay) take(ctx, streams context.Context, line []byte) {
	if isBatch(line) {
		l.begin(ctx, &request{body: line}, false)
		return
	}
	req, err := parseRequest(line)
	if err != nil {
		l.write(errorOf(mcp.PARSE_ERROR, "%s", err.Error()).reply(nil)...)
		return
	}
	modern := mcp.IsModernProtocol(req.meta.Version)
	if !modern {
		l.keep(req)
	}
	switch {
	case req.Method == methodPing && req.ID != nil && !modern && !l.greeted():
		// A client may ask so before it says initialize; the gateway has no session for it yet.
		l.write(resultOf([]byte("{}")).reply(req.ID)...)
	case req.Method == methodCancelled && l.cancel(string(req.params.RequestID)):
	case req.Method == methodInitialize && !modern:
		l.mu.Lock()
		l.hello = line
		l.mu.Unlock()
		l.ask(ctx, req)
	case req.ID == nil || req.Method == "":
		l.ask(ctx, req)
		if req.Method == string(mcp.MethodNotificationInitialized) {
			l.listen(streams)
		}
	case req.Method == methodListen:
		l.begin(streams, req, modern)
	default:
		l.begin(ctx, req, modern)
	}
}

// greeted reports whether the client has sent its initialize.
func (l *relay) greeted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hello != nil
}

// keep notes what is to be asked again of a service that takes the place of this one.
func (l *relay) keep(req *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch req.Method {
	case methodSubscribe:
		if len(l.standing) < maxSubscriptions {
			l.standing[req.params.URI] = req
		}
	case methodUnsubscribe:
		delete(l.standing, req.params.URI)
	case methodSetLevel:
		l.standing[methodSetLevel] = req
	}
}

// begin carries a request while others go on. The end of its exchange is how the
// clients of 2026-07-28 cancel it; for others the message goes on as it is.
func (l *relay) begin(ctx context.Context, req *request, cancellable bool) {
	ctx, cancel := context.WithCancel(ctx)
	id := string(req.ID)
	if cancellable && !l.note(id, cancel) {
		cancel()
		l.write(errorOf(mcp.INVALID_REQUEST, "a request of this id is under way").reply(req.ID)...)
		return
	}
	l.places <- struct{}{}
	l.asking.Go(func() {
		defer func() {
			cancel()
			if cancellable {
				l.mu.Lock()
				delete(l.cancels, id)
				l.mu.Unlock()
			}
			<-l.places
		}()
		l.ask(ctx, req)
	})
}

// note notes what cancels a request, unless another of that id is under way.
func (l *relay) note(id string, cancel context.CancelFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancels[id] != nil {
		return false
	}
	l.cancels[id] = cancel
	return true
}

// cancel ends the request of that id, if it is one that is cancelled so.
func (l *relay) cancel(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	cancel := l.cancels[id]
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}

// ask sends a message and writes what is answered. What did not reach the endpoint,
// or may be asked twice, is asked again at the one that took its place.
func (l *relay) ask(ctx context.Context, req *request) {
	for tries := 3; tries > 0; tries-- {
		at := l.link()
		sent, err := l.post(ctx, at, req)
		if err == nil || ctx.Err() != nil {
			return
		}
		if sent && req.Method == methodListen {
			tries = 3 // it was served meanwhile
			if !pause(ctx, reopenPause) {
				return
			}
		}
		if sent && (req.Method == methodToolsCall || isBatch(req.body)) {
			l.refuse(req, "the service ended during the call, which may have been carried out; it was not sent again")
			l.background(at.generation)
			return
		}
		if err := l.reopen(ctx, at.generation); err != nil {
			l.refuse(req, err.Error())
			return
		}
	}
	l.refuse(req, "the service does not stay up")
}

// refuse answers a request that came to nothing, or each of a batch.
func (l *relay) refuse(req *request, why string) {
	var batch []json.RawMessage
	if isBatch(req.body) && json.Unmarshal(req.body, &batch) == nil {
		for _, one := range batch {
			if req, err := parseRequest(one); err == nil {
				l.refuse(req, why)
			}
		}
		return
	}
	if req.ID != nil && req.Method != "" {
		l.write(errorOf(mcp.INTERNAL_ERROR, "mcpledger: %s", why).reply(req.ID)...)
	}
}
