package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// listening is a stream of 2026-07-28 on which a client hears what it asked to hear.
type listening struct {
	id      json.RawMessage // of the request that opened it
	filter  mcp.SubscriptionFilter
	updates *subscriber
	outbox  outbox
}

// listen serves subscriptions/listen.
func (g *Gateway) listen(w http.ResponseWriter, r *http.Request, v *view, req *request) error {
	var asked struct {
		Notifications *mcp.SubscriptionFilter `json:"notifications"`
	}
	wrong := req.checkModern(r.Header)
	if wrong == nil && (json.Unmarshal(req.Params, &asked) != nil || asked.Notifications == nil) {
		wrong = &rpcError{Code: mcp.INVALID_PARAMS, Message: "params lacks notifications, which says what to listen for"}
	}
	if wrong == nil && !strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/event-stream") {
		wrong = &rpcError{Code: mcp.INVALID_REQUEST, Message: "the answer is a stream, and Accept lacks text/event-stream"}
	}
	if wrong != nil {
		writeJSON(w, http.StatusBadRequest, answer{err: wrong}.reply(req.ID))
		return nil
	}
	return g.stream(w, r, nil, func(ctx context.Context, w http.ResponseWriter) {
		who := callerName(g.caller(r), req.meta.Client.Name)
		l := &listening{id: req.ID}
		l.updates = &subscriber{tell: l.update}
		defer g.subscriptions.end(l.updates)
		l.filter = g.grant(ctx, &exchange{view: v, request: req, modern: true, caller: who, client: who}, l, *asked.Notifications)
		v.attach(l)
		defer v.detach(l)
		l.serve(ctx, w)
	})
}

// grant subscribes to the resources that a client asks for, to the first of them if they
// are too many, and returns what it will hear of: those that were granted, and the lists.
func (g *Gateway) grant(ctx context.Context, x *exchange, l *listening, asked mcp.SubscriptionFilter) mcp.SubscriptionFilter {
	resources := asked.ResourceSubscriptions[:min(len(asked.ResourceSubscriptions), maxSubscriptions)]
	granted := make([]bool, len(resources))
	places := make(chan struct{}, listsAtOnce)
	var asking sync.WaitGroup
	for i, uri := range resources {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			to, found := g.locate(ctx, x, uri)
			if !found {
				return
			}
			said, err := g.subscriptions.add(ctx, g.topicOf(to, x.client), l.updates, x.view.addressed(uri))
			granted[i] = err == nil && said.Failure == nil && said.RPC == nil
		})
	}
	asking.Wait()
	filter := asked
	filter.ResourceSubscriptions = nil
	for i, uri := range resources {
		if granted[i] {
			filter.ResourceSubscriptions = append(filter.ResourceSubscriptions, uri)
		}
	}
	return filter
}

// serve sends what there is to hear until ctx ends, or the client counts as gone. If it
// is the service that ends the stream, it says so.
func (l *listening) serve(ctx context.Context, w http.ResponseWriter) {
	acknowledged := notification(mcp.MethodNotificationSubscriptionsAcknowledged, l.params(map[string]json.RawMessage{"notifications": encoded(l.filter)}))
	begin := func() error {
		if err := beginStream(w); err != nil {
			return err
		}
		return writeEvent(w, 0, acknowledged)
	}
	serve := func() error { return l.outbox.serve(ctx, w, begin) }
	if l.filter.IsEmpty() {
		serve = begin
	}
	if serve() != nil {
		return
	}
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), errStopping) {
		end := l.params(map[string]json.RawMessage{"resultType": quoted("complete")})
		_ = writeEvent(w, 0, resultOf(end).reply(l.id)...)
	}
}

// params returns parameters that say which stream they are on.
func (l *listening) params(members map[string]json.RawMessage) json.RawMessage {
	meta := members["_meta"]
	if len(meta) == 0 {
		meta = json.RawMessage("{}")
	}
	if tagged, err := splice(meta, map[string][]byte{mcp.MetaKeySubscriptionID: l.id}, mcp.MetaKeySubscriptionID); err == nil {
		members["_meta"] = tagged
	}
	return encoded(members)
}

// update notes an update of a resource that is, or is part of, a whole.
func (l *listening) update(params map[string]json.RawMessage, whole string) {
	coarse := notification(mcp.MethodNotificationResourceUpdated, l.params(map[string]json.RawMessage{"uri": quoted(whole)}))
	l.outbox.note(
		notice{key: string(params["uri"]), message: notification(mcp.MethodNotificationResourceUpdated, l.params(params))},
		notice{key: string(quoted(whole)), message: coarse},
	)
}

// changed notes that a list changed, if the client asked for that.
func (l *listening) changed(method string) {
	wanted := map[string]bool{
		mcp.MethodNotificationToolsListChanged:     l.filter.ToolsListChanged,
		mcp.MethodNotificationResourcesListChanged: l.filter.ResourcesListChanged,
		mcp.MethodNotificationPromptsListChanged:   l.filter.PromptsListChanged,
	}
	if wanted[method] {
		l.outbox.tell(method, l.params(map[string]json.RawMessage{}))
	}
}
