package discovery

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mcpledger/discovery/config"
	"mcpledger/events"
)

const (
	idleLimit    = 30 * time.Minute // a session nobody used for so long is closed
	queueLimit   = 5 * time.Second  // how long a call waits for a free place
	callsPerHTTP = 16               // at the same time, per connection
	callsPerProc = 8
)

var (
	// errBusy reports that a server has as many calls as it may have at the same time.
	errBusy = errors.New("too many calls at the same time")
	// errGone reports that a connection is no longer in force: its entry changed, or the
	// service stops.
	errGone = errors.New("the server's entry changed meanwhile, or the service stops")
)

// sessions holds, for each connection in force, the sessions that calls are sent on.
// They are opened on first use.
type sessions struct {
	service *Service

	mu      sync.Mutex
	pools   map[events.ConfigKey]*pool
	inForce map[events.ConfigKey]bool
	// generations numbers the sessions of each connection since the service started,
	// also over an entry that was out of force for a while.
	generations map[events.ConfigKey]*atomic.Int64
	closed      bool
}

// pool is one connection: the places its calls share, and the lines to its server.
type pool struct {
	service    *Service
	key        events.ConfigKey
	places     chan struct{}
	generation *atomic.Int64      // of the session opened last
	lines      map[string]*line   // by client, "" for the shared one; guarded by sessions.mu
	ctx        context.Context    // of openings; ends with the connection
	cancel     context.CancelFunc // of ctx
	tools      definitions
	hold       hold
}

func newSessions(s *Service) *sessions {
	return &sessions{service: s, pools: map[events.ConfigKey]*pool{}, generations: map[events.ConfigKey]*atomic.Int64{}}
}

// line returns the line for a server, and for one client where the entry asks for
// sessions of their own. It returns errGone for an entry that is not in force.
func (s *sessions) line(srv *config.Server, client string) (*line, error) {
	client = ownerOf(srv, client)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.inForce[srv.Key] {
		return nil, errGone
	}
	connection := s.pools[srv.Key]
	if connection == nil {
		connection = s.newPool(srv)
		s.pools[srv.Key] = connection
	}
	l := connection.lines[client]
	if l == nil {
		l = &line{service: s.service, pool: connection, client: client}
		connection.lines[client] = l
	}
	l.use(srv)
	return l, nil
}

// ownerOf returns whose line a client of a server uses; empty for the one that all share.
func ownerOf(srv *config.Server, client string) string {
	if srv.Settings.Session == events.SessionPerClient {
		return client
	}
	return ""
}

func (s *sessions) newPool(srv *config.Server) *pool {
	places := callsPerHTTP
	if srv.Transport == events.TransportStdio {
		places = callsPerProc
	}
	if s.generations[srv.Key] == nil {
		s.generations[srv.Key] = &atomic.Int64{}
	}
	ctx, cancel := context.WithCancel(s.service.ctx)
	return &pool{
		service: s.service, key: srv.Key, generation: s.generations[srv.Key], places: make(chan struct{}, places), lines: map[string]*line{},
		ctx: ctx, cancel: cancel,
	}
}

// open returns the shared session of a connection, held until release is called; nil
// if none is open.
func (s *sessions) open(key events.ConfigKey) (live *liveSession, release func()) {
	l := s.known(key, "")
	if l == nil {
		return nil, nil
	}
	live = l.hold()
	return live, func() { l.release(live) }
}

// openLine returns the line for a server, and for one client where the entry asks for
// sessions of their own, if a session is open on it; else nil.
func (s *sessions) openLine(srv *config.Server, client string) *line {
	if l := s.known(srv.Key, ownerOf(srv, client)); l != nil && l.isOpen() {
		return l
	}
	return nil
}

// known returns the line of a connection for one owner, nil if there is none yet.
func (s *sessions) known(key events.ConfigKey, owner string) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	if connection := s.pools[key]; connection != nil {
		return connection.lines[owner]
	}
	return nil
}

// answered ends the waits after failed openings of a connection: its server answers.
func (s *sessions) answered(key events.ConfigKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if connection := s.pools[key]; connection != nil {
		for _, l := range connection.lines {
			l.retryNow()
		}
	}
}

// keep closes the connections whose config key is not among those in force, and has
// no others opened.
func (s *sessions) keep(inForce map[events.ConfigKey]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.inForce = inForce
	s.end(errConfigChanged.Error(), func(key events.ConfigKey) bool { return !inForce[key] })
}

// forget ends the lines that serve one client alone.
func (s *sessions) forget(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, connection := range s.pools {
		if l := connection.lines[client]; l != nil {
			delete(connection.lines, client)
			l.close("client_gone")
		}
	}
}

// close ends all connections.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.end(errShutdown.Error(), func(events.ConfigKey) bool { return true })
}

// end closes connections, all at the same time; s.mu is held, so that no work is
// added once close has returned.
func (s *sessions) end(reason string, which func(events.ConfigKey) bool) {
	for key, connection := range s.pools {
		if !which(key) {
			continue
		}
		delete(s.pools, key)
		for _, l := range connection.lines {
			l.close(reason)
		}
		connection.cancel()
	}
}

// closeIdle closes the sessions that were not used for a while, and forgets the lines
// of clients that have none.
func (s *sessions) closeIdle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, connection := range s.pools {
		for client, l := range connection.lines {
			if l.closeIdle(now) && client != "" {
				delete(connection.lines, client)
			}
		}
	}
}

// enter waits for a place for one call and returns the way out. It returns errBusy
// after queueLimit, or the cause of ctx's end; waited says that the world may have
// changed meanwhile.
func (p *pool) enter(ctx context.Context) (leave func(), waited bool, err error) {
	leave = func() { <-p.places }
	select {
	case p.places <- struct{}{}:
		return leave, false, nil
	default:
	}
	ctx, cancel := p.service.within(ctx, queueLimit, errBusy)
	defer cancel()
	select {
	case p.places <- struct{}{}:
		return leave, true, nil
	case <-p.ctx.Done():
		return nil, true, errGone
	case <-ctx.Done():
		return nil, true, context.Cause(ctx)
	}
}
