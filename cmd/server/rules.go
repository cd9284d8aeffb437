package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/api"
	"mcpledger/projections/rules"
)

func (p *program) rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Show the rule sets that say what a failure means",
		RunE:  wantsSubcommand,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List the rule sets",
			Args:  noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return printList(p, cmd, "/api/rules/sets", url.Values{}, 0, p.printRuleSets)
			},
		},
		&cobra.Command{
			Use:   "show [SET]",
			Short: "Print the active rule set, or a built-in one by name, as YAML",
			Args: func(cmd *cobra.Command, args []string) error {
				if len(args) > 1 {
					return usagef("%s takes the name of one set, or none for the active one", cmd.CommandPath())
				}
				return nil
			},
			RunE: func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return p.showActiveRules(cmd)
				}
				return p.showBuiltinRules(args[0])
			},
		},
	)
	return cmd
}

func (p *program) printRuleSets(sets []api.RuleSetInfo) error {
	t := newTable(p.stdout, "SET", "ACTIVE", "FROM", "HASH")
	for _, s := range sets {
		active, from := "", "a file"
		if s.Active {
			active = "yes"
		}
		if s.Builtin {
			from = "built in"
		}
		t.row(s.Set, dash(active), from, s.Hash[:min(12, len(s.Hash))])
	}
	return t.flush()
}

func (p *program) showActiveRules(cmd *cobra.Command) error {
	return p.withClient(cmd, func(c *client) error {
		if p.json {
			var raw json.RawMessage
			if err := c.get(cmd.Context(), "/api/rules", nil, &raw); err != nil {
				return err
			}
			return p.printJSON(raw)
		}
		res, err := c.open(cmd.Context(), http.MethodGet, "/api/rules", url.Values{"format": {"yaml"}}, nil)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(p.stdout, res.Body)
		return err
	})
}

func (p *program) showBuiltinRules(name string) error {
	builtins := rules.BuiltinNames()
	switch {
	case !slices.Contains(builtins, name):
		return usagef("there is no built-in set %q, there are %s", name, strings.Join(builtins, ", "))
	case p.json:
		return usagef("a built-in set is printed as YAML, leave out --json")
	}
	set, err := rules.Builtin(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.stdout, set.Text())
	return err
}
