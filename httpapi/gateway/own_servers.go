package gateway

import (
	"context"
	"time"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

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
