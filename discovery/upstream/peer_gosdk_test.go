package upstream_test

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func newSDKPeer() peer {
	s := newSDKServer(&mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	server := func(*http.Request) *mcp.Server { return s }
	return peer{
		stdio:  func() error { return s.Run(context.Background(), &mcp.StdioTransport{}) },
		legacy: mcp.NewStreamableHTTPHandler(server, nil),
		modern: mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{Stateless: true}),
		sse:    mcp.NewSSEHandler(server, nil),
	}
}

// newSDKServer has a resource besides, and a tool that tells of an update of the
// resource it names.
func newSDKServer(options *mcp.ServerOptions) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"}, options)
	server.AddResource(&mcp.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	type touched struct {
		URI string `json:"uri"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "touch"}, func(ctx context.Context, _ *mcp.CallToolRequest, in touched) (*mcp.CallToolResult, any, error) {
		return nil, nil, server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: in.URI})
	})
	type sum struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(_ context.Context, _ *mcp.CallToolRequest, in sum) (*mcp.CallToolResult, any, error) {
		return nil, map[string]int{"sum": in.A + in.B}, nil
	})
	released := make(chan struct{}, 1)
	mcp.AddTool(server, &mcp.Tool{Name: "hold"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		token := req.Params.GetProgressToken()
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2, Message: "holding"})
		select {
		case <-released:
		case <-ctx.Done():
		}
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(server, &mcp.Tool{Name: "release"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		released <- struct{}{}
		return nil, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such city"}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		server.AddTool(&mcp.Tool{Name: "more", InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
		return nil, nil, nil
	})
	return server
}
