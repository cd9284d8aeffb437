package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/httpapi/patient"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// StreamEvents answers GET /api/events/stream.
func (a *API) StreamEvents(ctx context.Context, r api.StreamEventsRequestObject) (api.StreamEventsResponseObject, error) {
	s := eventStream{ctx: ctx, api: a}
	err := a.engine.View(func(st *projections.State) { s.after, s.set = st.Sequence(), st.Rules() })
	if err != nil {
		return nil, err
	}
	head := s.after
	if r.Params.After != nil {
		s.after = events.Sequence(*r.Params.After)
	}
	if last := r.Params.LastEventID; last != "" {
		n, err := parseDecimal(last)
		if err != nil {
			return nil, refuse(codeInvalidParameter, "Last-Event-ID: %q is no sequence", last)
		}
		s.after = events.Sequence(n)
	}
	if s.after > head {
		return nil, refuse(codeAtInFuture, "the log ends at %d", head)
	}
	return s, nil
}

// eventStream is the answer that ends when the client, the log or the service does, or
// when the client may read no more.
type eventStream struct {
	ctx   context.Context
	api   *API
	after events.Sequence
	set   *rules.Set
}

// VisitStreamEventsResponse writes the stream.
func (s eventStream) VisitStreamEventsResponse(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // a proxy that gathers would delay events
	w.WriteHeader(http.StatusOK)
	ctx, done := context.WithCancel(s.ctx)
	defer done()
	defer context.AfterFunc(s.api.draining, done)()

	out := patient.New(w, patient.Limit)
	if _, err := fmt.Fprintf(out, ": after %d\n\n", s.after); err != nil || out.FlushError() != nil {
		return nil // the client has gone, which ends a stream
	}
	who, frames := callerOf(ctx), s.follow(ctx)
	beat := time.NewTicker(s.api.heartbeat)
	defer beat.Stop()
	for {
		frame := []byte(":\n\n")
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
		case next, open := <-frames:
			if !open {
				return nil
			}
			frame = next
		}
		if !who.still() {
			return nil
		}
		if _, err := out.Write(frame); err != nil || out.FlushError() != nil {
			return nil // the client has gone, which ends a stream
		}
	}
}

// follow returns the stream's frames, one an event. The channel is closed when the
// log or ctx ends, or an event cannot be read.
func (s eventStream) follow(ctx context.Context) <-chan []byte {
	frames := make(chan []byte)
	go func() {
		defer close(frames)
		for e, err := range s.api.log.Follow(ctx, s.after) {
			if err != nil {
				return
			}
			shown, err := showEvent(e, s.set)
			if err != nil {
				return
			}
			body, err := json.Marshal(shown)
			if err != nil {
				return
			}
			frame := fmt.Appendf(nil, "id: %d\ndata: %s\n\n", e.Sequence, body)
			select {
			case frames <- frame:
			case <-ctx.Done():
				return
			}
		}
	}()
	return frames
}

// lines is a list of events without pages, one JSON object a line.
type lines struct {
	ctx   context.Context
	api   *API
	s     selection
	m     moment
	limit int // 0 for no bound
}

func (a *API) streamLines(ctx context.Context, s selection, m moment, p api.ListEventsParams) (lines, error) {
	if p.Cursor != "" {
		return lines{}, refuse(codeInvalidCursor, "lines have no pages; go on with after=")
	}
	return lines{ctx: ctx, api: a, s: s, m: m, limit: p.Limit}, nil
}

// VisitListEventsResponse writes the lines. An error in the midst cuts the
// connection, so that nobody takes a part for the whole.
func (l lines) VisitListEventsResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", mediaLines)
	w.Header().Set("Ledger-Sequence", strconv.FormatInt(int64(l.m.sequence), 10))
	w.WriteHeader(http.StatusOK)
	if l.s.none {
		return nil
	}
	ctx, done := context.WithCancelCause(l.ctx)
	defer done(nil)
	defer context.AfterFunc(l.api.draining, func() { done(discovery.ErrStopping) })()
	client := patient.New(w, patient.Limit)
	out := bufio.NewWriterSize(client, 64<<10)
	if err := l.write(ctx, json.NewEncoder(out)); err != nil {
		panic(http.ErrAbortHandler)
	}
	if out.Flush() != nil || client.FlushError() != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (l lines) write(ctx context.Context, enc *json.Encoder) error {
	written := 0
	for e, err := range l.api.log.Read(ctx, l.s.bounded(l.m)) {
		if err != nil {
			return err
		}
		shown, err := showEvent(e, l.m.set)
		if err != nil {
			return err
		}
		if l.s.class != "" && (shown.Classification == nil || shown.Classification.Class != l.s.class) {
			continue
		}
		if err := enc.Encode(shown); err != nil {
			return err
		}
		if written++; written == l.limit {
			return nil
		}
	}
	return nil
}
