package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/events"
)

// watches are the resources whose updates a session is told of. They are safe for
// concurrent use.
type watches struct {
	mu    sync.Mutex
	byURI map[string]*watch
}

// watch is a subscription to the updates of one resource.
type watch struct {
	settled chan struct{} // closed when it is known whether the server grants it
	failure *Failure      // why not; set before settled is closed

	granted chan struct{}      // closed by the server's word, for 2026-07-28
	grant   func()             // closes granted, once
	end     context.CancelFunc // of the stream that stands for it; nil before 2026-07-28
}

// add returns the watch of a resource; it is new if there was none.
func (w *watches) add(uri string) (one *watch, isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one = w.byURI[uri]; one != nil {
		return one, false
	}
	if w.byURI == nil {
		w.byURI = map[string]*watch{}
	}
	one = &watch{settled: make(chan struct{}), granted: make(chan struct{})}
	one.grant = sync.OnceFunc(func() { close(one.granted) })
	w.byURI[uri] = one
	return one, true
}

// take removes the watch of a resource and returns it, nil if there is none.
func (w *watches) take(uri string) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.byURI[uri]
	delete(w.byURI, uri)
	return one
}

// forget removes a watch, if it is still the one of its resource.
func (w *watches) forget(uri string, one *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byURI[uri] == one {
		delete(w.byURI, uri)
	}
}

// acknowledged grants the watches that a server's word on a stream names.
func (w *watches) acknowledged(fields map[string]any) {
	filter, _ := fields["notifications"].(map[string]any)
	granted, _ := filter["resourceSubscriptions"].([]any)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uri := range granted {
		name, _ := uri.(string)
		if one := w.byURI[name]; one != nil {
			one.grant()
		}
	}
}

// emptyResult answers a request that says no more than that it was taken.
var emptyResult = json.RawMessage(`{}`)

// watchResource asks the server to tell of a resource's updates. One that it tells of
// already is not asked for again.
func (s *Session) watchResource(ctx context.Context, uri string, params map[string]json.RawMessage) (json.RawMessage, *Failure) {
	one, isNew := s.watches.add(uri)
	if !isNew {
		select {
		case <-one.settled:
		case <-ctx.Done():
			return nil, contextFailure(ctx, events.KindTimeoutBody)
		}
		if one.failure != nil {
			same := *one.failure
			return nil, &same
		}
		return emptyResult, nil
	}
	defer close(one.settled)
	result := emptyResult
	if s.info.Era == EraModern {
		one.failure = s.openWatch(ctx, uri, one)
	} else {
		result, one.failure = s.request(ctx, "", string(mcp.MethodResourcesSubscribe), params, nil)
	}
	if one.failure != nil {
		s.watches.forget(uri, one)
		return nil, one.failure
	}
	return result, nil
}

// unwatchResource ends what watchResource began. A resource that the server does not
// tell of is not worth a word.
func (s *Session) unwatchResource(ctx context.Context, uri string, params map[string]json.RawMessage) (json.RawMessage, *Failure) {
	one := s.watches.take(uri)
	if one == nil {
		return emptyResult, nil
	}
	select {
	case <-one.settled:
	case <-ctx.Done():
		return nil, contextFailure(ctx, events.KindTimeoutBody)
	}
	switch {
	case one.failure != nil:
		return emptyResult, nil
	case one.end != nil:
		one.end()
		return emptyResult, nil
	}
	return s.request(ctx, "", string(mcp.MethodResourcesUnsubscribe), params, nil)
}

// errNotGranted reports a server that ended a subscription instead of granting it.
var errNotGranted = errors.New("the server does not tell of the updates of this resource")

// openWatch opens the stream on which a server of 2026-07-28 tells of a resource's
// updates, and waits until the server grants it. It lasts until one.end is called,
// or as long as the session.
func (s *Session) openWatch(ctx context.Context, uri string, one *watch) *Failure {
	var life context.Context
	life, one.end = context.WithCancel(s.alive)
	over := make(chan *Failure, 1)
	go func() {
		defer one.end()
		_, f := s.request(life, "", string(mcp.MethodSubscriptionsListen), map[string]json.RawMessage{
			"notifications": encoded(mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}}),
		}, nil)
		s.watches.forget(uri, one)
		over <- f
	}()
	select {
	case <-one.granted:
		return nil
	case f := <-over:
		if f == nil {
			f = &Failure{
				cause:    errNotGranted,
				RPC:      &RPCError{Code: mcp.INVALID_PARAMS, Message: errNotGranted.Error()},
				Evidence: events.Evidence{ErrorKind: events.KindJSONRPC, Error: errNotGranted.Error()},
			}
		}
		return f
	case <-ctx.Done():
		one.end()
		return contextFailure(ctx, events.KindTimeoutBody)
	}
}
