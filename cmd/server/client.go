package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"mcpledger/httpapi/access"
)

// client asks the HTTP contract: of a running service over the network or, where no
// service holds the data folder, of the same handler in this process over the log
// opened for reading.
type client struct {
	http    *http.Client
	base    string // without a slash at the end
	token   string // empty: none is shown
	running bool   // a service answers, so writes are possible
	aim     string // of the program, for what a person is told to type
	close   func() error
}

// problem is an answer of application/problem+json.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`

	aim string // of the program, for what a person is told to type
	at  string // the past moment that was asked about; empty: the present
}

// Error says what is wrong in the words of the command line, which has other ways to
// look things up than the HTTP contract has.
func (e *problem) Error() string {
	what, _, _ := strings.Cut(e.Detail, ";")
	switch e.Code {
	case "server_not_found":
		if e.at != "" {
			return what + "; run \"" + self + " servers --at " + shellWord(e.at) + e.aim + "\" for those there were"
		}
		return what + "; run \"" + self + " servers" + e.aim + "\" for those there are"
	case "report_not_found":
		return what + "; \"" + self + " history" + e.aim + "\" with the server's name lists what was"
	case "unknown_rules":
		return what + "; run \"" + self + " rules list" + e.aim + "\" for those there are"
	case "unauthenticated", "forbidden":
		return e.Detail + "; show another token with --token-file or MCPLEDGER_TOKEN"
	case "not_found":
		return "the service has no such path; give its address alone with --url, such as http://127.0.0.1:8132"
	case "at_in_future":
		return "that moment is beyond the head of the log, give an earlier one"
	}
	if e.Detail != "" {
		return e.Detail
	}
	return e.Title
}

// wrongUsage reports whether the request asked for what no service could answer.
func (e *problem) wrongUsage() bool {
	return slices.Contains([]string{"invalid_parameter", "invalid_at", "invalid_limit", "at_in_future", "unknown_rules", "bad_body", "breaks_law_3", "rules_name_taken"}, e.Code)
}

// isUnreachable reports whether err is that nobody answered, or somebody who is no
// service.
func isUnreachable(err error) bool {
	if refused, ok := errors.AsType[*problem](err); ok {
		return refused.Code == ""
	}
	_, failed := errors.AsType[*url.Error](err)
	return failed
}

// openClient finds whom to ask: --url, else the service that holds the data folder,
// else the log itself. The caller closes the client.
func (p *program) openClient(ctx context.Context) (*client, error) {
	token, err := p.givenToken()
	if err != nil {
		return nil, err
	}
	if p.url != "" {
		base, err := baseURL(p.url)
		if err != nil {
			return nil, err
		}
		return p.networkClient(base, token), nil
	}
	service, running, err := readServiceFile(p.dataDir)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w; ask as the user it belongs to, or name the service with --url", err)
	}
	if err != nil {
		return nil, withNextStep(err)
	}
	if running {
		c := p.networkClient(service.Address, "")
		switch err := c.get(ctx, "/healthz", nil, nil); {
		case err == nil:
			if c.token = token; token == "" {
				// Whoever cannot read the operator's token asks without one.
				c.token, _ = access.ReadOperatorToken(p.dataDir)
			}
			return c, nil
		case !errors.Is(err, syscall.ECONNREFUSED):
			return nil, err
		}
		// The file is of a service that is gone, and its process id is used again.
	}
	return p.openReader(ctx)
}

// networkClient is newNetworkClient for what a person asked.
func (p *program) networkClient(base, token string) *client {
	c := newNetworkClient(base, token)
	c.aim = p.aim
	return c
}

func newNetworkClient(base, token string) *client {
	return &client{
		http: &http.Client{}, base: base, token: token, running: true,
		close: func() error { return nil },
	}
}

// baseURL checks what --url was given.
func baseURL(given string) (string, error) {
	u, err := url.Parse(given)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", usagef("--url is %q, give the service's address, such as http://127.0.0.1:8132", given)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// givenToken returns the token a person handed over, empty if none.
func (p *program) givenToken() (string, error) {
	if token, ok := p.lookupEnv(envPrefix + "TOKEN"); ok && token != "" {
		return token, nil
	}
	if p.tokenFile == "" {
		return "", nil
	}
	body, err := os.ReadFile(p.tokenFile)
	if err != nil {
		return "", usagef("--token-file: %v", err)
	}
	return strings.TrimSpace(string(body)), nil
}

// get asks for path and decodes the answer into into, unless that is nil.
func (c *client) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.ask(ctx, http.MethodGet, path, query, nil, into)
}

// post sends body as JSON and decodes the answer into into, unless that is nil.
func (c *client) post(ctx context.Context, path string, query url.Values, body, into any) error {
	return c.ask(ctx, http.MethodPost, path, query, body, into)
}

// yamlText is a body that is sent as it is; others are sent as JSON.
type yamlText string

// open sends a request and returns the answer with its body unread. An answer of
// 400 or more is an error, a *problem where the service explains itself.
func (c *client) open(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var sent io.Reader
	contentType := "application/json"
	switch body := body.(type) {
	case nil:
		contentType = ""
	case yamlText:
		contentType, sent = "application/yaml", strings.NewReader(string(body))
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, sent)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return nil, fmt.Errorf("no service answers at %s, start it there or give another address with --url: %w", c.base, err)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	if res.StatusCode < http.StatusBadRequest {
		return res, nil
	}
	defer res.Body.Close()
	refused := &problem{Status: res.StatusCode, Title: "the service answered " + res.Status, aim: c.aim, at: query.Get("at")}
	explained, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err == nil && json.Unmarshal(explained, refused) != nil {
		refused = &problem{Status: res.StatusCode, Title: "what answers there is no mcpledger service: " + res.Status}
	}
	return nil, refused
}

// catchUpPatience is how long a request is repeated while the service has not caught
// up with its log.
const catchUpPatience = 30 * time.Second

// openReady is open, with patience for a service that has not caught up yet.
func (c *client) openReady(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	res, err := c.open(ctx, method, path, query, body)
	for wait := 10 * time.Millisecond; isCatchingUp(err) && wait < catchUpPatience; wait *= 2 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		res, err = c.open(ctx, method, path, query, body)
	}
	return res, err
}

func (c *client) ask(ctx context.Context, method, path string, query url.Values, body, into any) error {
	res, err := c.openReady(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("read the service's answer: %w", err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return unreadable(path, err)
	}
	return nil
}

func isCatchingUp(err error) bool {
	refused, ok := errors.AsType[*problem](err)
	return ok && refused.Code == "catching_up"
}
