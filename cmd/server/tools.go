package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/api"
)

func (p *program) toolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools [NAME]",
		Short: "List the tools that servers offer, or one server, with their arguments",
		Long: "List the tools that servers offer, or that one server offers, with the names of their\n" +
			"arguments: [in brackets] those that may be left out. --json prints the schemas, too.",
		Args:              oneServerOrAll,
		ValidArgsFunction: p.completeServers(1),
	}
	query := p.moment(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withClient(cmd, func(c *client) error {
			const path = "/api/tools"
			q := query()
			past := q.Get("at")
			var raw []json.RawMessage
			if err := c.get(cmd.Context(), path, q, &raw); err != nil {
				return err
			}
			servers := make([]api.ServerTools, len(raw))
			for i := range raw {
				if err := json.Unmarshal(raw[i], &servers[i]); err != nil {
					return unreadable(path, err)
				}
			}
			if len(args) == 1 {
				i := slices.IndexFunc(servers, func(s api.ServerTools) bool { return string(s.Name) == args[0] })
				if i < 0 {
					detail := fmt.Sprintf("no server named %q is configured", args[0])
					if past != "" {
						detail = fmt.Sprintf("no server named %q was configured then", args[0])
					}
					return &problem{Code: "server_not_found", Detail: detail, aim: p.aim, at: past}
				}
				raw, servers = raw[i:i+1], servers[i:i+1]
			}
			if p.json {
				return p.printJSON(raw)
			}
			return p.printTools(servers, past != "")
		})
	}
	return cmd
}

// printTools prints a line for each tool. Where there is none at all it says how the
// one server stands, or that there is none. A past moment is told as past.
func (p *program) printTools(servers []api.ServerTools, past bool) error {
	t := newTable(p.stdout, "SERVER", "TOOL", "ARGUMENTS", "DESCRIPTION")
	none := true
	for _, s := range servers {
		for _, tool := range s.Tools {
			t.row(string(s.Name), tool.Name, dash(argumentsInWords(tool)), brief(tool.Description))
			none = false
		}
	}
	switch {
	case !none:
		return t.flush()
	case len(servers) == 1:
		s, is, offers := servers[0], "is", "offers"
		if past {
			is, offers = "was", "offered"
		}
		fmt.Fprintf(p.stdout, "%s %s %s and %s no tools: %s\n", oneLine(string(s.Name)), is, s.State, offers, oneLine(s.StateReason))
	default:
		fmt.Fprintln(p.stdout, "No tools.")
	}
	return nil
}

// argumentsInWords names the arguments of a tool, those that must be given first:
// "city, [days]". A schema is what a server sent: one that cannot be read names none.
func argumentsInWords(tool api.Tool) string {
	var parameters map[string]json.RawMessage
	var required []string
	if json.Unmarshal(tool.Parameters, &parameters) != nil || json.Unmarshal(tool.Required, &required) != nil {
		return ""
	}
	words := slices.Clone(required)
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if !slices.Contains(required, name) {
			words = append(words, "["+name+"]")
		}
	}
	return strings.Join(words, ", ")
}
