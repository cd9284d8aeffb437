package main

import (
	"cmp"
	"context"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mcpledger/httpapi/api"
)

// completionPatience is how long a shell waits for the names of servers.
const completionPatience = 2 * time.Second

// completeWords has a shell complete the words that the flags of root's commands take.
func completeWords(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeWords(cmd)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if v, ours := f.Value.(*value); ours && len(v.words) > 0 {
				words := cobra.FixedCompletions(v.words, cobra.ShellCompDirectiveNoFileComp)
				_ = cmd.RegisterFlagCompletionFunc(f.Name, words) // fails for a flag that is not there
			}
		})
	}
}

// completeServers completes the names of servers, for the first most arguments; 0 for
// all. A command without it leaves its arguments to the shell. Whatever goes wrong on the
// way completes nothing.
func (p *program) completeServers(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if (most > 0 && len(args) >= most) || p.flagsFromEnv(cmd.Flags()) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), cmp.Or(p.completionPatience, completionPatience))
		defer cancel()
		c, err := p.openClient(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		err = closing(c, func(c *client) error {
			_, servers, err := list[api.Server](ctx, c, "/api/servers", url.Values{}, 0)
			for _, s := range servers {
				names = append(names, cobra.CompletionWithDesc(string(s.Name), string(s.State)))
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
