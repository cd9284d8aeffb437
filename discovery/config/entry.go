package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
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

func (e *entry) fault(at int, detail string) {
	p := e.doc.problemAt(at, detail)
	p.Server = e.name
	e.faults = append(e.faults, p)
}

func (e *entry) warn(at int, detail string) {
	p := e.doc.problemAt(at, detail)
	p.Server = e.name
	e.warnings = append(e.warnings, p)
}

// object returns the members of a value that must be an object. Of a name that
// stands there twice the last one holds, with a warning.
func (e *entry) object(v hujson.Value, what string) []member {
	ms, repeated := members(v)
	if ms == nil {
		e.fault(v.StartOffset, fmt.Sprintf("%s must be an object, not %s", what, kindName(v)))
	}
	for _, r := range repeated {
		e.warn(r.at, fmt.Sprintf("%s is there twice: the last one holds", quoted(r.name)))
	}
	return ms
}

func (e *entry) text(m member) string {
	if m.value.Value.Kind() != '"' {
		e.fault(m.value.StartOffset, fmt.Sprintf("%q must be a string, not %s", m.name, kindName(m.value)))
		return ""
	}
	s := text(m.value)
	if strings.ContainsRune(s, 0) {
		e.fault(m.value.StartOffset, fmt.Sprintf("%q holds a zero byte: remove it", m.name))
	}
	return s
}

func (e *entry) truth(m member) bool {
	switch m.value.Value.Kind() {
	case 't':
		return true
	case 'f':
	default:
		e.fault(m.value.StartOffset, fmt.Sprintf("%q must be true or false, not %s", m.name, kindName(m.value)))
	}
	return false
}

// texts reads a list of strings.
func (e *entry) texts(m member) []string {
	list, ok := m.value.Value.(*hujson.Array)
	if !ok {
		e.fault(m.value.StartOffset, fmt.Sprintf(`%q must be a list of strings such as ["a", "b"], not %s`, m.name, kindName(m.value)))
		return nil
	}
	var all []string
	for i, v := range list.Elements {
		all = append(all, e.text(member{name: fmt.Sprintf("%s[%d]", m.name, i), value: v}))
	}
	return all
}

// pairs reads an object of strings. Numbers and truth values count as their
// spelling, as other clients take them; a null as absent.
func (e *entry) pairs(m member) map[string]string {
	all := map[string]string{}
	for _, v := range e.object(m.value, fmt.Sprintf("%q", m.name)) {
		name := m.name + "." + v.name
		switch v.value.Value.Kind() {
		case 'n':
		case '0', 't', 'f':
			all[v.name] = text(v.value)
		default:
			all[v.name] = e.text(member{name: name, value: v.value})
		}
		if v.name == "" || strings.ContainsAny(v.name, "=\x00\r\n") {
			e.fault(v.at, fmt.Sprintf("%s cannot be a name in %q", quoted(v.name), m.name))
		}
	}
	return all
}

var headerName = regexp.MustCompile("^[0-9A-Za-z!#$%&'*+.^_`|~-]+$")

// lowered gives headers their names in lower case. Two that differ in case alone are
// one header; which of them holds would be chance.
func (e *entry) lowered(m member, headers map[string]string) map[string]string {
	lowered := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		lower := strings.ToLower(name)
		if _, twice := lowered[lower]; twice {
			e.fault(m.at, fmt.Sprintf("%q has the header %s twice: keep one", m.name, quoted(lower)))
		}
		if !headerName.MatchString(name) {
			e.fault(m.at, fmt.Sprintf("%s cannot be the name of a header", quoted(name)))
		}
		lowered[lower] = headers[name]
	}
	return lowered
}

// kindName names the kind of a JSON value, with its article.
func kindName(v hujson.Value) string {
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "true or false"
	}
}
