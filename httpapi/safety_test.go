package httpapi_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpledger/httpapi"
	"mcpledger/httpapi/access"
)

const elsewhere = "203.0.113.9:4711"

// routes lists every operation of the contract with the role it asks for.
func routes(t *testing.T) (all []struct{ method, path, role string }) {
	t.Helper()
	for path, item := range contract().doc.Paths.Map() {
		for method, op := range item.Operations() {
			role, ok := op.Extensions["x-role"].(string)
			if !ok || !slices.Contains([]string{"open", "read", "call", "report", "operate"}, role) {
				t.Fatalf("%s %s asks for the role %v", method, path, op.Extensions["x-role"])
			}
			for _, p := range []string{"name", "id", "run_id", "replay_id", "tool", "file"} {
				path = strings.ReplaceAll(path, "{"+p+"}", "x")
			}
			if role != "open" && path == "/api/events/stream" {
				path += "?after=999999" // refused before it streams
			}
			all = append(all, struct{ method, path, role string }{method, path, role})
		}
	}
	return all
}

func TestEveryRouteAsksForItsRole(t *testing.T) {
	w := newWorld(t)
	secrets := map[access.Role]string{}
	for _, r := range access.Roles() {
		secrets[r] = w.token("token-"+string(r), r)
	}
	expired, secret, err := access.NewToken("late", []access.Role{access.Operate}, noon.Add(-time.Second))
	w.must(err)
	known, err := access.ReadTokens(w.dir)
	w.must(err)
	w.must(access.WriteTokens(w.dir, append(known, expired)))

	callers := map[string]struct {
		may []string
		how []asking
		// without says how a caller is refused: 401 without credentials that hold, else 403.
		without int
	}{
		"nobody on this machine": {[]string{"read", "call"}, nil, 401},
		"nobody elsewhere":       {nil, []asking{from(elsewhere)}, 401},
		"nobody behind a proxy":  {nil, []asking{header("X-Forwarded-For", "203.0.113.9")}, 401},
		"a wrong token":          {nil, []asking{bearer("mcpledger_wrong")}, 401},
		"an expired token":       {nil, []asking{bearer(secret)}, 401},
		"another scheme":         {nil, []asking{header("Authorization", "Basic "+w.operator)}, 401},
		"a cookie of no session": {[]string{"read", "call"}, []asking{header("Cookie", "mcpledger_session=x")}, 401},
		"the operator":           {[]string{"read", "call", "report", "operate"}, []asking{bearer(w.operator), from(elsewhere)}, 403},
	}
	for _, r := range access.Roles() {
		c := callers["the operator"]
		c.how = []asking{bearer(secrets[r]), from(elsewhere)}
		if r != access.Operate {
			c.may = []string{string(r)}
		}
		callers["the token of "+string(r)] = c
	}
	for who, c := range callers {
		for _, route := range routes(t) {
			a := w.ask(route.method, route.path, "", c.how...)
			refused := a.status == http.StatusUnauthorized || a.status == http.StatusForbidden
			allowed := route.role == "open" || slices.Contains(c.may, route.role)
			if allowed && refused {
				t.Errorf("%s may %s %s, but got %d", who, route.method, route.path, a.status)
			}
			if !allowed && a.status != c.without {
				t.Errorf("%s may not %s %s: got %d, want %d", who, route.method, route.path, a.status, c.without)
			}
			if a.status == http.StatusUnauthorized && a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s: 401 without WWW-Authenticate", route.method, route.path)
			}
		}
	}
	for _, s := range append(slices.Collect(mapValues(secrets)), w.operator, secret, "mcpledger_wrong") {
		if strings.Contains(w.logged.String(), s) {
			t.Error("a token is in the service's own log")
		}
	}
	if !strings.Contains(w.logged.String(), "access refused") {
		t.Error("refused access was not logged")
	}
}

func mapValues[K comparable, V any](m map[K]V) func(func(V) bool) {
	return func(yield func(V) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func TestWithRequireTokenNothingIsOpenButHealthAndTheSignIn(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.RequireToken = true })
	for _, route := range routes(t) {
		a := w.ask(route.method, route.path, "")
		if (a.status == http.StatusUnauthorized) != (route.role != "open") && route.path != "/api/session" {
			t.Errorf("%s %s (%s) answered %d to a stranger", route.method, route.path, route.role, a.status)
		}
	}
	w.get("/api/tools", bearer(w.operator)).is(http.StatusOK)
}

