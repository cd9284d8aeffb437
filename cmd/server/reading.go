package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// pageSize is how many items of a list are asked for at a time; the most there may be.
const pageSize = 1000

// withClient opens a client, has fn ask it, and closes it.
func (p *program) withClient(cmd *cobra.Command, fn func(*client) error) error {
	c, err := p.openClient(cmd.Context())
	if err != nil {
		return err
	}
	return closing(c, fn)
}

// errNeedsService tells that a command writes, and nobody is there to write.
var errNeedsService = errors.New("no service holds this data folder, and this command needs one")

// withService is withClient for a command that writes, which a service has to do.
func (p *program) withService(cmd *cobra.Command, fn func(*client) error) error {
	return p.withClient(cmd, func(c *client) error {
		if !c.running {
			return fmt.Errorf("%w; start it with \"%s serve%s\" or name one with --url", errNeedsService, self, p.aim)
		}
		return fn(c)
	})
}

func closing(c *client, fn func(*client) error) (err error) {
	defer func() {
		if closeErr := c.close(); err == nil {
			err = closeErr
		}
	}()
	return fn(c)
}

// moment adds the flags that read the past or re-judge it, and returns what they ask
// for as parameters of the HTTP contract.
func (p *program) moment(cmd *cobra.Command) func() url.Values {
	var at string
	cmd.Flags().Var(momentOf(&at, p.now), "at", "show the past: a `moment`, such as 2026-03-04T12:00:00Z, 2h for two hours ago, or a sequence")
	rules := cmd.Flags().String("rules", "", "judge by another rule `set`")
	return func() url.Values {
		query := url.Values{}
		set(query, "at", at)
		set(query, "rules", *rules)
		return query
	}
}

// set adds a parameter unless its value is empty.
func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// listLimit adds the flag that bounds a list of events.
func listLimit(cmd *cobra.Command, limit *int) {
	*limit = 100
	cmd.Flags().Var(wholeNumber(limit, 0, 0), "limit", "at most this `number`, the newest; 0 for all")
}

// list asks for the items of a list, over all pages, at most limit of them if that is
// not 0, and returns them as they came and decoded.
func list[T any](ctx context.Context, c *client, path string, query url.Values, limit int) (raw []json.RawMessage, items []T, err error) {
	raw = []json.RawMessage{}
	for {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(raw))
		}
		query.Set("limit", strconv.Itoa(size))
		var page struct {
			Items []json.RawMessage `json:"items"`
			Next  *string           `json:"next_cursor"`
		}
		if err := c.get(ctx, path, query, &page); err != nil {
			return nil, nil, err
		}
		raw = append(raw, page.Items...)
		if page.Next == nil || len(raw) == limit {
			break
		}
		query.Set("cursor", *page.Next)
	}
	items = make([]T, len(raw))
	for i := range raw {
		if err := json.Unmarshal(raw[i], &items[i]); err != nil {
			return nil, nil, unreadable(path, err)
		}
	}
	return raw, items, nil
}

// printList prints a list by show, or as it came if --json asks for that. It stops at
// limit items, if that is not 0.
func printList[T any](p *program, cmd *cobra.Command, path string, query url.Values, limit int, show func([]T) error) error {
	return p.withClient(cmd, func(c *client) error { return printListOf(p, cmd, c, path, query, limit, show) })
}

// printListOf is printList for a client that is open.
func printListOf[T any](p *program, cmd *cobra.Command, c *client, path string, query url.Values, limit int, show func([]T) error) error {
	raw, items, err := list[T](cmd.Context(), c, path, query, limit)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(map[string]any{"items": raw, "next_cursor": nil})
	}
	return show(items)
}

// printOne prints a single document by show, or as it came if --json asks for that.
func printOne[T any](p *program, cmd *cobra.Command, path string, query url.Values, show func(T) error) error {
	return p.withClient(cmd, func(c *client) error {
		var raw json.RawMessage
		if err := c.get(cmd.Context(), path, query, &raw); err != nil {
			return err
		}
		return printAnswer(p, path, raw, show)
	})
}

// printAnswer prints an answer that is there by show, or as it came if --json asks
// for that.
func printAnswer[T any](p *program, path string, raw json.RawMessage, show func(T) error) error {
	if p.json {
		return p.printJSON(raw)
	}
	var answer T
	if err := json.Unmarshal(raw, &answer); err != nil {
		return unreadable(path, err)
	}
	return show(answer)
}

func unreadable(path string, err error) error {
	return fmt.Errorf("read the service's answer to %s: %w", path, err)
}

// printJSON prints v indented.
func (p *program) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := p.stdout.Write(b.Bytes())
	return err
}
