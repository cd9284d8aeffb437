package discovery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"mcpledger/discovery/clock"
	"mcpledger/discovery/config"
	"mcpledger/discovery/upstream"
	"mcpledger/events"
	"mcpledger/projections"
)

// Errors of the Service, for errors.Is.
var (
	ErrUnknownServer = errors.New("no such server")
	ErrDisabled      = errors.New("server is disabled")
	ErrBlocked       = errors.New("server's entry cannot be attempted")
	ErrStopping      = errors.New("service is stopping")
)

// Options configure a Service. Log, Engine, Source, Load and Logger are required.
type Options struct {
	Log    events.Log
	Engine *projections.Engine
	// Source names this instance in its events.
	Source  string
	Version string // of the program
	// CallKey keys the hashes by which equal arguments of calls are told.
	CallKey []byte
	// Load reads the config as it is now. Its error keeps the last good one in force.
	Load   func() (*config.Config, error)
	Logger *slog.Logger
	Now    func() time.Time // nil: the wall clock
	// At is what the schedule and the limits of attempts and calls wait by; nil: Now
	// runs as the wall clock does.
	At clock.At
	// Parallel bounds attempts at the same time, but for those that last longer than
	// GiveWay, of which there may be three times as many beside; 0 means max(4, 2 x cores),
	// and 5 s.
	Parallel int
	GiveWay  time.Duration
	// VerifyOnStart contacts servers whose catalogue is known, too.
	VerifyOnStart bool
	// RetryWait is the wait before the second attempt of a run, doubled for the next; 0
	// means half a second.
	RetryWait time.Duration
	// LookEvery bounds how long the schedule sleeps before it looks at Now again, since
	// a clock may be set, or run faster than timers do; 0 means a minute.
	LookEvery time.Duration
	// Mark is this instance's alone, and stands in the environment of its servers'
	// processes, so that a start after a crash ends what is left of them. Empty: they
	// are not marked, and none is ended.
	Mark string
}

// Service keeps the log up to date with what servers do. One Service owns a log.
type Service struct {
	recorder
	at       clock.At
	engine   *projections.Engine
	logger   *slog.Logger
	load     func() (*config.Config, error)
	version  string
	verify   bool
	backoff  time.Duration
	turns    *turns
	launches *pacer
	voice    *announcer

	mark      string
	lookEvery time.Duration

	sessions *sessions
	callKey  []byte
	notice   func(server events.ServerName, client string, n upstream.Notice) // see OnNotice; may be nil

	started atomic.Bool
	kick    chan struct{} // something may have become due

	reloading sync.Mutex // one Reload at a time

	mu       sync.Mutex
	config   *config.Config
	redactor *config.Redactor
	servers  map[events.ServerName]*config.Server
	flights  map[events.ServerName]*flight
	probed   map[events.ServerName]time.Time // last attempt that a call asked for
	answered map[events.ConfigKey]bool       // package runners that answered a handshake since the start
	work     sync.WaitGroup
	stopping bool
	ctx      context.Context // of all work; ends with the service
	cancel   context.CancelCauseFunc
}

// flight is the one run that is under way for a server.
type flight struct {
	runID  string
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// New returns a Service that does nothing yet.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the one place the wall clock enters this package
	}
	if o.At == nil {
		o.At = clock.Running(o.Now)
	}
	o.Parallel = cmp.Or(o.Parallel, max(4, 2*runtime.NumCPU()))
	o.GiveWay = cmp.Or(o.GiveWay, 5*time.Second)
	o.RetryWait = cmp.Or(o.RetryWait, 500*time.Millisecond)
	o.LookEvery = cmp.Or(o.LookEvery, time.Minute)
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &Service{
		recorder: recorder{log: o.Log, source: o.Source, now: o.Now},
		at:       o.At, engine: o.Engine, logger: o.Logger, load: o.Load, version: o.Version, verify: o.VerifyOnStart,
		backoff: o.RetryWait, lookEvery: o.LookEvery,
		turns: newTurns(o.Parallel, o.GiveWay, o.Now, o.At), launches: newPacer(o.Now, o.At),
		voice: newAnnouncer(o.Logger), kick: make(chan struct{}, 1),
		servers: map[events.ServerName]*config.Server{}, flights: map[events.ServerName]*flight{},
		answered: map[events.ConfigKey]bool{}, probed: map[events.ServerName]time.Time{},
		callKey: o.CallKey, mark: o.Mark, ctx: ctx, cancel: cancel,
	}
	s.sessions = newSessions(s)
	return s
}

// Start takes hold of the log: it records the start, closes what the last end left
// unfinished, and takes the config. A config that cannot be used is an error, since
// there is no last good one to keep. The engine must have caught up.
func (s *Service) Start(ctx context.Context, pid int) error {
	s.endLeftovers(ctx)
	if err := s.append(ctx, about{}, events.ServiceStarted{Version: s.version, Instance: s.source, PID: pid}); err != nil {
		return err
	}
	if err := s.closeUnfinished(ctx); err != nil {
		return err
	}
	if _, err := s.Reload(ctx, ""); err != nil {
		return err
	}
	s.started.Store(true)
	return nil
}

// Started reports whether the config is in force, so that every configured server is
// known.
func (s *Service) Started() bool { return s.started.Load() }

// closeUnfinished records an abandonment for every attempt and call without
// outcome.
func (s *Service) closeUnfinished(ctx context.Context) error {
	var open []projections.OpenAttempt
	if err := s.engine.View(func(st *projections.State) { open = st.Unfinished() }); err != nil {
		return err
	}
	var batch []events.Event
	for _, o := range open {
		a := about{server: o.Server, key: o.ConfigKey, runID: o.RunID, attemptID: o.AttemptID, callID: o.CallID}
		if o.CallID != "" {
			batch = append(batch, s.event(a, events.ToolCallAbandoned{Tool: o.Tool}))
			continue
		}
		batch = append(batch, s.event(a, events.DiscoveryAbandoned{}))
	}
	if len(batch) == 0 {
		return nil
	}
	_, err := s.log.Append(ctx, batch)
	return err
}

// Run attempts what is due until ctx ends, then ends all work, and records the stop
// with the cause of ctx as its reason. Start comes first.
func (s *Service) Run(ctx context.Context) error {
	s.schedule(ctx)
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.cancel(errShutdown)
	s.sessions.close()
	s.work.Wait()
	return s.store(s.event(about{}, events.ServiceStopped{Reason: context.Cause(ctx).Error()}))
}

// errShutdown and errConfigChanged are the causes of cancelled attempts; their texts
// are recorded.
var (
	errShutdown      = errors.New("shutdown")
	errConfigChanged = errors.New("config_changed")
)

// wake has the schedule look again.
func (s *Service) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// within returns ctx, ended with cause once d has passed.
func (s *Service) within(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return s.at.Until(ctx, s.now().Add(d), cause)
}

// pause waits for d, or returns the cause of ctx's end.
func (s *Service) pause(ctx context.Context, d time.Duration) error {
	return s.at.Wait(ctx, s.now().Add(d))
}