func TestTokensCountFromTheNextRequestOn(t *testing.T) {
	w := newWorld(t)
	secret := w.token("late", access.Read)
	w.get("/api/tools", bearer(secret), from(elsewhere)).is(http.StatusOK)
	w.must(access.WriteTokens(w.dir, nil))
	w.get("/api/tools", bearer(secret), from(elsewhere)).refused(http.StatusUnauthorized, "unauthenticated")

	secret = w.token("again", access.Read)
	w.get("/api/tools", bearer(secret), from(elsewhere)).is(http.StatusOK)
	// A file that breaks leaves the last good tokens in force.
	w.must(os.WriteFile(filepath.Join(w.dir, access.TokensFile), []byte("tokens: ["), 0o600))
	w.get("/api/tools", bearer(secret), from(elsewhere)).is(http.StatusOK)
	if !strings.Contains(w.logged.String(), "tokens not reloaded") {
		t.Error("nothing says that the file is broken")
	}
	w.clock.advance(25 * time.Hour)
	w.get("/api/tools", bearer(secret), from(elsewhere)).refused(http.StatusUnauthorized, "unauthenticated")
}

func TestANameThatWasReboundToThisMachineIsRefused(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.AllowedHosts = []string{"Ledger.Example"} })
	for host, allowed := range map[string]bool{
		"127.0.0.1:8132": true, "localhost": true, "LOCALHOST:80": true, "[::1]:8132": true, "[::1]": true, "localhost.:1": true,
		"127.9.9.9": true, "ledger.example:8132": true, "ledger.example": true,
		"evil.example": false, "evil.example:8132": false, "127.0.0.1.evil.example": false, "localhost.evil.example": false,
		"192.168.1.4:8132": false, "0.0.0.0": false, "": false, "sub.ledger.example": false,
	} {
		for _, path := range []string{"/api/tools", "/healthz", "/", "/nothing"} {
			a := w.get(path, calling(host), bearer(w.operator))
			if allowed != (a.status != http.StatusForbidden) {
				t.Errorf("%s as %q: %d", path, host, a.status)
			}
			if !allowed {
				a.refused(http.StatusForbidden, "host_not_allowed")
			}
		}
	}
}

func TestRefusedAccessIsLogged(t *testing.T) {
	w := newWorld(t)
	for code, how := range map[string]asking{
		"host_not_allowed": calling("evil.example"), "origin_not_allowed": header("Origin", "https://evil.example"),
		"unauthenticated": bearer("mcpledger_wrong"), "forbidden": bearer(w.token("reporter", access.Report)),
	} {
		w.get("/api/tools", how)
		if !strings.Contains(w.logged.String(), `code=`+code) {
			t.Errorf("a refusal as %s is not in the log:\n%s", code, w.logged)
		}
	}
}

func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) {
		c.AllowedOrigins = []string{"https://ops.example"}
		c.AllowedHosts = []string{"ledger.example"}
	})
	for origin, allowed := range map[string]bool{
		"http://127.0.0.1:8132": true, "http://localhost:3000": true, "https://ops.example": true,
		"http://ops.example": false, "https://ops.example:444": false, "https://evil.example": false, "null": false,
		"file://": false, "https://ops.example.evil.example": false, "http://ledger.example": false,
	} {
		a := w.get("/api/tools", header("Origin", origin))
		if !allowed {
			a.refused(http.StatusForbidden, "origin_not_allowed")
			continue
		}
		a.is(http.StatusOK)
		shared := a.header.Get("Access-Control-Allow-Origin")
		if want := origin == "https://ops.example"; want != (shared == origin) {
			t.Errorf("%s: Access-Control-Allow-Origin is %q", origin, shared)
		}
	}
	// Our own pages under a name that is allowed are no strangers.
	w.get("/api/tools", calling("ledger.example"), header("Origin", "https://ledger.example"), bearer(w.operator)).is(http.StatusOK)

	before := w.head()
	form := header("Content-Type", "application/x-www-form-urlencoded")
	w.ask(http.MethodPost, "/api/discover", "", form, header("Origin", "https://evil.example")).refused(http.StatusForbidden, "origin_not_allowed")
	want(t, "written", w.head(), before)
}

