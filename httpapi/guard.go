package httpapi

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"mcpledger/httpapi/access"
	"mcpledger/projections"
)

// sessionCookie is the name of the cookie that stands for a token.
const sessionCookie = "mcpledger_session"

// caller is what handlers know of a request beyond its parameters.
type caller struct {
	identity access.Identity
	accept   string // the Accept header
	session  string // the session cookie's value, "" without one
	query    url.Values
	allowed  func() bool // see still; nil for one who did not pass a guard
}

type callerKey struct{}

// callerOf returns who asks. A context that did not pass a guard has a stranger.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// actor names the caller in events: the token's name, access.LocalName for a caller
// on this machine without one.
func (c caller) actor() string { return cmp.Or(c.identity.Name, access.LocalName) }

// still reports whether the caller may still do what the request was let in for. A token
// may be revoked or expire, and a session end, while an answer is being streamed.
func (c caller) still() bool { return c.allowed == nil || c.allowed() }

// guard checks what the contract says of an operation before its handler runs.
func (a *API) guard(op operation) echo.MiddlewareFunc {
	slots, full, maxBody := a.slots, codeBusy, a.maxBody
	switch {
	case op.ID == "callTool":
		slots, full, maxBody = a.callSlots, codeTooManyCalls, max(a.maxBody, maxCallBody)
	case op.Long:
		slots = a.longSlots
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			default:
				return refuse(full, "%d requests are being answered", cap(slots))
			}
			r := c.Request()
			who, err := a.authorize(r, op.Role)
			if err != nil {
				return err
			}
			if who.query, err = op.checkQuery(r.URL.RawQuery); err != nil {
				return err
			}
			if err := op.checkMediaType(r); err != nil {
				return err
			}
			if op.Role != "" && op.ID != "getMetrics" && !a.ready() {
				return projections.ErrCatchingUp
			}
			r.Body = http.MaxBytesReader(c.Response(), r.Body, maxBody)
			if err := op.checkNoBody(r.Body); err != nil {
				return err
			}
			ctx := context.WithValue(r.Context(), callerKey{}, who)
			if op.Long {
				// A writer that has no deadline has none to lift.
				_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Time{})
			} else {
				var done context.CancelFunc
				ctx, done = context.WithTimeout(ctx, requestTimeout)
				defer done()
			}
			c.SetRequest(r.WithContext(ctx))
			return next(c)
		}
	}
}

// authorize finds out who asks and whether they have the role; "" asks for none.
func (a *API) authorize(r *http.Request, role access.Role) (caller, error) {
	who, err := a.identify(r)
	who.allowed = func() bool {
		now, err := a.identify(r)
		return role == "" || err == nil && now.identity.May(role)
	}
	switch {
	case role == "":
		return who, nil
	case err != nil:
		return caller{}, err
	case who.identity.May(role):
		return who, nil
	case who.identity.Name == "":
		return caller{}, refuse(codeUnauthenticated, "the role %q is needed; the operator's token is in operator.token of the data folder", role)
	}
	return caller{}, refuse(codeForbidden, "the token %q has not the role %q", who.identity.Name, role)
}

// identify returns who a request says it comes from. Credentials that do not hold
// are an error, but for a cookie, which may be left from an earlier start. Together
// with an error the caller has no roles, and yet its session, which it may end.
func (a *API) identify(r *http.Request) (caller, error) {
	who := caller{accept: r.Header.Get("Accept")}
	now := a.now()
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, secret, _ := strings.Cut(header, " ")
		id, _, ok := a.keys.Identify(r.Context(), strings.TrimSpace(secret), now)
		if !strings.EqualFold(scheme, "Bearer") || !ok {
			return who, refuse(codeUnauthenticated, "the bearer token is not known, or has expired")
		}
		who.identity = id
		return who, nil
	}
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		if hash, ok := a.sessions.Token(cookie.Value, now); ok {
			who.session = cookie.Value
			if id, ok := a.keys.Lookup(r.Context(), hash, now); ok {
				// Any page on this machine, whatever its port, makes the browser send the
				// cookie; only our own may write with it.
				if r.Method != http.MethodGet && !sameOrigin(r) {
					return who, refuse(codeOriginNotAllowed, "a session may be used for this from the dashboard's own pages only")
				}
				who.identity = id
				return who, nil
			}
		}
	}
	if !a.requireToken && fromHere(r) {
		who.identity.Roles = []access.Role{access.Read, access.Call}
	}
	return who, nil
}

