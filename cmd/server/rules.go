package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/api"
	"mcpledger/projections"
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
				return p.withRules(cmd, func(c *client) error {
					return printListOf(p, cmd, c, "/api/rules/sets", url.Values{}, 0, p.printRuleSets)
				})
			},
		},
		&cobra.Command{
			Use:   "show [SET]",
			Short: "Print the active rule set, or another one by name, as YAML",
			Args: func(cmd *cobra.Command, args []string) error {
				if len(args) > 1 {
					return usagef("%s takes the name of one set, or none for the active one", cmd.CommandPath())
				}
				return nil
			},
			RunE: func(cmd *cobra.Command, args []string) error {
				switch {
				case len(args) == 0:
					return p.showRules(cmd, "")
				case !p.json && slices.Contains(rules.BuiltinNames(), args[0]):
					return p.showBuiltinRules(args[0])
				}
				return p.showRules(cmd, args[0])
			},
		},
	)
	cmd.AddCommand(p.rulesActivateCommand(), p.rulesShadowCommand())
	cmd.AddCommand(alone(p.rulesSchemaCommand(), p.rulesCheckCommand(), p.rulesTestCommand())...)
	return cmd
}

func (p *program) rulesSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of rule sets, for editors",
		Long: "Print the JSON Schema of rule sets. Editors that know YAML take it from a line at the top of\n" +
			"a rule set: # yaml-language-server: $schema=FILE",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(p.stdout, rules.Schema)
			return err
		},
	}
}

func (p *program) printRuleSets(sets []api.RuleSetInfo) error {
	t := newTable(p.stdout, "SET", "ACTIVE", "FROM", "HASH")
	for _, s := range sets {
		active, from := "", "the log"
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

// withRules is withClient for a command about rule sets, which needs no log: where there
// is none yet, a service would begin with the default set, and has the built-in ones.
func (p *program) withRules(cmd *cobra.Command, fn func(*client) error) error {
	c, err := p.openClient(cmd.Context())
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(p.stderr, "mcpledger: there is no log in %s; these are the rule sets that a service begins with\n", printable(p.dataDir))
		c, err = p.readerOf(cmd.Context(), emptyLog{}, projections.NewEngine(emptyLog{}, rules.Default(), nil))
	}
	if err != nil {
		return err
	}
	return closing(c, fn)
}

// showRules prints a rule set by name, "" for the active one.
func (p *program) showRules(cmd *cobra.Command, name string) error {
	return p.withRules(cmd, func(c *client) error {
		query := url.Values{}
		if name != "" {
			query.Set("rules", name)
		}
		if p.json {
			var raw json.RawMessage
			if err := c.get(cmd.Context(), "/api/rules", query, &raw); err != nil {
				return err
			}
			return p.printJSON(raw)
		}
		text, err := c.rulesText(cmd.Context(), query)
		if err != nil {
			return err
		}
		_, err = p.stdout.Write(text)
		return err
	})
}

// rulesText returns the text of the rule set that a query is about.
func (c *client) rulesText(ctx context.Context, query url.Values) ([]byte, error) {
	query.Set("format", "yaml")
	res, err := c.open(ctx, http.MethodGet, "/api/rules", query, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, rules.MaxSetBytes))
}

// showBuiltinRules prints a built-in set as this program has it.
func (p *program) showBuiltinRules(name string) error {
	set, err := rules.Builtin(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.stdout, set.Text())
	return err
}
