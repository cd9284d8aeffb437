//go:build e2e

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goClient is a client of the Go SDK, with what it hears unasked.
type goClient struct {
	*testing.T
	session  *mcp.ClientSession
	progress chan float64
	changes  chan struct{}
	updates  chan string
}

// driveGo has the Go SDK's client go through the story.
func (e endpoint) driveGo(t *testing.T, era string, stdio bool) (seen clientSeen) {
	t.Helper()
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: e.service.base + "/mcp"}
	if stdio {
		transport = &mcp.CommandTransport{Command: exec.Command(e.program, e.stdio()...)}
	}
	c := connectGo(t, era, transport)
	ctx := storyContext(t)
	seen.Version = c.session.InitializeResult().ProtocolVersion
	for tool, err := range c.session.Tools(ctx, nil) {
		c.must(err)
		seen.Tools = append(seen.Tools, tool.Name)
	}
	seen.Call = c.call(ctx, "everything__echo", map[string]any{"message": "hello"})
	seen.File = c.call(ctx, "filesystem__read_text_file", map[string]any{"path": e.note()})
	seen.Graph = c.call(ctx, "memory__search_nodes", map[string]any{"query": "Bern"})
	seen.Thought = c.call(ctx, "thinking__sequentialthinking", map[string]any{
		"thought": "begin", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false,
	})
	seen.Progress = c.hearProgress(ctx)
	seen.Cancel.Failed = c.cancelCall(ctx)
	seen.Error = c.call(ctx, "everything__get-sum", map[string]any{"a": "x"})
	seen.Outside = c.call(ctx, "filesystem__read_text_file", map[string]any{"path": "/etc/hostname"})
	seen.Missing = c.call(ctx, "broken__anything", nil)
	seen.Why = c.call(ctx, "ledger__why", map[string]any{"server": "broken"})
	c.readOthers(ctx, &seen)
	seen.Update = c.hearUpdate(ctx, seen.Resources[0])
	e.addServer(t, t.Name())
	select {
	case <-c.changes:
		seen.Changes++
	case <-ctx.Done():
	}
	return seen
}

func connectGo(t *testing.T, era string, transport mcp.Transport) *goClient {
	t.Helper()
	c := &goClient{T: t, progress: make(chan float64, 64), changes: make(chan struct{}, 64), updates: make(chan string, 64)}
	client := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { c.progress <- r.Params.Progress },
		ResourceUpdatedHandler:      func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { c.updates <- r.Params.URI },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { c.changes <- struct{}{} },
	})
	var err error
	c.session, err = client.Connect(storyContext(t), transport, &mcp.ClientSessionOptions{ProtocolVersion: era})
	c.must(err)
	t.Cleanup(func() { _ = c.session.Close() })
	return c
}

func (c *goClient) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// call calls a tool and returns of its result what the story looks at.
func (c *goClient) call(ctx context.Context, tool string, args map[string]any) (seen resultSeen) {
	c.Helper()
	r, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		c.Fatalf("call %s: %v", tool, err)
	}
	c.as(r, &seen)
	return seen
}

// as gives a value of the SDK the form in which all clients' are compared.
func (c *goClient) as(v, into any) {
	c.Helper()
	b, err := json.Marshal(v)
	c.must(err)
	c.must(json.Unmarshal(b, into))
}

// hearProgress returns what a call of four steps reports.
func (c *goClient) hearProgress(ctx context.Context) (steps []float64) {
	c.Helper()
	p := &mcp.CallToolParams{Name: "everything__trigger-long-running-operation", Arguments: map[string]any{"duration": 1, "steps": 4}}
	p.SetProgressToken("four")
	_, err := c.session.CallTool(ctx, p)
	c.must(err)
	for len(steps) < 4 {
		select {
		case step := <-c.progress:
			steps = append(steps, step)
		case <-ctx.Done():
			return steps
		}
	}
	return slices.Sorted(slices.Values(steps))
}

// cancelCall cancels a call once it is under way, and returns how it ended.
func (c *goClient) cancelCall(ctx context.Context) string {
	c.Helper()
	ctx, cancel := context.WithCancelCause(ctx)
	p := &mcp.CallToolParams{Name: "everything__trigger-long-running-operation", Arguments: map[string]any{"duration": 60, "steps": 60}}
	p.SetProgressToken("long")
	var failed error
	var calling sync.WaitGroup
	calling.Go(func() { _, failed = c.session.CallTool(ctx, p) })
	<-c.progress
	cancel(errors.New("enough"))
	calling.Wait()
	if failed == nil {
		c.Error("the cancelled call went on to its end")
	}
	return context.Cause(ctx).Error()
}

// hearUpdate subscribes to a resource and returns which one the server tells of.
func (c *goClient) hearUpdate(ctx context.Context, uri string) (told string) {
	c.Helper()
	c.must(c.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}))
	c.call(ctx, "everything__toggle-subscriber-updates", map[string]any{}) // on
	select {
	case told = <-c.updates:
	case <-ctx.Done():
	}
	c.call(ctx, "everything__toggle-subscriber-updates", map[string]any{}) // off
	c.must(c.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}))
	return told
}

// readOthers lists and reads what there is besides tools.
func (c *goClient) readOthers(ctx context.Context, seen *clientSeen) {
	c.Helper()
	for r, err := range c.session.Resources(ctx, nil) {
		c.must(err)
		seen.Resources = append(seen.Resources, r.URI)
	}
	for r, err := range c.session.ResourceTemplates(ctx, nil) {
		c.must(err)
		seen.Templates = append(seen.Templates, r.URITemplate)
	}
	for p, err := range c.session.Prompts(ctx, nil) {
		c.must(err)
		seen.Prompts = append(seen.Prompts, p.Name)
	}
	if len(seen.Resources) == 0 {
		c.Fatal("no resources")
	}
	read, err := c.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: seen.Resources[0]})
	c.must(err)
	c.as(read, &seen.Resource)
	prompt, err := c.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "everything__simple-prompt"})
	c.must(err)
	c.as(prompt, &seen.Prompt)
	completed, err := c.session.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "everything__completable-prompt"},
		Argument: mcp.CompleteParamsArgument{Name: "department", Value: "S"},
	})
	c.must(err)
	seen.Completion = completed.Completion.Values
}