// checkQuery returns the query's parameters if the operation knows them all and each
// has one value that it takes.
func (op operation) checkQuery(raw string) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, refuse(codeInvalidParameter, "the query cannot be read: percent-encode what is not a letter, a digit or one of -._~")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		s, known := op.Params[name]
		if !known {
			return nil, refuse(codeUnknownParameter, "%q is no parameter of this path", name)
		}
		if n := len(query[name]); n > 1 {
			return nil, refuse(codeInvalidParameter, "%s is given %d times", name, n)
		}
		if wrong := s.check(query.Get(name)); wrong != "" {
			return nil, refuse(codeOfParameter(name), "%s %s", name, wrong)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(op.Params)) {
		if op.Params[name].Required && !query.Has(name) {
			return nil, refuse(codeInvalidParameter, "%s is needed", name)
		}
	}
	if endsBeforeItBegins(query) {
		return nil, refuse(codeInvalidParameter, "until lies before since, so there is nothing between them")
	}
	return query, nil
}

// endsBeforeItBegins reports whether a checked query asks for a span of time that there
// is not.
func endsBeforeItBegins(query url.Values) bool {
	since, err := time.Parse(time.RFC3339, query.Get("since"))
	until, errUntil := time.Parse(time.RFC3339, query.Get("until"))
	return err == nil && errUntil == nil && until.Before(since)
}

func codeOfParameter(name string) code {
	switch name {
	case "limit":
		return codeInvalidLimit
	case "cursor":
		return codeInvalidCursor
	case "at":
		return codeInvalidAt
	}
	return codeInvalidParameter
}

// ready reports whether questions about servers can be answered.
func (a *API) ready() bool { return a.engine.Ready() && a.configured() }

// yamlAliases are names of application/yaml from before it was registered (RFC 9512).
var yamlAliases = []string{"application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml"}

// checkMediaType refuses a write whose body is anything but JSON or what else the
// operation takes. That also keeps out forms, which pages elsewhere may send without
// asking.
func (op operation) checkMediaType(r *http.Request) error {
	if r.Method == http.MethodGet {
		return nil
	}
	header := r.Header.Get("Content-Type")
	if header == "" && r.ContentLength == 0 {
		return nil
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refuse(codeMediaType, "send the body as it is, not as %s", coding)
	}
	media, _, err := mime.ParseMediaType(header)
	if slices.Contains(yamlAliases, media) {
		media = "application/yaml"
	}
	if err == nil && (media == "application/json" || slices.Contains(op.MediaTypes, media)) {
		r.Header.Set("Content-Type", media) // in lower case, as the generated code compares it
		return nil
	}
	return refuse(codeMediaType, "send %s", cmp.Or(strings.Join(op.MediaTypes, " or "), "application/json"))
}

// checkNoBody refuses a body that the operation would not look at. An empty object
// says nothing, so it may be there.
func (op operation) checkNoBody(body io.Reader) error {
	if len(op.MediaTypes) > 0 {
		return nil
	}
	const more = 16 // white space around an empty object
	start, err := io.ReadAll(io.LimitReader(body, more))
	if said := strings.Join(strings.Fields(string(start)), ""); err != nil || len(start) == more || said != "" && said != "{}" {
		return refuse(codeBadBody, "this operation takes no body")
	}
	return nil
}

// recovered turns a panic into a problem. The panic that means "cut the connection"
// goes on.
func (a *API) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if abort, ok := p.(error); ok && errors.Is(abort, http.ErrAbortHandler) {
				panic(p)
			}
			r := c.Request()
			a.logger.ErrorContext(r.Context(), "handler panicked", slog.String("method", r.Method),
				slog.String("path", r.URL.Path), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = refuse(codeInternal, "the service's own log says more")
		}()
		return next(c)
	}
}
