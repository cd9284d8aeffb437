package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mcpledger/discovery/config"
)

// envPrefix begins the variables that stand for flags.
const envPrefix = config.OwnPrefix

// self is the name this program was started by: "server" under go run, "mcpledger" as
// make builds it. Whatever a person is told to type begins with it.
var self = filepath.Base(os.Args[0])

// rootCommand returns the whole command line. Without a subcommand it serves.
func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   self,
		Short: "The flight recorder and health authority for MCP servers",
		Long: "mcpledger reads the mcpServers config you already have, learns each server's tools,\n" +
			"and writes every attempt and outcome to one log that explains who is skipped, and why.\n" +
			"Without a command it serves.",
		SilenceUsage:               true,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		Args: func(root *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(root, args[0])
			}
			return nil
		},
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case slices.Contains(args, "") && cmd.Name() != cobra.ShellCompRequestCmd: // which completes a word not begun
				return usagef("%s was given an empty argument, as a variable that is not set makes one: %s", cmd.CommandPath(), cmd.UseLine())
			case cmd.Flags().Changed("data") && p.dataDir == "":
				return usagef("--data is empty, give the data folder")
			case asksNobody(cmd) && cmd.Flags().Changed("url"):
				return usagef("%s asks no service, so it does not take --url; --data names the folder it works on", cmd.CommandPath())
			}
			p.aim = aimOf(cmd.Flags()) // before variables count as given: they stay set
			return p.flagsFromEnv(cmd.Flags())
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.dataDir, "data", "./data", "the data `folder`, which holds the log")
	flags.StringVar(&p.url, "url", "", "the running service to ask, such as http://127.0.0.1:8132; default: the one that holds the data folder")
	flags.StringVar(&p.tokenFile, "token-file", "", "a `file` with the token to show to the service; MCPLEDGER_TOKEN holds the token itself")
	flags.BoolVar(&p.json, "json", false, "print what the service answered, as JSON")
	alsoFromEnv(flags)

	serve := p.serveCommand()
	root.Flags().AddFlagSet(serve.Flags())
	root.RunE = serve.RunE

	root.AddCommand(
		p.serversCommand(), p.toolsCommand(), p.skipsCommand(), p.whyCommand(), p.historyCommand(), p.eventsCommand(),
		p.discoverCommand(), p.callCommand(), p.preflightCommand(),
		p.pinCommand(), p.unpinCommand(), p.clearCommand(),
		p.diffCommand(), p.replayCommand(), p.stdioCommand(), p.rulesCommand())
	root.AddCommand(alone(serve, p.simulateCommand(),
		p.verifyCommand(), p.exportCommand(), p.importCommand(), p.backupCommand(),
		p.tokenCommand(), p.versionCommand(), p.sampleServerCommand())...)
	completeWords(root)
	refuseUnknown(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if wrong := wrongValue(err); wrong != nil {
			return wrong
		}
		return usagef("%v, run \"%s --help\" for the flags", err, cmd.CommandPath())
	})
	return root
}

// aloneAnnotation is on the commands that ask no service.
const aloneAnnotation = "alone"

// alone marks commands that work on the data folder, or on files, by themselves: the
// answer for another service would be that for another log.
func alone(commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		cmd.Annotations = map[string]string{aloneAnnotation: ""}
	}
	return commands
}

// asksNobody reports whether a command works alone: one that is marked, or that belongs to
// one. The root is serve, and passes nothing on.
func asksNobody(cmd *cobra.Command) bool {
	if !cmd.HasParent() {
		return true
	}
	for ; cmd != nil; cmd = cmd.Parent() {
		if _, marked := cmd.Annotations[aloneAnnotation]; marked {
			return true
		}
	}
	return false
}

// aimOf returns the flags that say which log or service is meant, as they were given.
func aimOf(flags *pflag.FlagSet) string {
	var aim strings.Builder
	for _, name := range []string{"data", "url", "token-file"} {
		if f := flags.Lookup(name); f != nil && f.Changed {
			fmt.Fprintf(&aim, " --%s %s", name, shellWord(f.Value.String()))
		}
	}
	return aim.String()
}

// plainWord is what a shell takes as one word as it stands.
var plainWord = regexp.MustCompile(`^[\pL\pN_./:@%+=,-]+$`)

// shellWord writes s as one word of a shell's line.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// lineAbout is the line of a command about a server, for a person to type. A name that
// looks like a flag comes last, behind what says that no more flags follow.
func lineAbout(command, server, aim string) string {
	if strings.HasPrefix(server, "-") {
		return self + " " + command + aim + " -- " + shellWord(server)
	}
	return self + " " + command + " " + shellWord(server) + aim
}

// envAnnotation is on the flags that a variable stands for.
const envAnnotation = "env"

// alsoFromEnv has variables stand for flags, too. It is for those that say which service
// is meant and how it runs. What a command is asked stands in its line alone: the
// --rules that the service runs by are not those that another command judges by.
func alsoFromEnv(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{envAnnotation: nil} })
}

// flagsFromEnv sets each flag that has a variable and was not given from it, if that is
// set and not empty: --log-format from MCPLEDGER_LOG_FORMAT. A flag that can be given
// several times takes a list separated by commas.
func (p *program) flagsFromEnv(flags *pflag.FlagSet) error {
	var wrong error
	flags.VisitAll(func(f *pflag.Flag) {
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := p.lookupEnv(name)
		_, has := f.Annotations[envAnnotation]
		if !has || f.Changed || !ok || value == "" || wrong != nil {
			return
		}
		values := []string{value}
		if _, isList := f.Value.(pflag.SliceValue); isList {
			values = strings.Split(value, ",")
		}
		for _, v := range values {
			if err := flags.Set(f.Name, v); err != nil {
				if advice, ours := errors.AsType[adviceError](err); ours {
					wrong = usagef("%s is %q, %s", name, value, advice)
					return
				}
				wrong = usagef("%s is %q, which --%s does not take: %v", name, value, f.Name, err)
			}
		}
	})
	return wrong
}

// noCommand refuses a word that is no command of root, and names those it may be a slip
// for. A file among them was meant for --config: a shell makes several words of
// "--config *.json".
func noCommand(root *cobra.Command, word string) error {
	if info, err := os.Stat(word); err == nil && !info.IsDir() {
		return usagef("there is no command %q; a config file is given as --config %s, each with a --config of its own", word, word)
	}
	if near := root.SuggestionsFor(word); len(near) > 0 {
		return usagef("there is no command %q, did you mean %s? Run \"%s help\" for those there are", word, strings.Join(near, " or "), self)
	}
	return usagef("there is no command %q, run \"%s help\" for those there are", word, self)
}

// refuseUnknown has the commands of the library refuse words that are no commands: they
// print what there is, and end with 0.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if _, left, _ := root.Find(args); len(left) > 0 {
					return noCommand(root, strings.Join(args, " "))
				}
				return nil
			}
		case "completion":
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, wantsSubcommand
		}
	}
}

// noArgs refuses arguments with a sentence of ours.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, but was given %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// exactArgs wants one argument for each of names.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s wants %s: %s", cmd.CommandPath(), count(len(names), "argument"), cmd.UseLine())
		}
		return nil
	}
}

// oneServerOrAll wants the name of one server or nothing.
func oneServerOrAll(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s takes one server's name, or none for all: %s", cmd.CommandPath(), cmd.UseLine())
	}
	return nil
}

// count writes a number with its noun: "1 server", "3 servers".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
