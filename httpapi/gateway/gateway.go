package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/discovery"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/httpapi/patient"
	"mcpledger/projections"
)

// Discovery carries what clients ask to the servers. *discovery.Service is one.
type Discovery interface {
	Call(ctx context.Context, c discovery.Call) (discovery.CallOutcome, error)
	Ask(ctx context.Context, q discovery.Question) (discovery.Answer, error)
	Retry(ctx context.Context, server events.ServerName) (*discovery.CallFailure, error)
	Forget(client string)
	OnNotice(fn func(server events.ServerName, client string, n upstream.Notice))
}

// Options are what a Gateway is made of. Log, Engine, Discovery, Logger and Now are
// required.
type Options struct {
	Log       events.Log
	Engine    *projections.Engine
	Discovery Discovery
	Version   string // of the program
	// NameLimit bounds the names of tools and prompts, in bytes; 0 for
	// DefaultNameLimit.
	NameLimit int
	// Caller names who sends a request, for the record: a token's name, or "local". Nil
	// names nobody.
	Caller func(*http.Request) string
	// Allowed reports whether who opened a stream may still hear what is sent on it. Nil
	// takes that for granted.
	Allowed func(*http.Request) bool
	Logger  *slog.Logger
	Now     func() time.Time
	// MaxBodyBytes bounds one message from a client; 0 for 4 MiB.
	MaxBodyBytes int64
	// IdleTimeout is how long a client's session lasts unused; 0 for 30 minutes.
	IdleTimeout time.Duration
	// ChangeInterval is the least time between two notices that a list has changed; 0
	// for 5 s. FirstListWait is how long a client's first list waits for servers that
	// have no outcome yet, and the introduction of one that is offered alone; 0 for 3 s,
	// negative for not at all.
	ChangeInterval, FirstListWait time.Duration
	// StallTimeout is how long a client may read nothing of what is written to it before
	// its connection is cut; 0 for patient.Limit.
	StallTimeout time.Duration
}

const (
	defaultBody           = 4 << 20
	defaultIdle           = 30 * time.Minute
	defaultChangeInterval = 5 * time.Second
	defaultFirstListWait  = 3 * time.Second
)

// Bounds on what is kept and done at the same time.
const (
	maxClients   = 4096 // sessions
	maxIdleViews = 256  // kept for those who come back
	maxRequests  = 512
	maxStreams   = 512
)

// Gateway answers MCP clients. It is safe for concurrent use.
type Gateway struct {
	log       events.Log
	engine    *projections.Engine
	discovery Discovery
	version   string
	namer     Namer
	caller    func(*http.Request) string
	allowed   func(*http.Request) bool
	logger    *slog.Logger
	now       func() time.Time
	maxBody   int64
	interval  time.Duration
	firstWait time.Duration
	stall     time.Duration

	clients   *clients
	fleet     *fleet
	fragments fragments
	lists     *lists
	oddItems  complaints // items of lists that are not offered
	// subscriptions are to resources.
	subscriptions *subscriptions
	calls         calls
	levels        levels

	requests, streams chan struct{}
	started           chan struct{}   // closed when Run begins
	life              context.Context // ends with Run
	end               context.CancelFunc

	mu    sync.Mutex
	views map[string]*view
}

// New returns a Gateway. Run keeps its clients informed.
func New(o Options) (*Gateway, error) {
	limit := cmp.Or(o.NameLimit, DefaultNameLimit)
	if limit < MinNameLimit || limit > MaxNameLimit {
		return nil, fmt.Errorf("name limit %d: %d to %d are possible", limit, MinNameLimit, MaxNameLimit)
	}
	if o.Caller == nil {
		o.Caller = func(*http.Request) string { return "" }
	}
	if o.Allowed == nil {
		o.Allowed = func(*http.Request) bool { return true }
	}
	g := &Gateway{
		log: o.Log, engine: o.Engine, discovery: o.Discovery, version: o.Version, namer: Namer{Limit: limit},
		caller: o.Caller, allowed: o.Allowed, logger: o.Logger, now: o.Now,
		maxBody:   cmp.Or(o.MaxBodyBytes, defaultBody),
		interval:  cmp.Or(o.ChangeInterval, defaultChangeInterval),
		firstWait: cmp.Or(o.FirstListWait, defaultFirstListWait),
		stall:     cmp.Or(o.StallTimeout, patient.Limit),
		requests:  make(chan struct{}, maxRequests), streams: make(chan struct{}, maxStreams),
		levels: levels{most: maxClients}, views: map[string]*view{}, started: make(chan struct{}),
	}
	g.life, g.end = context.WithCancel(context.Background())
	g.clients = newClients(cmp.Or(o.IdleTimeout, defaultIdle), o.Now)
	g.fleet = newFleet(g)
	g.lists = newLists(g)
	g.subscriptions = newSubscriptions(g)
	o.Log.OnCommit(g.fleet.committed)
	o.Discovery.OnNotice(g.noticed)
	return g, nil
}

// Run tells clients of changed lists and ends sessions that lie idle, until ctx
// ends. Then it ends all sessions and streams, so that no client holds up a stop. It
// is called once, when the config has been read.
func (g *Gateway) Run(ctx context.Context) {
	defer g.close()
	close(g.started)
	g.watch(ctx)
}

func (g *Gateway) close() {
	g.end()
	for _, c := range g.clients.all() {
		g.drop(c)
	}
}

// drop ends a client's session and forgets what was kept for it.
func (g *Gateway) drop(c *client) {
	if !g.clients.remove(c.id) {
		return
	}
	c.end()
	g.subscriptions.end(c.updates)
	g.levels.leave(c.id)
	c.view.forget(c.id)
	g.discovery.Forget(c.id)
}

// state calls fn with the present state; see projections.Engine.View.
func (g *Gateway) state(fn func(*projections.State)) error { return g.engine.View(fn) }

// noticed passes a server's notice on. It is called where messages are read, and so
// only leaves word.
func (g *Gateway) noticed(server events.ServerName, client string, n upstream.Notice) {
	switch n.Method {
	case methodLog:
		g.calls.tell(server, client, logMessage(n.Params))
	case mcp.MethodNotificationResourceUpdated:
		g.subscriptions.updated(server, client, n.Params)
	default:
		g.lists.forget(server)
		g.fleet.wake()
	}
}

// errStopping ends what is open when the service stops.
var errStopping = errors.New("the service is stopping")
