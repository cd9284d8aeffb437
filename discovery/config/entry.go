package config

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/tailscale/hujson"

	"mcpledger/events"
)

// The fields of an entry, by our own names for them.
const (
	fieldCommand     = "command"
	fieldArgs        = "args"
	fieldEnv         = "env"
	fieldEnvFile     = "envFile"
	fieldCwd         = "cwd"
	fieldURL         = "url"
	fieldHeaders     = "headers"
	fieldType        = "type"
	fieldDisabled    = "disabled"
	fieldEnabled     = "enabled"
	fieldDescription = "description"
	fieldOAuth       = "oauth"
	fieldOwn         = "mcpledger"
	fieldAllow       = "includeTools"
	fieldDeny        = "excludeTools"
	fieldForeign     = "" // known, of other clients, without a meaning here
	fieldUnknown     = "?"
)

// fields has every known name of a field, of all clients whose files are read. A
// timeout is not taken over: some clients mean seconds by it and some milliseconds;
// ours are under mcpledger.timeouts.
var fields = map[string]string{
	"command": fieldCommand,
	"args":    fieldArgs,
	"env":     fieldEnv,
	"envFile": fieldEnvFile, "env_file": fieldEnvFile,
	"cwd": fieldCwd, "working_dir": fieldCwd, "workingDir": fieldCwd, "workingDirectory": fieldCwd,
	"url": fieldURL, "serverUrl": fieldURL, "httpUrl": fieldURL,
	"headers": fieldHeaders,
	"type":    fieldType, "transport": fieldType, "protocol": fieldType, "transportType": fieldType,
	"disabled": fieldDisabled, "enabled": fieldEnabled, "isActive": fieldEnabled,
	"description": fieldDescription,
	"oauth":       fieldOAuth,
	"mcpledger":   fieldOwn,
	"tools":       fieldAllow, "includeTools": fieldAllow, "allowedTools": fieldAllow,
	"excludeTools": fieldDeny, "disabledTools": fieldDeny,

	"alwaysAllow": fieldForeign, "autoApprove": fieldForeign, "trust": fieldForeign, "timeout": fieldForeign,
	"name": fieldForeign, "id": fieldForeign, "version": fieldForeign, "gallery": fieldForeign, "dev": fieldForeign,
	"icon": fieldForeign, "iconUrl": fieldForeign, "icons": fieldForeign, "tags": fieldForeign,
	"$schema": fieldForeign, "comment": fieldForeign,
	"auth": fieldForeign, "authProviderType": fieldForeign, "watchPaths": fieldForeign, "networkTimeout": fieldForeign,
	"restart": fieldForeign, "note": fieldForeign, "notes": fieldForeign, "sandboxEnabled": fieldForeign,
}

// fieldOf returns our name for a field.
func fieldOf(name string) string {
	if field, known := fields[name]; known {
		return field
	}
	if strings.HasPrefix(name, "_") || strings.HasPrefix(name, "//") { // a comment, by custom
		return fieldForeign
	}
	return fieldUnknown
}

// entry is one server's entry as written, before anything is expanded.
type entry struct {
	name  events.ServerName
	doc   *document
	value hujson.Value

	transport   events.Transport
	command     string
	args        []string
	env         map[string]string
	envFile     string
	cwd         string
	url         string
	headers     map[string]string
	oauth       any // as JSON; nil: none
	description string
	disabled    bool
	timeouts    Timeouts
	inheritEnv  []string
	era         string
	settings    events.Settings

	given    map[string]string // our name of a field -> its name in the file
	faults   []events.ConfigProblem
	warnings []events.ConfigProblem
}

// parseEntry reads an entry. What is wrong with it is in faults.
func parseEntry(d *document, m member) *entry {
	e := &entry{name: events.ServerName(m.name), doc: d, value: m.value, given: map[string]string{}}
	ms := e.object(m.value, "the entry")
	for _, m := range ms {
		e.readField(m)
	}
	if len(e.faults) == 0 {
		e.decideTransport()
	}
	return e
}

