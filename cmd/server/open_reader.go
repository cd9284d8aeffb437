package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/httpapi"
	"mcpledger/httpapi/access"
	"mcpledger/projections"
)

// openReader returns a client that asks the handler in this process, over the log
// opened for reading. The error is fs.ErrNotExist where there is no log.
func (p *program) openReader(ctx context.Context) (c *client, err error) {
	log, err := sqlite.OpenReader(ctx, p.dataDir)
	if err != nil {
		return nil, withNextStep(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, log.Close())
		}
	}()
	set, err := p.readingRules(ctx, log)
	if err != nil {
		return nil, err
	}
	return p.readerOf(ctx, log, projections.NewEngine(log, set, log))
}

// readerOf is openReader for a log that is open, with an engine that has folded nothing
// yet. If there is no error, closing the client closes the log.
func (p *program) readerOf(ctx context.Context, log events.Log, engine *projections.Engine) (*client, error) {
	if err := engine.CatchUp(ctx); err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	keys, err := access.NewKeys(p.dataDir, "", quiet)
	if err != nil {
		return nil, err
	}
	api, err := httpapi.New(httpapi.Config{
		Log: log, Engine: engine, Discovery: nobody{}, Keys: keys, Version: version, Logger: quiet, Now: p.now,
	})
	if err != nil {
		return nil, err
	}
	return &client{
		http: &http.Client{Transport: handlerTransport{api}}, base: "http://127.0.0.1", aim: p.aim, close: log.Close,
	}, nil
}

// nobody is the httpapi.Discovery where no service runs.
type nobody struct{}

func (nobody) Discover(context.Context, []events.ServerName, string, string) (discovery.Begun, error) {
	return discovery.Begun{}, errNeedsService
}

func (nobody) Reload(context.Context, string) (discovery.Reloaded, error) {
	return discovery.Reloaded{}, errNeedsService
}

func (nobody) Pin(context.Context, events.ServerName, time.Time, string, string) error {
	return errNeedsService
}

func (nobody) Clear(context.Context, []events.ServerName, string, string) error {
	return errNeedsService
}

func (nobody) RecordActivation(context.Context, events.RulesActivated, string) error {
	return errNeedsService
}

func (nobody) Call(context.Context, discovery.Call) (discovery.CallOutcome, error) {
	return discovery.CallOutcome{}, errNeedsService
}
