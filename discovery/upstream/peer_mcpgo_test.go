package upstream_test

import (
	"context"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func newMCPGoPeer() peer {
	s := newMCPGoServer()
	return peer{
		stdio:  func() error { return server.NewStdioServer(s).Listen(context.Background(), os.Stdin, os.Stdout) },
		legacy: server.NewStreamableHTTPServer(s, server.WithStreamableHTTPProtocolVersions(mcp.LegacyProtocolVersions()...)),
		modern: server.NewStreamableHTTPServer(s, server.WithStateLess(true)),
		sse:    server.NewSSEServer(s),
	}
}

func newMCPGoServer() *server.MCPServer {
	s := server.NewMCPServer("peer", "1", server.WithToolCapabilities(true))
	type sum struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	s.AddTool(mcp.NewTool("add", mcp.WithNumber("a"), mcp.WithNumber("b")),
		mcp.NewTypedToolHandler(func(_ context.Context, _ mcp.CallToolRequest, in sum) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultStructured(map[string]int{"sum": in.A + in.B}, "added"), nil
		}))
	released := make(chan struct{}, 1)
	s.AddTool(mcp.NewTool("hold"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_ = s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
			"progressToken": req.Params.Meta.ProgressToken, "progress": 1, "total": 2, "message": "holding",
		})
		select {
		case <-released:
		case <-ctx.Done():
		}
		return mcp.NewToolResultText("held"), ctx.Err()
	})
	s.AddTool(mcp.NewTool("release"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		released <- struct{}{}
		return mcp.NewToolResultText("released"), nil
	})
	s.AddTool(mcp.NewTool("fail"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no such city"), nil
	})
	s.AddTool(mcp.NewTool("grow"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddTool(mcp.NewTool("more"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("more"), nil
		})
		return mcp.NewToolResultText("grown"), nil
	})
	return s
}
