package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/api"
	"mcpledger/projections"
	"mcpledger/projections/rules"
)

func (p *program) pinCommand() *cobra.Command {
	var reason string
	var until time.Time
	var last time.Duration
	cmd := &cobra.Command{
		Use:   "pin NAME",
		Short: "Set a server aside: it is not attempted and its tools are not offered",
		Long: "Set a server aside: it is not attempted, and its tools are not offered, until the time given\n" +
			"or until somebody takes it back with unpin. A server that is set aside already is so anew,\n" +
			"with this reason and time.",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: p.completeServers(1),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a `sentence` to record and show")
	cmd.Flags().Var(durationOf(&last, 1, "give a time from now that is longer than 0, such as 2h"), "for", "the `time` from now after which it is taken back, such as 2h; default: until unpin")
	cmd.Flags().Var(comingTimeOf(&until, p.now), "until", "the `time` at which it is taken back, such as 2026-12-05T00:00:00Z")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if last > 0 && !until.IsZero() {
			return usagef("--for and --until both say when it is taken back, give one of them")
		}
		if last > 0 {
			until = p.now().Add(last)
		}
		return p.changeSkip(cmd, args[0], skipChange{method: http.MethodPut, body: api.Pin{Reason: reason, Until: timeParameter(until)}})
	}
	return cmd
}

func (p *program) unpinCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "unpin NAME",
		Short: "Take back a server that was set aside",
		Long: "Take back a server that was set aside. What failed before that is not counted any more. A\n" +
			"skip that was not made by pin stays; clear ends it.",
		Args:              exactArgs("NAME"),
		ValidArgsFunction: p.completeServers(1),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a `sentence` to record")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		needless := func(s api.Server) string {
			if s.Skip == nil || s.Skip.Reason != projections.SkipPinned {
				return "is not set aside"
			}
			return ""
		}
		return p.changeSkip(cmd, args[0], skipChange{method: http.MethodDelete, query: reasonQuery(reason), needless: needless})
	}
	return cmd
}

func (p *program) clearCommand() *cobra.Command {
	var reason, class, signature string
	var all bool
	cmd := &cobra.Command{
		Use:   "clear [NAME]",
		Short: "End a server's skip, or many, and count from zero",
		Long: "End the skip or pin of a server, without an attempt now: it is due as after a first failure,\n" +
			"and counting starts at zero. --class and --signature end all skips of that kind and\n" +
			"leave pins, --all ends all of both.",
		Args:              oneServerOrAll,
		ValidArgsFunction: p.completeServers(1),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a `sentence` to record")
	cmd.Flags().Var(choice(&class, rules.Classes...), "class", "end all skips whose cause is of this `class`")
	cmd.Flags().StringVar(&signature, "signature", "", "end all skips whose cause has this `signature`")
	cmd.Flags().BoolVar(&all, "all", false, "end all skips and pins")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		many := all || class != "" || signature != ""
		switch {
		case len(args) == 0 && !many:
			return usagef("%s wants a server's name, or --class, --signature or --all", cmd.CommandPath())
		case len(args) == 1 && many, all && (class != "" || signature != ""):
			return usagef("%s takes a server's name, or --class and --signature, or --all, and not several of them", cmd.CommandPath())
		}
		query := reasonQuery(reason)
		if many {
			set(query, "class", class)
			set(query, "signature", signature)
			return p.clearMany(cmd, query)
		}
		needless := func(s api.Server) string {
			if s.Skip == nil && s.Streak == nil {
				return "has nothing to clear"
			}
			return ""
		}
		return p.changeSkip(cmd, args[0], skipChange{method: http.MethodDelete, query: query, needless: needless})
	}
	return cmd
}

func reasonQuery(reason string) url.Values {
	query := url.Values{}
	set(query, "reason", reason)
	return query
}

// skipChange is a request that changes a server's skip.
type skipChange struct {
	method string
	query  url.Values
	body   any
	// needless says of a server that there is nothing to change, "" where there is; nil
	// where there always is.
	needless func(api.Server) string
}

// changeSkip changes a server's skip, unless it is needless, and prints how the server
// stands then.
func (p *program) changeSkip(cmd *cobra.Command, name string, change skipChange) error {
	return p.withService(cmd, func(c *client) error {
		path := "/api/servers/" + url.PathEscape(name)
		var server json.RawMessage
		if change.needless != nil {
			if err := c.get(cmd.Context(), path, nil, &server); err != nil {
				return err
			}
			var before api.Server
			if err := json.Unmarshal(server, &before); err != nil {
				return unreadable(path, err)
			}
			if what := change.needless(before); what != "" {
				return p.printStanding(path, server, what+"; it is")
			}
		}
		if err := c.ask(cmd.Context(), change.method, path+"/skip", change.query, change.body, &server); err != nil {
			return err
		}
		return p.printStanding(path, server, "is now")
	})
}

// printStanding prints how a server stands, after words that lead up to its state.
func (p *program) printStanding(path string, server json.RawMessage, words string) error {
	return printAnswer(p, path, server, func(s api.Server) error {
		_, err := fmt.Fprintf(p.stdout, "%s %s %s: %s\n", oneLine(string(s.Name)), words, s.State, oneLine(s.StateReason))
		return err
	})
}

// clearMany ends all skips that fit the query and prints whose they were.
func (p *program) clearMany(cmd *cobra.Command, query url.Values) error {
	const path = "/api/skips"
	return p.withService(cmd, func(c *client) error {
		var raw json.RawMessage
		if err := c.ask(cmd.Context(), http.MethodDelete, path, query, nil, &raw); err != nil {
			return err
		}
		return printAnswer(p, path, raw, func(a api.Cleared) error {
			if len(a.Cleared) == 0 {
				_, err := fmt.Fprintln(p.stdout, "No skip fits.")
				return err
			}
			_, err := fmt.Fprintf(p.stdout, "Ended %s: %s\n", count(len(a.Cleared), "skip"), oneLine(strings.Join(texts(a.Cleared), ", ")))
			return err
		})
	})
}
