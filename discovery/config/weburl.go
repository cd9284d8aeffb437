package config

import "strings"

// urlParts are the parts of a URL as written, so that variables in it, which would
// not parse, stay where they are.
type urlParts struct {
	scheme   string // empty: no URL
	userinfo string // before "@"
	host     string // with the port
	path     string
	query    []queryPair
	fragment string
}

type queryPair struct{ name, value string }

// splitURL takes s apart. What has no "://" is no URL; its scheme is empty.
func splitURL(s string) urlParts {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme == "" || strings.ContainsAny(scheme, " /?#{}") {
		return urlParts{}
	}
	u := urlParts{scheme: scheme}
	rest, u.fragment, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	if query != "" {
		for part := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(part, "=")
			u.query = append(u.query, queryPair{name, value})
		}
	}
	authority := rest
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, u.path = rest[:i], rest[i:]
	}
	u.host = authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		u.userinfo, u.host = authority[:i], authority[i+1:]
	}
	return u
}

// String puts the parts together again.
func (u urlParts) String() string {
	var b strings.Builder
	b.WriteString(u.scheme + "://")
	if u.userinfo != "" {
		b.WriteString(u.userinfo + "@")
	}
	b.WriteString(u.host + u.path)
	for i, p := range u.query {
		b.WriteString([]string{"?", "&"}[min(i, 1)] + p.name)
		if p.value != "" {
			b.WriteString("=" + p.value)
		}
	}
	if u.fragment != "" {
		b.WriteString("#" + u.fragment)
	}
	return b.String()
}
