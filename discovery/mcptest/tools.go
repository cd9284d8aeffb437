package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// The standing tools, which every fake has. The tools beside them are called
// tool-0001 and so on, and return their name.
//
//	echo      returns its arguments as text and as structuredContent
//	fail      returns a result with isError and the text "no such city"
//	refuse    is answered with the JSON-RPC error -32042 "refused", data {"n":9007199254740993}
//	wait      reports progress 0, makes the file of {"begun":"/path"}, and is never answered
//	steps     reports progress 1 to 3 of 3, then returns
//	environ   returns the names and values of the server's environment, and its arguments
//	exit      ends the server with code 7, unanswered
//	big       returns a text of {"bytes":N} bytes
//	change    announces that the list of tools changed, then returns
//	ask       asks the client for sampling, and returns the client's answer
const standing = `[
{"name":"echo","description":"Says it back","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer","maximum":9007199254740993}},"x-order":["text","n"]}},
{"name":"fail","inputSchema":{"type":"object"}},
{"name":"refuse","inputSchema":{"type":"object"}},
{"name":"wait","inputSchema":{"type":"object"}},
{"name":"steps","inputSchema":{"type":"object"}},
{"name":"environ","inputSchema":{"type":"object"}},
{"name":"exit","inputSchema":{"type":"object"}},
{"name":"big","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer"}}}},
{"name":"change","inputSchema":{"type":"object"}},
{"name":"ask","inputSchema":{"type":"object"}}
]`

// StandingTools is the number of tools every fake has.
const StandingTools = 10

func allTools(extra int) []json.RawMessage {
	var tools []json.RawMessage
	if err := json.Unmarshal([]byte(standing), &tools); err != nil {
		panic(err)
	}
	for i := range extra {
		tools = append(tools, json.RawMessage(fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, extraName(i+1))))
	}
	return tools
}

// message is a JSON-RPC message of any kind.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// mind is what both kinds of fake answer with.
type mind struct {
	era             Era
	tools, pageSize int
	discovered      bool
	// send delivers a message that is no answer, before the answer.
	send func(message)
	// ask sends a request to the client and returns its answer.
	ask func(message) message
}

// answer returns the answer to a request; ok is false if there is to be none.
func (m *mind) answer(req message) (reply message, ok bool) {
	reply = message{JSONRPC: "2.0", ID: req.ID}
	switch {
	case req.ID == nil:
		return reply, false
	case req.Method == "initialize":
		m.initialize(req, &reply)
	case req.Method == "server/discover":
		m.discover(&reply)
	case req.Method == "ping":
		reply.Result = json.RawMessage(`{}`)
	case req.Method == "tools/list":
		m.list(req, &reply)
	case req.Method == "tools/call":
		return reply, m.call(req, &reply)
	default:
		reply.Error = &rpcError{Code: -32601, Message: "Method not found"}
	}
	return reply, true
}

const capabilities = `{"tools":{"listChanged":true}}`

func (m *mind) initialize(req message, reply *message) {
	if m.era == Modern || m.era == Spoilt && m.discovered {
		reply.Error = &rpcError{Code: -32022, Message: "Unsupported protocol version", Data: json.RawMessage(`{"supported":["2026-07-28"]}`)}
		return
	}
	var params struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(req.Params, &params)
	reply.Result = json.RawMessage(fmt.Sprintf(
		`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"fake","version":"1.2.3","title":"A fake"},"instructions":"Ask kindly."}`,
		params.ProtocolVersion, capabilities))
}

func (m *mind) discover(reply *message) {
	m.discovered = true
	if m.era != Modern && m.era != Both {
		reply.Error = &rpcError{Code: -32601, Message: "Method not found"}
		return
	}
	reply.Result = json.RawMessage(fmt.Sprintf(
		`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":%s,"instructions":"Ask kindly.","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1.2.3","title":"A fake"}}}`,
		capabilities))
}

func (m *mind) list(req message, reply *message) {
	var params struct {
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(req.Params, &params)
	tools := allTools(m.tools)
	from := 0
	_, _ = fmt.Sscanf(params.Cursor, "after-%d", &from)
	to := len(tools)
	next := ""
	if m.pageSize > 0 && from+m.pageSize < to {
		to = from + m.pageSize
		next = fmt.Sprintf("after-%d", to)
	}
	reply.Result = marshal(struct {
		Tools      []json.RawMessage `json:"tools"`
		NextCursor string            `json:"nextCursor,omitempty"`
	}{tools[from:to], next})
}

func (m *mind) call(req message, reply *message) bool {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(req.Params, &params)
	switch params.Name {
	case "echo":
		reply.Result = json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":%s}`,
			marshal(string(params.Arguments)), orNull(params.Arguments)))
	case "fail":
		reply.Result = json.RawMessage(`{"content":[{"type":"text","text":"no such city"}],"isError":true}`)
	case "refuse":
		reply.Error = &rpcError{Code: -32042, Message: "refused", Data: json.RawMessage(`{"n":9007199254740993}`)}
	case "wait":
		m.progress(params.Meta.ProgressToken, 0)
		var by struct {
			Begun string `json:"begun"`
		}
		_ = json.Unmarshal(params.Arguments, &by)
		if by.Begun != "" {
			_ = os.WriteFile(by.Begun, nil, 0o600)
		}
		return false
	case "steps":
		for i := range 3 {
			m.progress(params.Meta.ProgressToken, i+1)
		}
		reply.Result = text("done")
	case "environ":
		reply.Result = text(strings.Join(append(os.Environ(), os.Args[1:]...), "\n"))
	case "exit":
		os.Exit(7)
	case "big":
		var n struct {
			Bytes int `json:"bytes"`
		}
		_ = json.Unmarshal(params.Arguments, &n)
		reply.Result = text(strings.Repeat("x", n.Bytes))
	case "change":
		m.send(message{JSONRPC: "2.0", Method: "notifications/tools/list_changed"})
		reply.Result = text("changed")
	case "ask":
		said := m.ask(message{
			JSONRPC: "2.0", ID: json.RawMessage(`"ask-1"`), Method: "sampling/createMessage",
			Params: json.RawMessage(`{"messages":[],"maxTokens":1}`),
		})
		reply.Result = text(string(marshal(said)))
	default:
		if !m.extra(params.Name) {
			reply.Error = &rpcError{Code: -32602, Message: "Unknown tool: " + params.Name}
			break
		}
		reply.Result = text(params.Name)
	}
	return true
}

// extra reports whether there is such a tool beside the standing ones.
func (m *mind) extra(name string) bool {
	var n int
	_, err := fmt.Sscanf(name, "tool-%d", &n)
	return err == nil && n >= 1 && n <= m.tools && name == extraName(n)
}

func extraName(n int) string { return fmt.Sprintf("tool-%04d", n) }

func (m *mind) progress(token json.RawMessage, step int) {
	if token == nil {
		return
	}
	m.send(message{JSONRPC: "2.0", Method: "notifications/progress", Params: json.RawMessage(fmt.Sprintf(
		`{"progressToken":%s,"progress":%d,"total":3,"message":"step %d"}`, token, step, step))})
}

func text(s string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, marshal(s)))
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`null`)
	}
	return raw
}

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
