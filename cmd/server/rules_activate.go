package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections/rules"
)

func (p *program) rulesActivateCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "activate FILE|SET",
		Short: "Put a rule set in force, in the running service",
		Long: "Put the rule set in a file in force, or one that rules list names. Every server is judged by\n" +
			"it from then on, all that happened before included, and those that stand otherwise at once\n" +
			"are told; --dry-run tells them and changes nothing. replay says first what the set would\n" +
			"have done with the past. A service that was started with --rules takes that file again at\n" +
			"its next start.",
		Args: exactArgs("FILE|SET"),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only tell which servers would stand otherwise")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withService(cmd, func(c *client) error {
			set, err := c.rulesNamed(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			query := url.Values{}
			if dryRun {
				query.Set("dry_run", "true")
			}
			const path = "/api/rules"
			var raw json.RawMessage
			if err := c.ask(cmd.Context(), http.MethodPut, path, query, yamlText(set.Text()), &raw); err != nil {
				return err
			}
			return printAnswer(p, path, raw, func(change api.RulesChange) error { return p.printRulesChange(args[0], change) })
		})
	}
	return cmd
}

func (p *program) rulesShadowCommand() *cobra.Command {
	var off bool
	cmd := &cobra.Command{
		Use:   "shadow FILE|SET",
		Short: "Have a rule set judge beside the one in force, and decide nothing",
		Long: "Have the rule set in a file, or one that rules list names, judge beside the one in force, until\n" +
			"it is put in force, --off ends it, or the service ends. The servers that stand otherwise under\n" +
			"it are listed, for now; asking again lists those of then.",
		Args: func(cmd *cobra.Command, args []string) error {
			if off != (len(args) == 0) || len(args) > 1 {
				return usagef("%s wants one rule set, or --off to end what there is: %s", cmd.CommandPath(), cmd.UseLine())
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&off, "off", false, "end the shadow")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		const path = "/api/rules/shadow"
		return p.withService(cmd, func(c *client) error {
			if off {
				if err := c.ask(cmd.Context(), http.MethodDelete, path, nil, nil, nil); err != nil {
					return err
				}
				if p.json {
					return p.printJSON(map[string]any{"shadow": nil})
				}
				_, err := fmt.Fprintln(p.stdout, "No rule set judges beside the one in force.")
				return err
			}
			set, err := c.rulesNamed(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := c.ask(cmd.Context(), http.MethodPut, path, nil, map[string]string{"rules": set.Text()}, &raw); err != nil {
				return err
			}
			return printAnswer(p, path, raw, p.printShadow)
		})
	}
	return cmd
}

// rulesNamed returns the rule set that an argument names: a built-in one, a file, or one
// that was in force in the log.
func (c *client) rulesNamed(ctx context.Context, arg string) (*rules.Set, error) {
	set, err := builtinOrFile(arg)
	if errors.Is(err, fs.ErrNotExist) {
		set, err = c.recordedRules(ctx, arg)
		if refused, ok := errors.AsType[*problem](err); ok && refused.Code == "unknown_rules" {
			return nil, usagef("%q is neither a file nor a rule set, run \"%s rules list%s\" for those there are", arg, self, c.aim)
		}
		return set, err
	}
	if err != nil {
		return nil, usagef("%v", err)
	}
	return set, nil
}

// printRulesChange prints what a set changes; name is what the person called it.
func (p *program) printRulesChange(name string, change api.RulesChange) error {
	for _, w := range change.Warnings {
		p.warnOfRule(name, rulesRemark{w.Line, w.Column, w.Rule, w.Detail})
	}
	standing := "would be in force"
	if change.InForce {
		standing = "is in force"
	}
	fmt.Fprintf(p.stdout, "%s (%.12s) %s\n", oneLine(change.Set), change.Hash, standing)
	otherwise := false
	for _, group := range []struct {
		what    string
		servers []events.ServerName
	}{
		{"skipped", change.WouldSkip},
		{"not skipped any more", change.WouldRequalify},
		{"gated", change.WouldGate},
	} {
		if len(group.servers) > 0 {
			fmt.Fprintf(p.stdout, "  %s: %s\n", group.what, oneLine(strings.Join(texts(group.servers), ", ")))
			otherwise = true
		}
	}
	if !otherwise {
		fmt.Fprintln(p.stdout, "  no server is skipped or gated otherwise")
	}
	return nil
}

func (p *program) printShadow(now api.ActiveRules) error {
	if now.Shadow == nil {
		return errors.New("the service took the rule set and has no shadow")
	}
	fmt.Fprintf(p.stdout, "%s (%.12s) judges beside %s (%.12s)\n",
		oneLine(now.Shadow.Set), now.Shadow.Hash, oneLine(now.Active.Set), now.Active.Hash)
	return p.printDiff(now.ShadowDifferences)
}
