package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"mcpledger/discovery/config"
)

// reloadDebounce is how long files must rest before they are read anew.
const reloadDebounce = 200 * time.Millisecond

// followFiles reads the config anew when a file of it changes, and the rule set when
// its file does; at SIGHUP both. It ends with ctx.
func (s *service) followFiles(ctx context.Context, hangups <-chan os.Signal) {
	configFiles := config.Watch(ctx, s.discovery.Watched(), s.looked, reloadDebounce)
	var ruleFiles []string
	if s.rulesFile != "" {
		ruleFiles = []string{s.rulesFile}
	}
	rulesFile := config.Watch(ctx, ruleFiles, s.looked, reloadDebounce)
	for {
		select {
		case <-ctx.Done():
			<-configFiles.Done()
			<-rulesFile.Done()
			return
		case <-hangups:
			s.reloadRules(ctx)
		case <-rulesFile.Changes():
			s.reloadRules(ctx)
			continue
		case <-configFiles.Changes():
		}
		s.reloadConfig(ctx)
		configFiles.SetPaths(s.discovery.Watched())
	}
}

// reloadConfig reads the config anew and says what came of it. One that cannot be used
// leaves the last one in force.
func (s *service) reloadConfig(ctx context.Context) {
	reloaded, err := s.discovery.Reload(ctx, "")
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.logger.ErrorContext(ctx, "the config is not taken, the last one stays in force", slog.Any("err", err))
	default:
		changed := 0
		for _, change := range reloaded.Changes {
			if change != "" {
				changed++
			}
		}
		s.logger.InfoContext(ctx, "the config is read anew",
			slog.Int("servers", len(reloaded.Changes)), slog.Int("changed", changed), slog.Int("removed", len(reloaded.Removed)))
	}
}

// reloadRules puts the rule set of its file in force, if it is from one and another
// than the one in force. A file that cannot be used changes nothing.
func (s *service) reloadRules(ctx context.Context) {
	if s.rulesFile == "" {
		return
	}
	set, err := namedRules(s.rulesFile)
	if err == nil && set.Hash() != s.engine.Rules().Hash() {
		warnOfRules(ctx, s.logger, set)
		if err = s.engine.Activate(ctx, set, s.recordActivation); err == nil {
			s.logger.InfoContext(ctx, "rules activated", slog.String("rules", set.Name()), slog.String("hash", set.Hash()))
		}
	}
	if err != nil && ctx.Err() == nil {
		s.logger.ErrorContext(ctx, "the rules are not taken, those in force stay", slog.Any("err", err))
	}
}
