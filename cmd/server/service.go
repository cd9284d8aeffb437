package main

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"mcpledger/discovery"
	"mcpledger/discovery/config"
	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/httpapi"
	"mcpledger/httpapi/access"
	"mcpledger/httpapi/gateway"
	"mcpledger/projections"
)

const (
	// drainTime bounds how long open requests may take to end at a stop.
	drainTime = 3 * time.Second
	// snapshotTime bounds the snapshot that a stop leaves behind.
	snapshotTime = 3 * time.Second
)

// service is the running whole.
type service struct {
	log       *sqlite.Log
	engine    *projections.Engine
	discovery *discovery.Service
	gateway   *gateway.Gateway
	logger    *slog.Logger
	source    string      // names this instance in its events
	rulesFile string      // from which the rule set is; empty: from none
	looked    config.Look // at the files that it rests on, before they were read
}

// runService opens what the service needs, in the order in which a person can do
// something about what is missing, and runs it until ctx ends.
func (p *program) runService(ctx context.Context, o serveOptions, logger *slog.Logger, hangups <-chan os.Signal) (err error) {
	begun := false
	defer func() {
		if !begun && ctx.Err() != nil {
			err = nil // a stop that comes while it starts is no failure of what it cut short
		}
	}()
	load := func(key []byte) (*config.Config, error) {
		return config.Load(config.Options{
			Files: o.configFiles, Key: sqlite.DeriveKey(key, "config key"), LookupEnv: p.lookupEnv,
		})
	}
	// The folder's key comes with its log, and a config that cannot be used is to leave
	// neither behind; so it is read once under any key.
	checked, err := load([]byte("to check the files"))
	if err != nil {
		return &exitError{code: exitUsage, message: err.Error()}
	}
	looked := config.LookAt(append(checked.Watched, o.rules))
	set, rulesFile, err := givenRules(o.rules)
	if err != nil {
		return err
	}
	// A port that is taken leaves nothing behind either. Where there is a log, the
	// service that holds it is likely to hold the port too, and is the better answer.
	listener, listenErr := listen(ctx, o.listen)
	if listenErr == nil {
		defer listener.Close()
	} else if !hasLog(p.dataDir) {
		return listenErr
	}
	log, err := p.openLog(ctx, p.dataDir, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	key, err := sqlite.LoadKey(p.dataDir)
	if err != nil {
		return err
	}
	if log.KeyCreated() {
		logger.WarnContext(ctx, "the log came without its secret.key, so every server is a new connection and is tried once")
	}
	if listenErr != nil {
		return listenErr
	}
	if set == nil {
		if set, err = servingRules(ctx, log); err != nil {
			return err
		}
	}
	s := &service{log: log, logger: logger, source: instanceName(key), rulesFile: rulesFile, looked: looked, engine: projections.NewEngine(log, set, log)}
	if rulesFile != "" {
		warnOfRules(ctx, s.logger, set)
	}
	api, operator, err := p.assemble(s, o, key, func() (*config.Config, error) { return load(key) })
	if err != nil {
		return err
	}
	address := reachableURL(listener.Addr().(*net.TCPAddr))
	if err := writeServiceFile(p.dataDir, serviceFile{Address: address, PID: os.Getpid()}); err != nil {
		return err
	}
	defer func() { _ = os.Remove(serviceFilePath(p.dataDir)) }()
	fmt.Fprintf(p.stdout, "mcpledger listens on %s; dashboard: %s/#token=%s\n", address, address, operator)
	begun = true
	return s.run(ctx, api.Server(), listener, hangups)
}

// assemble makes what discovers, what answers over HTTP and what speaks MCP, on the log
// and the folds of s. It returns the operator's token, too.
func (p *program) assemble(s *service, o serveOptions, key []byte, load func() (*config.Config, error)) (api *httpapi.API, operator string, err error) {
	s.discovery = discovery.New(discovery.Options{
		Log: s.log, Engine: s.engine, Source: s.source, Version: version, Load: load, Logger: s.logger, Now: p.now,
		LookEvery: p.lookEvery, VerifyOnStart: o.verifyOnStart, Mark: folderMark(p.dataDir, s.source), CallKey: sqlite.DeriveKey(key, "call arguments"),
	})
	if operator, err = access.OperatorToken(p.dataDir); err != nil {
		return nil, "", err
	}
	keys, err := access.NewKeys(p.dataDir, operator, s.logger)
	if err != nil {
		return nil, "", err
	}
	api, err = httpapi.New(httpapi.Config{
		Log: s.log, Engine: s.engine, Discovery: s.discovery, Keys: keys, Source: s.source, Version: version,
		Ready: s.discovery.Started, Redactor: s.discovery.Redactor, RequireToken: o.requireToken, AllowedHosts: o.allowedHosts, AllowedOrigins: o.allowedOrigins,
		Logger: s.logger, Now: p.now,
	})
	if err != nil {
		return nil, "", usagef("%v", err)
	}
	s.gateway, err = gateway.New(gateway.Options{
		Log: s.log, Engine: s.engine, Discovery: s.discovery, Version: version, NameLimit: o.nameLimit,
		Caller: httpapi.CallerName, Allowed: httpapi.StillAllowed, Logger: s.logger, Now: p.now,
	})
	if err != nil {
		return nil, "", usagef("%v", err)
	}
	api.Mount("/mcp", access.Call, []string{"servers"}, s.gateway.Serve)
	api.Mount("/mcp/:server", access.Call, nil, s.gateway.Serve)
	return api, operator, nil
}

// run answers over HTTP, at once, and meanwhile catches up with the log and then
// attempts what is due. It returns when ctx has ended and all is stopped.
func (s *service) run(ctx context.Context, server *http.Server, listener net.Listener, hangups <-chan os.Signal) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var answering sync.WaitGroup
	var broken error
	answering.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			broken = fmt.Errorf("answer over HTTP: %w", err)
			cancel(broken)
		}
	})
	err := s.discover(ctx, hangups)

	drain, drained := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer drained()
	if server.Shutdown(drain) != nil {
		_ = server.Close()
	}
	answering.Wait()
	save, saved := context.WithTimeout(context.WithoutCancel(ctx), snapshotTime)
	defer saved()
	if saveErr := s.engine.SaveSnapshot(save, true); saveErr != nil {
		s.logger.WarnContext(ctx, "snapshot not saved", slog.Any("err", saveErr))
	}
	return errors.Join(err, broken)
}

