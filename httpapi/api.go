package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"mcpledger/discovery"
	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/httpapi/access"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// Config is what an API is made of. Log, Engine, Discovery, Keys, Logger and Now
// are required.
type Config struct {
	Log       events.Log
	Engine    *projections.Engine
	Discovery Discovery
	Keys      *access.Keys
	// Source is the source of the service's own events. No reporter may go by it.
	Source  string
	Version string // of the program, for the metrics
	// RequireToken takes read and call from callers on this machine that present no
	// token.
	RequireToken bool
	// AllowedHosts are names, without port, that the service goes by besides those of
	// loopback; AllowedOrigins are origins such as "https://ops.example" whose pages
	// may ask besides those of loopback.
	AllowedHosts   []string
	AllowedOrigins []string
	// Ready reports whether every configured server is known, so that questions about
	// servers can be answered. Nil: as soon as the folds have caught up.
	Ready func() bool
	// Redactor returns what masks the secrets known now, for reported texts. Nil masks
	// only what has the shape of a secret.
	Redactor func() *config.Redactor
	Logger   *slog.Logger
	Now      func() time.Time
	// MaxBodyBytes bounds a request's body; 0 for 1 MiB. A call's may have 4 MiB in any
	// case.
	MaxBodyBytes int64
	// Heartbeat is how often an idle stream sends a comment; 0 for 15 s.
	Heartbeat time.Duration
}

// Bounds on what is served at the same time, and on how long one request may take.
const (
	maxRequests    = 256
	maxLong        = 128 // streams and waits
	maxCalls       = 256
	requestTimeout = 30 * time.Second
	defaultBody    = 1 << 20
	maxCallBody    = 4 << 20  // as on the MCP endpoint
	maxUnread      = 64 << 20 // of a body that is refused
	heartbeat      = 15 * time.Second
)

// API answers requests. It is an http.Handler, safe for concurrent use.
type API struct {
	log          events.Log
	engine       *projections.Engine
	discovery    Discovery
	keys         *access.Keys
	sessions     access.Sessions
	source       string
	requireToken bool
	configured   func() bool // see Config.Ready
	redactor     func() *config.Redactor
	logger       *slog.Logger
	now          func() time.Time
	contract     *contract
	door         door
	maxBody      int64
	heartbeat    time.Duration

	echo      *echo.Echo
	metrics   *metrics
	fleet     fleetCache
	tools     toolsCache
	catalogue catalogueCache
	builtin   builtinSets
	replays   replays

	changingRules sync.Mutex // from the look at the active set to the swap

	slots, longSlots chan struct{}
	callSlots        chan struct{}
	refolds          chan struct{}
	draining         context.Context
	drain            context.CancelCauseFunc
}

// New returns an API that is ready to serve.
func New(cfg Config) (*API, error) {
	contract, err := readContract(contractYAML)
	if err != nil {
		return nil, err
	}
	door, err := newDoor(cfg)
	if err != nil {
		return nil, err
	}
	a := &API{
		log: cfg.Log, engine: cfg.Engine, discovery: cfg.Discovery, keys: cfg.Keys, source: cfg.Source, requireToken: cfg.RequireToken,
		configured: cfg.Ready, redactor: cfg.Redactor, logger: cfg.Logger, now: cfg.Now, contract: contract, door: door,
		maxBody: cfg.MaxBodyBytes, heartbeat: cfg.Heartbeat,
		slots: make(chan struct{}, maxRequests), longSlots: make(chan struct{}, maxLong), callSlots: make(chan struct{}, maxCalls),
		refolds: make(chan struct{}, maxRefolds),
	}
	if a.maxBody == 0 {
		a.maxBody = defaultBody
	}
	if a.configured == nil {
		a.configured = func() bool { return true }
	}
	if a.redactor == nil {
		a.redactor = func() *config.Redactor { return nil }
	}
	if a.heartbeat == 0 {
		a.heartbeat = heartbeat
	}
	a.draining, a.drain = context.WithCancelCause(context.Background())
	a.metrics = newMetrics(a, cfg.Version)
	a.echo = a.routes()
	return a, nil
}

func (a *API) routes() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = a.handleError
	e.Binder = strictBinder{}
	e.Use(a.observe, a.recovered, a.door.check)
	guards := map[string][]echo.MiddlewareFunc{}
	for _, op := range a.contract.operations {
		guards[op.ID] = []echo.MiddlewareFunc{a.guard(op)}
	}
	api.RegisterHandlersWithOptions(e, api.NewStrictHandler(a, nil), api.RegisterHandlersOptions{OperationMiddlewares: guards})
	return e
}

// ServeHTTP answers one request. HEAD is answered as GET is, and the http.Server
// leaves out the body.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer readAway(r.Header, r.Body)
	if r.Method == http.MethodHead {
		ctx, sent := context.WithCancel(r.Context())
		defer sent()
		r = r.WithContext(ctx)
		r.Method = http.MethodGet
		w = headerAlone{ResponseWriter: w, sent: sent}
	}
	a.echo.ServeHTTP(w, r)
}

// readAway reads what nobody read of a request's body. Many clients look at the answer
// only when they have sent all, and would never see a refusal if the connection were cut
// under them. One that expects to be told to go on is not told so, and sends nothing.
func readAway(header http.Header, body io.Reader) {
	if header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, body, maxUnread) // what fails is a client that has gone
	}
}

// headerAlone answers a HEAD request. Streams flush, and nobody would read what comes
// after the header, so the first flush ends the request.
type headerAlone struct {
	http.ResponseWriter
	sent context.CancelFunc
}

// FlushError is what http.ResponseController calls.
func (h headerAlone) FlushError() error {
	defer h.sent()
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// Unwrap gives http.ResponseController what else the writer can do.
func (h headerAlone) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Mount serves another handler under a path, such as an MCP endpoint, behind the
// same checks of host, origin, role and query, and nothing else: bodies and times are the
// handler's own affair. The query may have the parameters named, each once and not empty.
// CallerName tells the handler who asks, and StillAllowed whether they still may. An error
// that it returns, before it has answered, is answered as one of an operation, with the
// members of a JSON-RPC error besides.
func (a *API) Mount(path string, role access.Role, params []string, h func(http.ResponseWriter, *http.Request) error) {
	op := operation{Role: role, Params: map[string]schema{}}
	for _, name := range params {
		op.Params[name] = schema{Type: "string", MinLength: 1}
	}
	a.echo.Any(path, func(c echo.Context) error {
		who, err := a.authorize(c.Request(), op.Role)
		if err == nil {
			who.query, err = op.checkQuery(c.Request().URL.RawQuery)
		}
		if err == nil {
			c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), callerKey{}, who)))
			err = h(c.Response(), c.Request())
		}
		if err == nil {
			return nil
		}
		p := *problemOf(err)
		p.rpc = true
		return &p
	})
}

// CallerName returns the name that a mounted handler's request is made by: the token's,
// "local" for one made on this machine without a token.
func CallerName(r *http.Request) string { return callerOf(r.Context()).actor() }

// StillAllowed reports whether who made a mounted handler's request may still make it. A
// handler that streams asks before it sends more: tokens are revoked, and expire.
func StillAllowed(r *http.Request) bool { return callerOf(r.Context()).still() }

// Server returns an http.Server with bounds on headers and times that serves the
// API. Its Shutdown ends open streams at once.
func (a *API) Server() *http.Server {
	s := &http.Server{
		Handler:           a,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * requestTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(a.logger.Handler(), slog.LevelDebug),
	}
	s.RegisterOnShutdown(func() { a.drain(discovery.ErrStopping) })
	return s
}
