package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections"
)

// offer is a catalogue as /api/tools shows it.
type offer struct {
	names []string // in the server's order
	tools []byte   // the elements of the array, without its brackets
}

// catalogueCache holds offers that were made from the log, since neither reading nor
// rendering a catalogue twice tells anything new.
type catalogueCache struct {
	mu     sync.Mutex
	offers map[string]offer
}

// offerOf returns what of a server's catalogue is offered. It reads the catalogue
// from the log unless it is known.
func (a *API) offerOf(ctx context.Context, v projections.Server) (offer, error) {
	key := offerKey(v)
	a.catalogue.mu.Lock()
	known, ok := a.catalogue.offers[key]
	a.catalogue.mu.Unlock()
	if ok {
		return known, nil
	}
	body, err := a.log.Content(ctx, v.Catalogue.Content)
	if err != nil {
		return offer{}, fmt.Errorf("read the catalogue of %s: %w", v.Name, err)
	}
	made, err := makeOffer(body, v.Entry.Settings.Tools)
	if err != nil {
		return offer{}, fmt.Errorf("read the catalogue of %s: %w", v.Name, err)
	}
	a.catalogue.mu.Lock()
	defer a.catalogue.mu.Unlock()
	if a.catalogue.offers == nil {
		a.catalogue.offers = map[string]offer{}
	}
	a.catalogue.offers[key] = made
	return made, nil
}

// keep forgets the offers that none of the servers has any more.
func (c *catalogueCache) keep(servers []projections.Server) {
	current := make(map[string]bool, len(servers))
	for _, v := range servers {
		if v.Catalogue != nil {
			current[offerKey(v)] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.offers {
		if !current[key] {
			delete(c.offers, key)
		}
	}
}

func offerKey(v projections.Server) string {
	f := v.Entry.Settings.Tools
	if len(f.Allow)+len(f.Deny) == 0 {
		return v.Catalogue.Content
	}
	return v.Catalogue.Content + "\x00" + strings.Join(f.Allow, "\x00") + "\x01" + strings.Join(f.Deny, "\x00")
}

// sentTool is what of a tool, as a server sent it, is shown by name.
type sentTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// makeOffer renders the tools of a catalogue that the filter lets through. The
// schemas keep their bytes.
func makeOffer(catalogue []byte, filter events.ToolFilter) (offer, error) {
	var sent []sentTool
	if err := json.Unmarshal(catalogue, &sent); err != nil {
		return offer{}, err
	}
	o := offer{names: []string{}}
	for _, t := range sent {
		if !projections.Allowed(filter, t.Name) {
			continue
		}
		var s struct {
			Properties json.RawMessage `json:"properties"`
			Required   json.RawMessage `json:"required"`
		}
		// A schema that is no object has neither; it is shown all the same.
		_ = json.Unmarshal(t.InputSchema, &s)
		head, err := json.Marshal(struct {
			Name        string `json:"name"`
			Description string `json:"description"`
		}{t.Name, t.Description})
		if err != nil {
			return offer{}, err
		}
		if len(o.names) > 0 {
			o.tools = append(o.tools, ',')
		}
		o.names = append(o.names, t.Name)
		o.tools = append(o.tools, head[:len(head)-1]...)
		o.tools = append(o.tools, `,"parameters":`...)
		o.tools = append(o.tools, orElse(s.Properties, '{', "{}")...)
		o.tools = append(o.tools, `,"required":`...)
		o.tools = append(o.tools, orElse(s.Required, '[', "[]")...)
		o.tools = append(o.tools, `,"input_schema":`...)
		o.tools = append(o.tools, orElse(t.InputSchema, 0, "{}")...)
		o.tools = append(o.tools, '}')
	}
	return o, nil
}

// orElse returns raw if it is there and begins with first (0 for anything), else the
// substitute.
func orElse(raw json.RawMessage, first byte, substitute string) string {
	if len(raw) == 0 || (first != 0 && raw[0] != first) {
		return substitute
	}
	return string(raw)
}

// showTools gives a server as /api/tools has it, but for the tools themselves.
func showTools(v projections.Server, o offer) api.ServerTools {
	s := api.ServerTools{
		Name: v.Name, Server: v.Name, Status: api.ServerToolsStatusError, Description: v.Entry.Description,
		ToolsEnabled: len(o.names), FunctionNames: list(o.names), Tools: []api.Tool{},
		RequiresOauth: v.Entry.Settings.RequiresAuth || v.Needs == projections.NeedsLogin,
		State:         v.State, StateReason: v.Reason, Needs: v.Needs,
		ConfigKey: v.ConfigKey, Transport: string(v.Entry.Transport),
		VerifiedAt: api.NewTimestamp(v.VerifiedAt), Catalogue: catalogueInfo(v),
		Skip: showSkip(v), Gate: showGate(v),
	}
	switch {
	case v.Offered():
		s.Status = api.ServerToolsStatusOk
	case v.State == projections.StateDiscovering:
		s.Status = api.ServerToolsStatusLoading
	default:
		s.Error = v.Reason
	}
	return s
}
