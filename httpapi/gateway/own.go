package gateway

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"sync"

	"mcpledger/discovery"
	"mcpledger/events"
	"mcpledger/projections"
)

// ownToolsJSON are the definitions of the gateway's own tools, an array.
//
//go:embed own_tools.json
var ownToolsJSON []byte

// ownTools returns the gateway's own tools as a part of a list.
var ownTools = sync.OnceValue(func() []byte {
	var tools []json.RawMessage
	if err := json.Unmarshal(ownToolsJSON, &tools); err != nil {
		panic(err) // the file is part of the program
	}
	var part []byte
	for i, tool := range tools {
		if i > 0 {
			part = append(part, ',')
		}
		part = append(part, oneLine(tool)...)
	}
	return part
})

// ownArguments are what the gateway's own tools take.
type ownArguments struct {
	Server events.ServerName       `json:"server"`
	State  projections.ServerState `json:"state"`
	Limit  int                     `json:"limit"`
	Source string                  `json:"source"`
	Key    events.ConfigKey        `json:"config_key"`
}

// ownTool returns what answers one of the gateway's own tools, nil for any other name.
func ownTool(name string) func(*Gateway, context.Context, *exchange, ownArguments) (any, error) {
	switch name {
	case OwnPrefix + "list_servers":
		return (*Gateway).ownListServers
	case OwnPrefix + "why":
		return (*Gateway).ownWhy
	case OwnPrefix + "history":
		return (*Gateway).ownHistory
	case OwnPrefix + "retry":
		return (*Gateway).ownRetry
	case OwnPrefix + "list_skips":
		return (*Gateway).ownListSkips
	}
	return nil
}

// errUnknownServer reports a server that the view does not have, and errUnreported one
// that besides no host reports, or not as was asked.
var (
	errUnknownServer = errors.New("no such server")
	errUnreported    = errors.New("neither configured nor reported")
)

// callOwn answers a call of one of the gateway's own tools.
func (g *Gateway) callOwn(ctx context.Context, x *exchange, name string) answer {
	tool := ownTool(name)
	if tool == nil {
		return x.failed(failure{Code: discovery.CodeToolNotFound, Sentence: "mcpledger has no tool of its own of that name; list the tools anew."})
	}
	arguments := x.request.params.Arguments
	if wrong := ownSchemas()[name].check(arguments); wrong != "" {
		return x.failed(failure{Code: codeInvalidArguments, Sentence: wrong})
	}
	var args ownArguments
	if len(arguments) > 0 {
		_ = json.Unmarshal(arguments, &args) // the check has found nothing wrong
	}
	said, err := tool(g, ctx, x, args)
	switch {
	case errors.Is(err, errUnknownServer):
		return x.failed(failure{
			Code:     codeServerNotFound,
			Sentence: "No server of that name is configured; " + OwnPrefix + "list_servers names them all.",
		})
	case errors.Is(err, errUnreported):
		return x.failed(failure{
			Code: codeServerNotFound,
			Sentence: "No server of that name is configured, and none is reported as asked for; " + OwnPrefix +
				"list_servers names those that are configured.",
		})
	case err != nil:
		return x.failed(unrecorded(args.Server, discovery.CallOutcome{}, err))
	}
	body := encoded(said)
	return x.result(encoded(map[string]any{
		"content":           []map[string]string{{"type": "text", "text": string(body)}},
		"structuredContent": body,
	}))
}
