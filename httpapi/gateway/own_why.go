package gateway

import (
	"context"
	"time"

	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// explained returns the server that a question is about: one of the view, or one that
// hosts report, of those that the view's address may name.
func (g *Gateway) explained(x *exchange, args ownArguments) (v projections.Server, err error) {
	if !x.view.includes(args.Server) {
		return v, errUnknownServer
	}
	q := projections.Question{Server: args.Server, Source: args.Source, Key: args.Key, Asker: x.asker}
	now, known := g.now(), false
	err = g.state(func(s *projections.State) { v, known = s.Explained(q, now) })
	if err == nil && !known {
		err = errUnreported
	}
	return v, err
}

// ownClearing is one thing that would bring a server back.
type ownClearing struct {
	What string     `json:"what"`
	At   *time.Time `json:"at,omitempty"`
}

func (g *Gateway) ownWhy(_ context.Context, x *exchange, args ownArguments) (any, error) {
	v, err := g.explained(x, args)
	if err != nil {
		return nil, err
	}
	type gate struct {
		Kind  rules.Gate `json:"kind"`
		Since *time.Time `json:"since,omitempty"`
	}
	why := struct {
		ownServer
		ReportedBy  string               `json:"reported_by,omitempty"`
		Decision    projections.Decision `json:"decision"`
		Disposition rules.Disposition    `json:"disposition,omitempty"`
		Rule        string               `json:"rule,omitempty"`
		Failures    int                  `json:"failures_in_a_row"`
		Skip        *ownSkip             `json:"skip,omitempty"`
		Gate        *gate                `json:"gate,omitempty"`
		ClearsOn    []ownClearing        `json:"clears_on"`
	}{ownServer: showServer(v), Decision: v.Decision, Skip: showSkip(v), ClearsOn: []ownClearing{}}
	if v.FromReports {
		why.ReportedBy = v.Source
	}
	if v.Cause != nil && v.State != projections.StateReady {
		why.Disposition, why.Rule = v.Cause.Disposition, v.Cause.Rule
	}
	if v.Streak != nil {
		why.Failures = v.Streak.Count
	}
	if v.Gate != nil {
		why.Gate = &gate{v.Gate.Kind, timeOrNil(v.Gate.Since)}
	}
	for _, c := range v.Clearings() {
		why.ClearsOn = append(why.ClearsOn, ownClearing{c.What, timeOrNil(c.At)})
	}
	return why, nil
}
