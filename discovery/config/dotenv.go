package config

import (
	"fmt"
	"strings"
)

// parseDotenv reads the lines of an envFile: NAME=value, an "export " before it
// allowed; blank lines and those that begin with # are passed over. A value in
// single quotes is taken as it is, one in double quotes knows \n, \r, \t, \", \\ and
// \$; both may span lines. Without quotes it ends before " #" and is trimmed.
// Nothing is expanded. The error names the line, never its content.
func parseDotenv(src string) (map[string]string, error) {
	vars := map[string]string{}
	src = strings.ReplaceAll(src, "\r\n", "\n")
	for line := 1; src != ""; {
		text, rest, _ := strings.Cut(src, "\n")
		trimmed := strings.TrimSpace(text)
		if trimmed == "" || trimmed[0] == '#' {
			src = rest
			line++
			continue
		}
		name, value, ok := strings.Cut(src, "=")
		name = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), "export "))
		if !ok || !variableName.MatchString(name) {
			return nil, fmt.Errorf("line %d is no NAME=value", line)
		}
		parsed, taken, err := dotenvValue(value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		vars[name] = parsed
		line += strings.Count(value[:taken], "\n")
		src = value[taken:]
	}
	return vars, nil
}

// dotenvValue reads what follows "=" and returns how many bytes it took, the line
// break included.
func dotenvValue(s string) (value string, taken int, err error) {
	lead := len(s) - len(strings.TrimLeft(s, " \t"))
	if lead < len(s) && (s[lead] == '"' || s[lead] == '\'') {
		quote := s[lead]
		end := quoteEnd(s, lead)
		if end < 0 {
			return "", 0, fmt.Errorf("a value has no closing %c", quote)
		}
		after, _, _ := strings.Cut(s[end+1:], "\n")
		if t := strings.TrimSpace(after); t != "" && t[0] != '#' {
			return "", 0, fmt.Errorf("there is more after the closing %c", quote)
		}
		value = s[lead+1 : end]
		if quote == '"' {
			value = dotenvEscapes.Replace(value)
		}
		return value, min(len(s), end+1+len(after)+1), nil
	}
	line, _, _ := strings.Cut(s, "\n")
	taken = min(len(s), len(line)+1)
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
			break
		}
	}
	return strings.TrimSpace(line), taken, nil
}

var dotenvEscapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\$`, "$")

// quoteEnd returns the index of the quote that closes the one at s[i], -1 if none
// does.
func quoteEnd(s string, i int) int {
	for j := i + 1; j < len(s); j++ {
		switch {
		case s[j] == s[i]:
			return j
		case s[j] == '\\' && s[i] == '"':
			j++
		}
	}
	return -1
}