func (e *entry) readField(m member) {
	field := fieldOf(m.name)
	kind := m.value.Value.Kind()
	if kind == 'n' || field == fieldForeign || (field == fieldAllow || field == fieldDeny) && kind != '[' {
		return
	}
	if other, twice := e.given[field]; twice && field != fieldUnknown {
		e.fault(m.at, fmt.Sprintf("%q and %q mean the same: keep one", other, m.name))
		return
	}
	e.given[field] = m.name
	switch field {
	case fieldCommand:
		e.command = e.text(m)
	case fieldArgs:
		e.args = e.texts(m)
	case fieldEnv:
		e.env = e.pairs(m)
	case fieldEnvFile:
		e.envFile = e.text(m)
	case fieldCwd:
		e.cwd = e.text(m)
	case fieldURL:
		e.url = e.text(m)
	case fieldHeaders:
		e.headers = e.lowered(m, e.pairs(m))
	case fieldType:
		e.readType(m)
	case fieldDisabled:
		e.disabled = e.disabled || e.truth(m)
	case fieldEnabled:
		e.disabled = e.disabled || !e.truth(m)
	case fieldDescription:
		e.description = e.text(m)
	case fieldOAuth:
		e.oauth = plain(m.value)
		e.settings.RequiresAuth = e.oauth != false
	case fieldOwn:
		e.readOwn(m)
	case fieldAllow:
		e.settings.Tools.Allow = append(e.settings.Tools.Allow, e.patterns(m)...)
	case fieldDeny:
		e.settings.Tools.Deny = append(e.settings.Tools.Deny, e.patterns(m)...)
	default:
		e.warn(m.at, fmt.Sprintf("the field %s is not known and has no effect", quoted(m.name)))
	}
}

// readType reads the transport. Clients spell it in many ways.
func (e *entry) readType(m member) {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(e.text(m))) {
	case "":
	case "stdio":
		e.transport = events.TransportStdio
	case "http", "streamablehttp":
		e.transport = events.TransportHTTP
	case "sse":
		e.transport = events.TransportSSE
	default:
		e.fault(m.value.StartOffset, fmt.Sprintf(`%q is %s: use "stdio", "http" or "sse"`, m.name, quoted(e.text(m))))
	}
}

// decideTransport infers the transport where the entry does not name it, and checks
// that the entry has what it needs. A URL is taken for streamable HTTP unless its
// path ends in /sse.
func (e *entry) decideTransport() {
	at := e.value.StartOffset
	switch {
	case e.command == "" && e.url == "":
		e.fault(at, `it has neither "command" nor "url": give "command" for a program to start, or "url" for a server to reach over HTTP`)
	case e.command != "" && e.url != "":
		e.fault(at, fmt.Sprintf(`it has both "command" and %q: keep the one that applies`, e.given[fieldURL]))
	case e.command != "" && cmp.Or(e.transport, events.TransportStdio) != events.TransportStdio:
		e.fault(at, fmt.Sprintf(`%q is %q, which needs "url" instead of "command"`, e.given[fieldType], e.transport))
	case e.url != "" && e.transport == events.TransportStdio:
		e.fault(at, fmt.Sprintf(`%q is "stdio", which needs "command" instead of %q`, e.given[fieldType], e.given[fieldURL]))
	case e.transport != "":
	case e.command != "":
		e.transport = events.TransportStdio
	case e.given[fieldURL] != "httpUrl" && strings.HasSuffix(strings.TrimSuffix(splitURL(e.url).path, "/"), "/sse"):
		e.transport = events.TransportSSE
	default:
		e.transport = events.TransportHTTP
	}
}

// checkURL reports what is wrong with an expanded URL, without quoting it.
func checkURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return `"url" is no HTTP address: write one that starts with http:// or https:// and names a host`
	}
	return ""
}
