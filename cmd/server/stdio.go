package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/httpapi/access"
	"mcpledger/httpapi/gateway"
)

// stdioOptions are the flags of stdio.
type stdioOptions struct {
	serveOptions
	server  string   // offer this one alone, under its own names
	servers []string // offer these; empty: all
}

// stdioCommand returns the MCP server for clients that start their servers.
func (p *program) stdioCommand() *cobra.Command {
	var o stdioOptions
	cmd := &cobra.Command{
		Use:   "stdio",
		Short: "Be an MCP server on stdin and stdout, for clients that start their servers",
		Long: "Speak MCP on stdin and stdout. If a service holds the data folder, its tools are offered;\n" +
			"if none does, this process becomes it until the client ends, and takes the same flags as\n" +
			"serve. Any number of clients may do so with the same folder: when the one that is the\n" +
			"service ends, another takes its place.",
		Args: noArgs,
	}
	// Nobody asked for an address, so none can be taken; service.json tells the free one.
	o.addTo(cmd.Flags(), "127.0.0.1:0")
	cmd.Flags().StringVar(&o.server, "server", "", "offer one `server` alone, under its own names")
	cmd.Flags().StringSliceVar(&o.servers, "servers", nil, "offer these `servers` alone, separated by commas")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.server != "" && len(o.servers) > 0 {
			return usagef("%s takes --server for one server alone or --servers for several, not both", cmd.CommandPath())
		}
		return p.stdio(cmd.Context(), o)
	}
	return cmd
}

// stdio carries the client's messages until it ends, or a signal does.
func (p *program) stdio(ctx context.Context, o stdioOptions) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger, err := p.newLogger(o.logFormat)
	if err != nil {
		return err
	}
	h := &host{program: p, options: o, logger: logger, ctx: ctx}
	defer h.close()
	err = gateway.Relay{Open: h.open, Logger: logger}.Run(ctx, p.stdin, p.stdout)
	if refusal, ok := errors.AsType[*gateway.Refusal](err); ok {
		return &problem{Status: refusal.Status, Code: refusal.Code, Detail: refusal.Detail, aim: p.aim}
	}
	return err
}

// host finds the service that holds the data folder, or is it.
type host struct {
	program *program
	options stdioOptions
	logger  *slog.Logger
	ctx     context.Context // of the service, if it is this process
	own     *ownService     // nil: another process is the service
}

// ownService is the service in this process.
type ownService struct {
	stop context.CancelFunc
	done chan struct{} // closed when it has ended
	err  error         // why; set before done is closed
}

// startupPoll is how often a service that starts is looked for.
const startupPoll = 20 * time.Millisecond

// open returns the endpoint of the service, started here if nobody else is it.
func (h *host) open(ctx context.Context) (gateway.Endpoint, error) {
	for {
		endpoint, err := h.attach(ctx)
		if !errors.Is(err, errNoService) {
			return endpoint, err
		}
		switch ended := h.ended(); {
		case h.own == nil || errors.Is(ended, events.ErrInUse):
			// Somebody else may be the service in a moment; then this one ends as in use.
			if err := h.start(); err != nil {
				return gateway.Endpoint{}, err
			}
		case ended != nil:
			return gateway.Endpoint{}, ended
		}
		select {
		case <-time.After(startupPoll):
		case <-ctx.Done():
			return gateway.Endpoint{}, fmt.Errorf("wait for the service: %w", context.Cause(ctx))
		}
	}
}

// errNoService reports that no service answers for the data folder.
var errNoService = errors.New("no service holds the data folder")

// attach returns the endpoint of the service that answers.
func (h *host) attach(ctx context.Context) (gateway.Endpoint, error) {
	p := h.program
	base := p.url
	if base == "" {
		file, running, err := readServiceFile(p.dataDir)
		if err != nil {
			return gateway.Endpoint{}, err
		}
		if !running {
			return gateway.Endpoint{}, errNoService
		}
		base = file.Address
	}
	base, err := baseURL(base)
	if err != nil {
		return gateway.Endpoint{}, err
	}
	token, err := p.givenToken()
	if err != nil {
		return gateway.Endpoint{}, err
	}
	switch err := newNetworkClient(base, token).get(ctx, "/healthz", nil, nil); {
	case errors.Is(err, syscall.ECONNREFUSED) && p.url == "":
		return gateway.Endpoint{}, errNoService
	case err != nil:
		return gateway.Endpoint{}, err
	}
	if token == "" {
		token = h.neededToken(ctx, base)
	}
	return gateway.Endpoint{URL: base + h.options.path(), Token: token}, nil
}

// neededToken returns the operator's token where the service wants one from callers
// on this machine too, empty elsewhere: without one the record tells clients apart
// from the operator.
func (h *host) neededToken(ctx context.Context, base string) string {
	err := newNetworkClient(base, "").get(ctx, "/api/config", nil, nil)
	if refused, ok := errors.AsType[*problem](err); !ok || refused.Status != http.StatusUnauthorized {
		return ""
	}
	token, err := access.ReadOperatorToken(h.program.dataDir)
	if err != nil {
		return ""
	}
	return token
}

// path is where the service offers what was asked for.
func (o stdioOptions) path() string {
	switch {
	case o.server != "":
		return "/mcp/" + url.PathEscape(o.server)
	case len(o.servers) > 0:
		return "/mcp?servers=" + url.QueryEscape(strings.Join(o.servers, ","))
	}
	return "/mcp"
}

// start makes this process the service. What serve prints goes to stderr, for stdout
// is the client's.
func (h *host) start() error {
	o := h.options.serveOptions
	if len(o.configFiles) == 0 {
		file, err := userConfigFile()
		if err != nil {
			return err
		}
		if file == "" {
			return usagef("no service holds %s, and there is no config to become it: give one with --config FILE", h.program.dataDir)
		}
		o.configFiles = []string{file}
	}
	if err := h.program.checkListen(h.ctx, o.listen); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(h.ctx)
	own := &ownService{stop: func() { stop(errClientEnded) }, done: make(chan struct{})}
	hosted := *h.program
	hosted.stdout = h.program.stderr
	go func() {
		defer close(own.done)
		own.err = hosted.runService(ctx, o, h.logger, nil)
	}()
	h.own = own
	return nil
}

// errClientEnded is why a service that is part of stdio stops.
var errClientEnded = errors.New("the client on stdio ended")

// ended returns why the service in this process has ended, nil while it has not.
func (h *host) ended() error {
	if h.own == nil {
		return nil
	}
	select {
	case <-h.own.done:
		if h.own.err == nil {
			return errors.New("the service has stopped")
		}
		return h.own.err
	default:
		return nil
	}
}

// close ends the service, if it is this process.
func (h *host) close() {
	if h.own != nil {
		h.own.stop()
		<-h.own.done
	}
}
