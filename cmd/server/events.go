package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mcpledger/httpapi/api"
)

func (p *program) eventsCommand() *cobra.Command {
	var server, eventType, since string
	var after int64
	var limit int
	var follow bool
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List the events of the log, newest first, or follow them as they come",
		Args:  noArgs,
	}
	cmd.Flags().StringVar(&server, "server", "", "only events about this `server`")
	cmd.Flags().StringVar(&eventType, "type", "", "only events of this `type`, such as discovery.failed")
	cmd.Flags().Var(timeOf(&since), "since", "only from this `time` on, such as 2026-03-04T12:00:00Z")
	cmd.Flags().Var(wholeNumber(&after, 0, 0), "after", "only events after this `sequence`")
	cmd.Flags().BoolVar(&follow, "follow", false, "print new events as they come, until interrupted")
	listLimit(cmd, &limit)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q := url.Values{}
		if cmd.Flags().Changed("after") {
			q.Set("after", strconv.FormatInt(after, 10))
		}
		if follow {
			if since != "" {
				return usagef("--follow shows what comes, so it does not take --since; --after begins it earlier")
			}
			only := func(e api.Event) bool {
				return (server == "" || string(e.Subject) == server) && (eventType == "" || string(e.Type) == eventType)
			}
			return p.withClient(cmd, func(c *client) error { return p.followEvents(cmd.Context(), c, q, only) })
		}
		q.Set("order", "desc")
		set(q, "server", server)
		set(q, "type", eventType)
		set(q, "since", since)
		return printList(p, cmd, "/api/events", q, limit, p.printEvents)
	}
	return cmd
}

// followEvents prints the events of the stream that only lets through, one a line,
// until the stream or ctx ends.
func (p *program) followEvents(ctx context.Context, c *client, query url.Values, only func(api.Event) bool) error {
	res, err := c.open(ctx, http.MethodGet, "/api/events/stream", query, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for data, err := range serverSentData(res.Body) {
		if err != nil {
			return fmt.Errorf("the stream of events broke: %w", err)
		}
		var e api.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return unreadable("/api/events/stream", err)
		}
		switch {
		case !only(e):
		case p.json:
			fmt.Fprintln(p.stdout, data)
		default:
			cells := eventCells(e)
			for i := range cells {
				cells[i] = oneLine(cells[i])
			}
			fmt.Fprintln(p.stdout, strings.Join(cells, "  "))
		}
	}
	return nil
}

// serverSentData yields the data of each server-sent event. An orderly end of the
// stream ends it.
func serverSentData(r io.Reader) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: "); ok && err == nil {
				if !yield(data, nil) {
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
					yield("", err)
				}
				return
			}
		}
	}
}
