package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"mcpledger/httpapi"
	"mcpledger/httpapi/access"
	"mcpledger/httpapi/gateway"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	configFiles    []string
	listen         string
	rules          string // a built-in set or a file; empty: the one last activated
	logFormat      string
	verifyOnStart  bool
	requireToken   bool
	nameLimit      int // of tools at the MCP endpoint
	allowedHosts   []string
	allowedOrigins []string
}

func (p *program) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the service (this is what no command does, too)",
		Long: "Run the service: learn the tools of the configured MCP servers, keep the log, and answer\n" +
			"over HTTP until interrupted. Without --config it takes mcpledger/mcp.json in your config\n" +
			"folder; if there is none, it runs a sample fleet, on a temporary data folder unless --data\n" +
			"names one.",
		Args: noArgs,
	}
	o.addTo(cmd.Flags(), "127.0.0.1:8132")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.serve(cmd.Context(), o, cmd.Flags().Changed("data"))
	}
	return cmd
}

// addTo adds the flags to those of a command, which listens on the address given unless
// it is told another.
func (o *serveOptions) addTo(all *pflag.FlagSet, listen string) {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags.StringArrayVar(&o.configFiles, "config", nil, "a config `file` with mcpServers; may be given several times, a later one wins")
	flags.StringVar(&o.listen, "listen", listen, "the `address` to answer on; port 0 takes a free one")
	flags.StringVar(&o.rules, "rules", "", "the rule `set`: a built-in name, or a file that is read anew when it changes; default: the one last used")
	flags.StringVar(&o.logFormat, "log-format", "text", "`text` or json")
	flags.BoolVar(&o.verifyOnStart, "verify-on-start", false, "contact servers whose tools are known, too")
	flags.BoolVar(&o.requireToken, "require-token", false, "want a token for everything, from this machine too")
	flags.StringArrayVar(&o.allowedHosts, "allowed-host", nil, "a `host` name under which the service may be asked; may be given several times")
	flags.StringArrayVar(&o.allowedOrigins, "allowed-origin", nil, "an `origin` whose pages may ask the service; may be given several times")
	o.nameLimit = gateway.DefaultNameLimit
	flags.Var(wholeNumber(&o.nameLimit, gateway.MinNameLimit, gateway.MaxNameLimit), "name-limit", "the most `bytes` in the name of a tool at the MCP endpoint; longer ones are shortened")
	alsoFromEnv(flags)
	all.AddFlagSet(flags)
}

// serve runs the service until a signal ends it. The first SIGINT or SIGTERM has it
// stop in good order, one that comes later ends it at once.
func (p *program) serve(ctx context.Context, o serveOptions, dataGiven bool) error {
	logger, err := p.newLogger(o.logFormat)
	if err != nil {
		return err
	}
	if err := p.checkListen(ctx, o.listen); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	release := stopAtSignal(cancel)
	defer release()

	if len(o.configFiles) == 0 {
		file, err := userConfigFile()
		if err != nil {
			return err
		}
		if file != "" {
			o.configFiles = []string{file}
		}
	}
	if len(o.configFiles) == 0 {
		fleet, remove, err := p.sampleFleet(dataGiven)
		if err != nil {
			return err
		}
		defer remove()
		defer fleet.Close()
		o.configFiles = []string{fleet.configFile}
	}
	return p.runService(ctx, o, logger, hangups)
}

// oneStop is how long after the first signal further ones belong to it: timeout(1) and
// some supervisors send a stop to the process and to its group as well.
const oneStop = time.Second

// stopAtSignal has the first SIGINT or SIGTERM call cancel, with the signal's name as the
// cause, and leaves those that come later than oneStop to their default, which ends the
// process. release gives up both.
func stopAtSignal(cancel context.CancelCauseFunc) (release func()) {
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM)
	released := make(chan struct{})
	go func() {
		select {
		case s := <-stops:
			cancel(errors.New(unix.SignalName(s.(syscall.Signal))))
		case <-released:
			return
		}
		select {
		case <-time.After(oneStop):
			signal.Reset(os.Interrupt, syscall.SIGTERM)
		case <-released:
		}
	}()
	return func() {
		signal.Stop(stops)
		close(released)
	}
}

