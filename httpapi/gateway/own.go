package gateway

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// ownToolsJSON are the definitions of the gateway's own tools, an array.
//
//go:embed own_tools.json
var ownToolsJSON []byte

// ownTools returns the gateway's own tools as a part of a list.
var ownTools = sync.OnceValue(func() []byte {
	var tools []json.RawMessage
	if err := json.Unmarshal(ownToolsJSON, &tools); err != nil {
		panic(err) // the file is part of the program
	}
	var part []byte
	for i, tool := range tools {
		if i > 0 {
			part = append(part, ',')
		}
		part = append(part, oneLine(tool)...)
	}
	return part
})

// ownArguments are what the gateway's own tools take.
type ownArguments struct {
	Server events.ServerName       `json:"server"`
	State  projections.ServerState `json:"state"`
	Limit  int                     `json:"limit"`
	Source string                  `json:"source"`
	Key    events.ConfigKey        `json:"config_key"`
}

// ownTool returns what answers one of the gateway's own tools, nil for any other name.
func ownTool(name string) func(*Gateway, context.Context, *exchange, ownArguments) (any, error) {
	switch name {
	case OwnPrefix + "list_servers":
		return (*Gateway).ownListServers
	case OwnPrefix + "why":
		return (*Gateway).ownWhy
	case OwnPrefix + "history":
		return (*Gateway).ownHistory
	case OwnPrefix + "retry":
		return (*Gateway).ownRetry
	case OwnPrefix + "list_skips":
		return (*Gateway).ownListSkips
	}
	return nil
}

// errUnknownServer reports a server that the view does not have, and errUnreported one
// that besides no host reports, or not as was asked.
var (
	errUnknownServer = errors.New("no such server")
	errUnreported    = errors.New("neither configured nor reported")
)

// callOwn answers a call of one of the gateway's own tools.
func (g *Gateway) callOwn(ctx context.Context, x *exchange, name string) answer {
	tool := ownTool(name)
	if tool == nil {
		return x.failed(failure{Code: discovery.CodeToolNotFound, Sentence: "mcpledger has no tool of its own of that name; list the tools anew."})
	}
	arguments := x.request.params.Arguments
	if wrong := ownSchemas()[name].check(arguments); wrong != "" {
		return x.failed(failure{Code: codeInvalidArguments, Sentence: wrong})
	}
	var args ownArguments
	if len(arguments) > 0 {
		_ = json.Unmarshal(arguments, &args) // the check has found nothing wrong
	}
	said, err := tool(g, ctx, x, args)
	switch {
	case errors.Is(err, errUnknownServer):
		return x.failed(failure{
			Code:     codeServerNotFound,
			Sentence: "No server of that name is configured; " + OwnPrefix + "list_servers names them all.",
		})
	case errors.Is(err, errUnreported):
		return x.failed(failure{
			Code: codeServerNotFound,
			Sentence: "No server of that name is configured, and none is reported as asked for; " + OwnPrefix +
				"list_servers names those that are configured.",
		})
	case err != nil:
		return x.failed(unrecorded(args.Server, discovery.CallOutcome{}, err))
	}
	body := encoded(said)
	return x.result(encoded(map[string]any{
		"content":           []map[string]string{{"type": "text", "text": string(body)}},
		"structuredContent": body,
	}))
}

// ownServer is how a server stands, in our words.
type ownServer struct {
	Server        events.ServerName       `json:"server"`
	State         projections.ServerState `json:"state"`
	Needs         projections.Needs       `json:"needs"`
	Tools         int                     `json:"tools"` // offered here
	Class         rules.Class             `json:"class,omitempty"`
	VerifiedAt    *time.Time              `json:"verified_at,omitempty"`
	NextAttemptAt *time.Time              `json:"next_attempt_at,omitempty"`
	UntrustedText string                  `json:"untrusted_text,omitempty"`
}