// discover catches up with the log, takes hold of it, and attempts what is due until
// ctx ends, which is no error.
func (s *service) discover(ctx context.Context, hangups <-chan os.Signal) error {
	err := s.engine.CatchUp(ctx)
	if err == nil {
		err = s.activate(ctx)
	}
	if err == nil {
		err = s.discovery.Start(ctx, os.Getpid())
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	var following sync.WaitGroup
	following.Go(func() { s.followFiles(ctx, hangups) })
	following.Go(func() { s.gateway.Run(ctx) })
	following.Go(func() { keepSmall(ctx) })
	err = s.discovery.Run(ctx)
	following.Wait()
	return err
}

// activate records the rule set in force, unless the log has it as the last one.
func (s *service) activate(ctx context.Context) error {
	set := s.engine.Rules()
	active, err := lastActivated(ctx, s.log)
	if err != nil || active.Hash == set.Hash() {
		return err
	}
	return s.recordActivation(ctx, events.RulesActivated{Set: set.Name(), Hash: set.Hash(), Text: set.Text()})
}

func (s *service) recordActivation(ctx context.Context, d events.RulesActivated) error {
	return s.discovery.RecordActivation(ctx, d, "")
}

// folderMark names the data folder on this machine and no copy of it, though a copy has
// the same instance name. It is empty, and nothing is marked, if the folder cannot be
// told apart.
func folderMark(dir, source string) string {
	info, err := os.Stat(filepath.Join(dir, sqlite.LockFile))
	if err != nil {
		return ""
	}
	file, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s-%x-%x", source, file.Dev, file.Ino)
}

// instanceName names the service in its events. It follows from the key of the data
// folder, so the log knows its own servers after a restart, and a log that is
// restored without the key begins anew.
func instanceName(key []byte) string {
	name := base32.StdEncoding.EncodeToString(sqlite.DeriveKey(key, "instance")[:5])
	return "mcpledger-" + strings.ToLower(name)
}
