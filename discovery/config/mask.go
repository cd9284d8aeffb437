package config

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/tailscale/hujson"
)

// written returns an entry as JSON, its keys sorted, with what may be a secret
// masked by where it stands, however short. References stay, for they say where a
// secret comes from and not what it is.
func written(e *entry) json.RawMessage {
	b, err := json.Marshal(maskEntry(e.value))
	if err != nil {
		return nil // a config file holds nothing that JSON cannot
	}
	return b
}

func maskEntry(v hujson.Value) any {
	ms, _ := members(v)
	if ms == nil {
		return maskLeaves("", plain(v), maskValue)
	}
	all := make(map[string]any, len(ms))
	for _, m := range ms {
		value := plain(m.value)
		mask := maskSetting
		switch fieldOf(m.name) {
		case fieldEnv, fieldHeaders, fieldURL:
			mask = maskValue
		case fieldCommand, fieldCwd, fieldEnvFile, fieldType, fieldDescription:
			if s, ok := value.(string); ok {
				all[m.name] = s
				continue
			}
		case fieldArgs:
			if list, ok := value.([]any); ok {
				all[m.name] = maskArgs(list)
				continue
			}
			mask = maskValue
		}
		all[m.name] = maskLeaves(m.name, value, mask)
	}
	return all
}

// maskLeaves masks the strings of a value by mask; name is the member that holds it.
func maskLeaves(name string, value any, mask func(name, written string) string) any {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			value[key] = maskLeaves(key, v, mask)
		}
	case []any:
		for i, v := range value {
			value[i] = maskLeaves(name, v, mask)
		}
	case json.Number:
		if masked := mask(name, string(value)); masked != string(value) {
			return masked
		}
	case string:
		return mask(name, value)
	}
	return value
}

// maskSetting masks a string that is no value of a variable or header, such as a
// pattern or a client's own setting, only if its name or its look says that it is
// secret.
func maskSetting(name, written string) string {
	if isSensitive(name) || isRandom(written) {
		return maskValue(name, written)
	}
	return written
}

// maskValue masks what is secret in a value called name.
func maskValue(name, written string) string {
	sensitive := isSensitive(name)
	if u := splitURL(written); u.scheme != "" {
		return maskURL(u)
	}
	segments := parseTemplate(written)
	if len(segments) == 1 && segments[0].kind == literal {
		if scheme, rest, ok := cutScheme(written); ok {
			return scheme + " " + maskValue(name, rest)
		}
		if isHarmless(written, sensitive) && !(sensitive && isCommon(written)) {
			return written
		}
		return mark(name)
	}
	// Beside a reference a plain word is no secret: "Bearer ${TOKEN}".
	var b strings.Builder
	for _, seg := range segments {
		switch {
		case seg.optional && !isHarmless(seg.fallback, sensitive || isSensitive(seg.text)):
			b.WriteString(strings.TrimSuffix(seg.label(), "}") + ":-" + mark(seg.text) + "}")
		case seg.kind == unsupported, seg.kind == literal && !isHarmless(strings.TrimSpace(seg.text), false):
			b.WriteString(mark(name))
		default:
			b.WriteString(seg.written)
		}
	}
	return b.String()
}

// maskURL masks the credentials of a URL: userinfo, the values of its query, and
// segments of its path that look like tokens.
func maskURL(u urlParts) string {
	if user, password, ok := strings.Cut(u.userinfo, ":"); ok {
		u.userinfo = maskValue("user", user) + ":" + maskValue("password", password)
	} else if u.userinfo != "" {
		u.userinfo = maskValue("password", u.userinfo)
	}
	for i, p := range u.query {
		if p.value == "" && !isWordy(p.name) {
			u.query[i].name = mark("query")
		}
		u.query[i].value = maskValue(p.name, p.value)
	}
	for _, segment := range secretSegments(u.path) {
		u.path = strings.Replace(u.path, segment, mark("path"), 1)
	}
	u.fragment = maskValue("fragment", u.fragment)
	return u.String()
}

// argument is one argument of a command line: prefix and value make it up. The
// value may stand under a name.
type argument struct {
	prefix string
	name   string // empty: none
	value  string
}

var (
	assignment = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.-]*)=`)
	headerLine = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]+):( ?)`)
)

// classifyArgs tells which arguments carry the value of a flag, a variable or a
// header that may be secret: --api-key=VALUE, --token VALUE, -e NAME=VALUE,
// --header "Name: VALUE".
func classifyArgs(args []string) []argument {
	all := make([]argument, 0, len(args))
	before := ""
	for _, arg := range args {
		all = append(all, classifyArg(before, arg))
		before = arg
	}
	return all
}

func classifyArg(before, arg string) argument {
	flag, value, joined := strings.Cut(arg, "=")
	switch {
	case strings.HasPrefix(arg, "-") && joined:
		if isSensitive(flag) {
			return argument{prefix: flag + "=", name: strings.TrimLeft(flag, "-"), value: value}
		}
		a := splitArgument(flag, value)
		a.prefix = flag + "=" + a.prefix
		return a
	case strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && !strings.HasPrefix(before, "--no-") &&
		isSensitive(before) && !strings.HasPrefix(arg, "--"):
		return argument{name: strings.TrimLeft(before, "-"), value: arg}
	}
	return splitArgument(before, arg)
}

// splitArgument parts NAME=VALUE and "Name: VALUE", where the flag before says that
// it is a header, or the name or the space that it is one.
func splitArgument(flag, arg string) argument {
	if m := assignment.FindStringSubmatch(arg); m != nil {
		return argument{prefix: m[0], name: m[1], value: arg[len(m[0]):]}
	}
	m := headerLine.FindStringSubmatch(arg)
	if m != nil && (flag == "--header" || flag == "-H" || m[2] != "" || isSensitive(m[1])) && !strings.HasPrefix(arg[len(m[0]):], "//") {
		return argument{prefix: m[0], name: m[1], value: arg[len(m[0]):]}
	}
	return argument{value: arg}
}

// maskArgs masks the values that a list of arguments carries.
func maskArgs(list []any) any {
	args := make([]string, len(list))
	for i, v := range list {
		s, ok := v.(string)
		if !ok {
			return maskLeaves("args", list, maskValue)
		}
		args[i] = s
	}
	masked := make([]any, len(list))
	for i, a := range classifyArgs(args) {
		masked[i] = a.prefix + a.value
		if u := splitURL(a.value); a.name != "" {
			masked[i] = a.prefix + maskValue(a.name, a.value)
		} else if u.scheme != "" {
			masked[i] = maskURL(u)
		}
	}
	return masked
}