func TestBrowsersMayAskBeforehandForAnAllowedOrigin(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config) { c.AllowedOrigins = []string{"https://ops.example"} })
	r := []asking{header("Access-Control-Request-Method", "PUT")}
	a := w.ask(http.MethodOptions, "/api/servers/x/skip", "", append(r, header("Origin", "https://ops.example"))...)
	want(t, "status", a.status, http.StatusNoContent)
	if !strings.Contains(a.header.Get("Access-Control-Allow-Methods"), "PUT") {
		t.Errorf("allowed methods: %q", a.header.Get("Access-Control-Allow-Methods"))
	}
	a = w.ask(http.MethodOptions, "/api/servers/x/skip", "", append(r, header("Origin", "http://localhost:1"))...)
	want(t, "leave for another origin", a.header.Get("Access-Control-Allow-Origin"), "")
}

func TestSigningInGivesACookieThatOnlyOurOwnPagesMayWriteWith(t *testing.T) {
	w := newWorld(t)
	w.configure("weather")
	body := fmt.Sprintf(`{"token":%q}`, w.operator)
	w.ask(http.MethodPost, "/api/session", `{"token":"wrong"}`).refused(http.StatusUnauthorized, "unauthenticated")
	a := w.ask(http.MethodPost, "/api/session", body).is(http.StatusOK)
	want(t, "name", a.at("name"), "operator")
	cookie := a.header.Get("Set-Cookie")
	for _, attribute := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, attribute) {
			t.Errorf("the cookie lacks %s: %s", attribute, cookie)
		}
	}
	if strings.Contains(cookie, w.operator) {
		t.Error("the cookie holds the token itself")
	}
	pair, _, _ := strings.Cut(cookie, ";")
	session, own := header("Cookie", pair), header("Origin", "http://127.0.0.1:8132")
	want(t, "who", w.get("/api/session", session).at("name"), "operator")

	pin := func(how ...asking) answer {
		return w.ask(http.MethodPut, "/api/servers/weather/skip", `{}`, append(how, session)...)
	}
	pin(own).is(http.StatusOK)
	pin().refused(http.StatusForbidden, "origin_not_allowed")
	pin(header("Origin", "http://127.0.0.1:9999")).refused(http.StatusForbidden, "origin_not_allowed")
	pin(header("Origin", "http://localhost:8132")).refused(http.StatusForbidden, "origin_not_allowed")

	w.clock.advance(access.SessionLifetime)
	pin(own).refused(http.StatusUnauthorized, "unauthenticated")
}

// signIn asks as a page does on which somebody signed in with a token.
func (w *world) signIn(secret string) asking {
	w.Helper()
	a := w.ask(http.MethodPost, "/api/session", fmt.Sprintf(`{"token":%q}`, secret)).is(http.StatusOK)
	pair, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	return header("Cookie", pair)
}

func TestASessionEndsWithSigningOutAndWithItsToken(t *testing.T) {
	w := newWorld(t)
	own := header("Origin", "http://127.0.0.1:8132")
	session := w.signIn(w.operator)
	w.ask(http.MethodDelete, "/api/session", "", session, own).is(http.StatusNoContent)
	want(t, "after signing out", w.get("/api/session", session).at("name"), "")
	session = w.signIn(w.operator)
	w.ask(http.MethodDelete, "/api/session", "", session).is(http.StatusNoContent) // as curl does, without an origin
	want(t, "after signing out without a page", w.get("/api/session", session).at("name"), "")

	session = w.signIn(w.token("reader", access.Read))
	w.get("/api/tools", session, from(elsewhere)).is(http.StatusOK)
	w.must(access.WriteTokens(w.dir, nil))
	w.get("/api/tools", session, from(elsewhere)).refused(http.StatusUnauthorized, "unauthenticated")
}

func TestThePageIsServedUnderAPolicyThatLetsNothingElseIn(t *testing.T) {
	w := newWorld(t)
	page := w.get("/").is(http.StatusOK)
	policy := page.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s: %s", part, policy)
		}
	}
	want(t, "sniffing", page.header.Get("X-Content-Type-Options"), "nosniff")
	for _, s := range []string{"<script>", "<style", "onclick=", "http://", "https://"} {
		if contains(page.body, s) {
			t.Errorf("the page holds %q", s)
		}
	}
	for file, media := range map[string]string{
		"dashboard.js": "text/javascript; charset=utf-8", "dashboard.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		a := w.get("/dashboard/" + file).is(http.StatusOK)
		want(t, file, a.header.Get("Content-Type"), media)
		if !contains(page.body, "/dashboard/"+file) {
			t.Errorf("the page does not use %s", file)
		}
	}
	if contains(w.get("/dashboard/dashboard.js").body, "innerHTML") {
		t.Error("the script puts text into the page as HTML")
	}
}