func showServer(v projections.Server) ownServer {
	s := ownServer{
		Server: v.Name, State: v.State, Needs: v.Needs,
		VerifiedAt: timeOrNil(v.VerifiedAt), NextAttemptAt: timeOrNil(v.NextAttempt),
	}
	if v.Offered() && v.Catalogue != nil && !v.FromReports {
		for _, tool := range v.Catalogue.Names {
			if v.Offers(tool) {
				s.Tools++
			}
		}
	}
	if v.Cause != nil && v.State != projections.StateReady {
		s.Class, s.UntrustedText = v.Cause.Class, untrusted(v.Cause.Text)
	}
	return s
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

func (g *Gateway) ownListServers(_ context.Context, x *exchange, args ownArguments) (any, error) {
	servers, err := g.present(x.view)
	if err != nil {
		return nil, err
	}
	missing := x.view.missing(&standing{servers: servers})
	shown := []ownServer{}
	for _, v := range servers {
		if args.State == "" || v.State == args.State {
			shown = append(shown, showServer(v))
		}
	}
	said := map[string]any{"servers": shown}
	if len(missing) > 0 {
		said["not_configured"] = missing
	}
	return said, nil
}

// present returns how the view's servers stand at this moment.
func (g *Gateway) present(v *view) ([]projections.Server, error) {
	s := &standing{}
	now := g.now()
	err := g.state(func(st *projections.State) { s.servers = st.Servers(now) })
	return v.servers(s), err
}

// presentServer returns how one server of the view stands at this moment.
func (g *Gateway) presentServer(v *view, name events.ServerName) (projections.Server, error) {
	servers, err := g.present(v)
	if err != nil {
		return projections.Server{}, err
	}
	one, found := (&standing{servers: servers}).server(name)
	if !found {
		return projections.Server{}, errUnknownServer
	}
	return one, nil
}

// ownSkip is a skip, in our words.
type ownSkip struct {
	Reason   projections.SkipReason `json:"reason"`
	Class    rules.Class            `json:"class,omitempty"`
	Failures int                    `json:"failures,omitempty"`
	Since    *time.Time             `json:"since,omitempty"`
	Until    *time.Time             `json:"until,omitempty"`
	ClearsOn []string               `json:"clears_on"`
}

func showSkip(v projections.Server) *ownSkip {
	if v.Skip == nil {
		return nil
	}
	return &ownSkip{
		Reason: v.Skip.Reason, Class: v.Skip.Cause.Class, Failures: v.Skip.Failures,
		Since: timeOrNil(v.Skip.Since), Until: timeOrNil(v.Skip.Until), ClearsOn: v.ClearsOn(),
	}
}

func (g *Gateway) ownListSkips(_ context.Context, x *exchange, _ ownArguments) (any, error) {
	servers, err := g.present(x.view)
	if err != nil {
		return nil, err
	}
	type skipped struct {
		Server events.ServerName `json:"server"`
		*ownSkip
		UntrustedText string `json:"untrusted_text,omitempty"`
	}
	shown := []skipped{}
	for _, v := range servers {
		if v.Skip != nil {
			shown = append(shown, skipped{v.Name, showSkip(v), untrusted(v.Skip.Cause.Text)})
		}
	}
	return map[string]any{"skips": shown}, nil
}

// defaultHistory is how much a history tells where no limit is given.
const defaultHistory = 20

// ownEvent is a recorded fact, in our words.
type ownEvent struct {
	Sequence      events.Sequence `json:"sequence"`
	Time          *time.Time      `json:"time"`
	Type          events.Type     `json:"type"`
	Class         rules.Class     `json:"class,omitempty"`
	UntrustedText string          `json:"untrusted_text,omitempty"`
}

func (g *Gateway) ownHistory(ctx context.Context, x *exchange, args ownArguments) (any, error) {
	if _, err := g.explained(x, args); err != nil {
		return nil, err
	}
	set := g.engine.Rules()
	shown := []ownEvent{}
	for e, err := range g.log.Read(ctx, events.Query{Subject: args.Server, Desc: true, Limit: cmp.Or(args.Limit, defaultHistory)}) {
		if err != nil {
			return nil, err
		}
		one := ownEvent{Sequence: e.Sequence, Time: timeOrNil(e.Time), Type: e.Type}
		if ev := evidenceOf(e.Data); ev != nil {
			verdict := set.Classify(*ev)
			one.Class, one.UntrustedText = verdict.Class, untrusted(verdict.Text)
		}
		shown = append(shown, one)
	}
	slices.Reverse(shown)
	return map[string]any{"server": args.Server, "events": shown}, nil
}

// evidenceOf returns the evidence of a failure, nil for other facts.
func evidenceOf(d events.Data) *events.Evidence {
	switch d := d.(type) {
	case events.DiscoveryFailed:
		return &d.Evidence
	case events.ToolCallFailed:
		return &d.Evidence
	case events.ToolCallRefused:
		return d.Evidence
	case events.SessionDiscarded:
		return d.Evidence
	}
	return nil
}

func (g *Gateway) ownRetry(ctx context.Context, x *exchange, args ownArguments) (any, error) {
	if _, err := g.presentServer(x.view, args.Server); err != nil {
		return nil, err
	}
	refused, err := g.discovery.Retry(ctx, args.Server)
	if err != nil {
		return nil, err
	}
	now, err := g.presentServer(x.view, args.Server)
	if err != nil {
		return nil, err
	}
	answer := struct {
		ownServer
		Attempted    bool     `json:"attempted"`
		Refused      string   `json:"refused,omitempty"` // why no attempt was made
		ClearsOn     []string `json:"clears_on,omitempty"`
		RetryAfterMS int64    `json:"retry_after_ms,omitempty"`
	}{ownServer: showServer(now), Attempted: refused == nil}
	if refused != nil {
		answer.Refused, answer.ClearsOn, answer.RetryAfterMS = refused.Code, refused.ClearsOn, refused.RetryAfter.Milliseconds()
	}
	return answer, nil
}