// sampleFleet starts the sample fleet and says so. Unless a data folder was given it
// makes a temporary one, which remove removes; one that was given and did not exist goes
// if it has got no log.
func (p *program) sampleFleet(dataGiven bool) (fleet *sampleFleet, remove func(), err error) {
	remove = func() {}
	if !dataGiven {
		if p.dataDir, err = os.MkdirTemp("", "mcpledger-sample-"); err != nil {
			return nil, nil, fmt.Errorf("make a temporary data folder: %w", err)
		}
		temporary := p.dataDir
		remove = func() { _ = os.RemoveAll(temporary) }
	}
	if _, err := os.Stat(p.dataDir); errors.Is(err, os.ErrNotExist) {
		made := p.dataDir
		remove = func() {
			if !hasLog(made) {
				_ = os.RemoveAll(filepath.Join(made, "sample"))
				_ = os.Remove(made) // stays if somebody else put something there
			}
		}
	}
	fleet, err = startSampleFleet(p.dataDir)
	if err != nil {
		remove()
		return nil, nil, withNextStep(err)
	}
	fmt.Fprintf(p.stdout, "No config was given, so a sample fleet runs, with its data in %s.\n", p.dataDir)
	fmt.Fprintf(p.stdout, "Ask about it with \"%s servers --data %s\"; serve your own servers with --config FILE.\n", self, p.dataDir)
	for _, name := range []string{"mcp.json", ".mcp.json"} {
		if _, err := os.Stat(name); err == nil {
			fmt.Fprintf(p.stdout, "This folder has an %s, which is not read unasked: serve it with --config %s\n", name, name)
		}
	}
	return fleet, remove, nil
}

// userConfigFile returns mcpledger/mcp.json in the user's config folder, empty if
// there is none.
func userConfigFile() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", nil // a user without a home has no config folder
	}
	file := filepath.Join(folder, "mcpledger", "mcp.json")
	switch _, err := os.Stat(file); {
	case err == nil:
		return file, nil
	case errors.Is(err, os.ErrNotExist):
		return "", nil
	default:
		return "", err
	}
}

// newLogger returns the logger of --log-format. Logs go to stderr.
func (p *program) newLogger(format string) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(newTextHandler(p.stderr)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(p.stderr, nil)), nil
	}
	return nil, usagef("--log-format is %q, give text or json", format)
}

// checkListen refuses an address that other machines can reach, unless there are
// tokens to tell who asks.
func (p *program) checkListen(ctx context.Context, listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err != nil {
		return usagef("--listen is %q, give a host and a port up to 65535, such as 127.0.0.1:8132", listen)
	}
	if httpapi.IsLoopback(host) {
		return nil
	}
	tokens, err := access.ReadTokens(p.dataDir)
	if err != nil {
		return err
	}
	if len(tokens) == 0 {
		return usagef("--listen %s can be reached from other machines and there are no tokens, make one with \"%s token add NAME%s\" or listen on 127.0.0.1", listen, self, p.aim)
	}
	return nil
}

// portWait is how long a port that is taken is waited for, as the log is: who has it may
// be a service that was just told to stop, or killed. It is asked for every portPoll.
const (
	portWait = time.Second
	portPoll = 20 * time.Millisecond
)

// listen opens the address, with a sentence for a port that stays taken.
func listen(ctx context.Context, address string) (net.Listener, error) {
	for waited := time.Duration(0); ; waited += portPoll {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		switch {
		case !errors.Is(err, syscall.EADDRINUSE):
			return l, err
		case waited >= portWait:
			return nil, fmt.Errorf("the port of %s is in use, stop what uses it or give another address with --listen", address)
		}
		select {
		case <-time.After(portPoll):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reachableURL returns where this machine reaches what listens on addr.
func reachableURL(addr *net.TCPAddr) string {
	host := addr.IP
	if host.IsUnspecified() {
		host = net.IPv4(127, 0, 0, 1)
	}
	return "http://" + net.JoinHostPort(host.String(), fmt.Sprint(addr.Port))
}
