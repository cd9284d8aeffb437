package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/access"
)

func (p *program) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token add|list|revoke",
		Short: "Say who may ask the service what",
		Long: "Say who may ask the service what, in tokens.yaml of the data folder. A running service\n" +
			"takes a change at the next request.",
		RunE: wantsSubcommand,
	}
	cmd.AddCommand(p.tokenAddCommand(), p.tokenListCommand(), p.tokenRevokeCommand())
	return cmd
}

// wantsSubcommand refuses a command that is nothing without one of its subcommands.
func wantsSubcommand(cmd *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return usagef("%s wants one of its commands: %s", cmd.CommandPath(), strings.Join(names, ", "))
}

func (p *program) tokenAddCommand() *cobra.Command {
	var roles []string
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token and print it, this once",
		Args:  exactArgs("NAME"),
	}
	cmd.Flags().StringSliceVar(&roles, "role", []string{string(access.Read)}, "a `role`: read, call, report or operate; may be given several times")
	cmd.Flags().Var(durationOf(&expires, 1, "give a time from now that is longer than 0, such as 720h"), "expires", "the `time` from now after which the token is void, such as 720h; default: never")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var until time.Time
		if expires != 0 {
			until = p.now().Add(expires).UTC().Truncate(time.Second)
		}
		granted := make([]access.Role, len(roles))
		for i, r := range roles {
			granted[i] = access.Role(r)
		}
		token, secret, err := access.NewToken(args[0], granted, until)
		if err != nil {
			return usagef("%v", err)
		}
		if err := os.MkdirAll(p.dataDir, 0o700); err != nil {
			return withNextStep(err)
		}
		err = access.ChangeTokens(p.dataDir, func(tokens []access.Token) ([]access.Token, error) {
			if slices.ContainsFunc(tokens, func(t access.Token) bool { return t.Name == token.Name }) {
				return nil, fmt.Errorf("there is a token %q already; revoke it first, or take another name", token.Name)
			}
			return append(tokens, token), nil
		})
		if err != nil {
			return withNextStep(err)
		}
		if p.json {
			return p.printJSON(addedToken{listed(token), secret})
		}
		fmt.Fprintln(p.stdout, secret)
		fmt.Fprintf(p.stderr, "This is the only time the token is shown; its hash is in %s.\n", filepath.Join(p.dataDir, access.TokensFile))
		return nil
	}
	return cmd
}

func (p *program) tokenListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without their secrets",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			tokens, err := access.ReadTokens(p.dataDir)
			if err != nil {
				return err
			}
			if p.json {
				return p.printJSON(tokensAsJSON(tokens))
			}
			if len(tokens) == 0 {
				fmt.Fprintf(p.stdout, "No tokens in %s.\n", p.dataDir)
				return nil
			}
			t := newTable(p.stdout, "NAME", "ROLES", "EXPIRES")
			for _, token := range tokens {
				expires := "never"
				if !token.Expires.IsZero() {
					expires = stamp(token.Expires)
				}
				t.row(token.Name, joinRoles(token.Roles), expires)
			}
			return t.flush()
		},
	}
}

func (p *program) tokenRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Make a token void",
		Args:  exactArgs("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			err := access.ChangeTokens(p.dataDir, func(tokens []access.Token) ([]access.Token, error) {
				left := slices.DeleteFunc(slices.Clone(tokens), func(t access.Token) bool { return t.Name == args[0] })
				if len(left) == len(tokens) {
					return nil, fmt.Errorf("there is no token %q, run \"%s token list%s\" for those there are", args[0], self, p.aim)
				}
				return left, nil
			})
			if err != nil {
				return withNextStep(err)
			}
			if !p.json {
				return nil
			}
			return p.printJSON(map[string]string{"revoked": args[0]})
		},
	}
}

func joinRoles(roles []access.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

// listedToken is a token as --json shows it.
type listedToken struct {
	Name    string        `json:"name"`
	Roles   []access.Role `json:"roles"`
	Expires *time.Time    `json:"expires"`
}

// addedToken is a new token as --json shows it, this once.
type addedToken struct {
	listedToken
	Token string `json:"token"`
}

func listed(t access.Token) listedToken {
	shown := listedToken{Name: t.Name, Roles: t.Roles}
	if !t.Expires.IsZero() {
		shown.Expires = &t.Expires
	}
	return shown
}

func tokensAsJSON(tokens []access.Token) []listedToken {
	all := make([]listedToken, len(tokens))
	for i, t := range tokens {
		all[i] = listed(t)
	}
	return all
}
