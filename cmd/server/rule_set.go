package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

// builtinOrFile returns the rule set that arg names: a built-in one, or a file. The error
// is a *fs.PathError where there is none to be read.
func builtinOrFile(arg string) (*rules.Set, error) {
	if set, err := rules.Builtin(arg); !errors.Is(err, rules.ErrNoSuchSet) {
		return set, err
	}
	text, err := os.ReadFile(arg)
	if err != nil {
		return nil, err
	}
	return rules.Parse(arg, text)
}

// recordedRules returns the rule set of that name that was in force in the log.
func (c *client) recordedRules(ctx context.Context, name string) (*rules.Set, error) {
	text, err := c.rulesText(ctx, url.Values{"rules": {name}})
	if err != nil {
		return nil, err
	}
	return rules.Parse(name, text)
}

// readRules returns the rule set that --rules names: a built-in one, or a file.
func readRules(arg string) (*rules.Set, error) {
	set, err := builtinOrFile(arg)
	if _, unread := errors.AsType[*fs.PathError](err); unread {
		return nil, usagef("--rules: %v; give a file or one of %s", err, strings.Join(rules.BuiltinNames(), ", "))
	}
	if err != nil {
		return nil, usagef("--rules: %v", err)
	}
	return set, nil
}

// rulesToTry returns the rule set that --rules names: a built-in one, a file, or one
// that was in force in the log.
func (p *program) rulesToTry(cmd *cobra.Command, arg string) (*rules.Set, error) {
	set, unread := readRules(arg)
	if _, err := os.Stat(arg); unread == nil || err == nil {
		return set, unread
	}
	err := p.withClient(cmd, func(c *client) (err error) {
		set, err = c.recordedRules(cmd.Context(), arg)
		return err
	})
	if refused, ok := errors.AsType[*problem](err); ok && refused.wrongUsage() {
		return nil, unread
	}
	return set, err
}

// namedRules returns the rule set that --rules names, if it may be put in force.
func namedRules(arg string) (*rules.Set, error) {
	set, err := readRules(arg)
	if err != nil {
		return nil, err
	}
	builtin, err := rules.Builtin(set.Name())
	switch beyond := set.GatesBeyondLaw3(); {
	case err == nil && builtin.Hash() != set.Hash():
		return nil, usagef("--rules: the set in %s is named %q like a built-in one, give it a name of its own", arg, set.Name())
	case len(beyond) > 0:
		return nil, usagef("--rules: %s gates connections on more than 401, 403, scope and missing credentials (rule %s), so it can be replayed but not used", arg, beyond[0].ID)
	}
	return set, nil
}

// activeRules returns the rule set last activated in the log, the default one if
// none was. A built-in set is the one of this program, whatever text was recorded.
func activeRules(ctx context.Context, log events.Log) (*rules.Set, error) {
	activated, err := lastActivated(ctx, log)
	if err != nil || activated.Set == "" {
		return rules.Default(), err
	}
	if slices.Contains(rules.BuiltinNames(), activated.Set) {
		return rules.Builtin(activated.Set)
	}
	return projections.ActivatedSet(ctx, log, activated.Set)
}

// servingRules is activeRules for a service. Where this version does not read the set, it
// does not start.
func servingRules(ctx context.Context, log events.Log) (*rules.Set, error) {
	set, err := activeRules(ctx, log)
	if errors.Is(err, projections.ErrUnreadableRules) {
		return nil, fmt.Errorf("%w; name another one with --rules", err)
	}
	return set, err
}

// readingRules is activeRules for commands that only read. Where this version does not
// read the set, they would be at an end; the default one judges instead, and they say so.
func (p *program) readingRules(ctx context.Context, log events.Log) (*rules.Set, error) {
	set, err := activeRules(ctx, log)
	if errors.Is(err, projections.ErrUnreadableRules) {
		fmt.Fprintf(p.stderr, "mcpledger: %s; the default set judges instead\n", printable(err.Error()))
		return rules.Default(), nil
	}
	return set, err
}

// lastActivated returns the rule set that was put in force last, the zero one if none
// was.
func lastActivated(ctx context.Context, log events.Log) (events.RulesActivated, error) {
	all, err := projections.ActivatedSets(ctx, log, 0)
	if err != nil || len(all) == 0 {
		return events.RulesActivated{}, err
	}
	return all[0], nil
}

// givenRules returns the rule set that --rules names, and its file if it is from one;
// neither if nothing is named.
func givenRules(name string) (set *rules.Set, file string, err error) {
	if name == "" {
		return nil, "", nil
	}
	if set, err = namedRules(name); err != nil {
		return nil, "", err
	}
	if !slices.Contains(rules.BuiltinNames(), name) {
		file = name
	}
	return set, file, nil
}

// warnOfRules logs what is allowed in a rule set and probably no intention.
func warnOfRules(ctx context.Context, logger *slog.Logger, set *rules.Set) {
	for _, w := range set.Check() {
		logger.WarnContext(ctx, "a rule is hardly what was meant",
			slog.String("rule", w.Rule), slog.Int("line", w.Line), slog.String("detail", w.Detail))
	}
}
