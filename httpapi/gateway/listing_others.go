package gateway

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpledger/discovery/upstream"
	"mcpledger/events"
)

// listOthers answers resources/list, resources/templates/list and prompts/list.
func (g *Gateway) listOthers(ctx context.Context, x *exchange) answer {
	if x.request.params.Cursor != "" {
		return errorOf(mcp.INVALID_PARAMS, "the list has one page, and no cursor")
	}
	standing, err := g.fleet.now()
	if err != nil {
		return errorOf(mcp.INTERNAL_ERROR, "the service is still reading its log, try again in a moment")
	}
	k := kinds[x.request.Method]
	servers := x.view.servers(standing)
	var items [][]byte
	for i, listed := range g.lists.all(ctx, servers, k, x.client) {
		var odd []string
		for _, item := range listed {
			named, err := x.view.relabel(servers[i].Name, k, item)
			if err != nil {
				name, _ := textOf(item, "name")
				odd = append(odd, oddItem(name, err))
				continue
			}
			items = append(items, oneLine(named))
		}
		if !x.view.single { // where all is listed as it is
			g.leftOut(servers[i], k.method, odd)
		}
	}
	return resultOf([]byte(`{"`+k.member+`":[`), bytes.Join(items, []byte(",")), []byte("]"), x.listEnd())
}

// relabel returns an item of a list under its name or address in the view.
func (v *view) relabel(server events.ServerName, k kind, item json.RawMessage) (json.RawMessage, error) {
	if v.single {
		return item, nil
	}
	place := "name"
	if k.capability == upstream.CapabilityResources {
		place = "uri"
	}
	if k.method == methodTemplates {
		place = "uriTemplate"
	}
	item, err := itemShapes[k.method].fit(item)
	if err != nil {
		return nil, err
	}
	var own string
	if err := json.Unmarshal(member(item, place), &own); err != nil {
		return nil, err
	}
	if place == "name" {
		return v.rename(server, own, item)
	}
	origin, err := withOrigin(member(item, "_meta"), server, own)
	if err != nil {
		return nil, err
	}
	return splice(item, map[string][]byte{place: quoted(addressOf(server, own)), "_meta": origin}, "_meta")
}
