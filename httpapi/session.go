package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"mcpledger/httpapi/access"
	"mcpledger/httpapi/api"
)

// SignIn answers POST /api/session: whoever knows a token gets a cookie that stands
// for it, which scripts cannot read and other sites cannot have sent along.
func (a *API) SignIn(ctx context.Context, r api.SignInRequestObject) (api.SignInResponseObject, error) {
	now := a.now()
	id, hash, ok := a.keys.Identify(ctx, r.Body.Token, now)
	if !ok {
		return nil, refuse(codeUnauthenticated, "the token is not known, or has expired")
	}
	return signedIn{identity: id, cookie: a.sessions.Open(hash, now)}, nil
}

// signedIn is an identity with its new session.
type signedIn struct {
	identity access.Identity
	cookie   string
}

// VisitSignInResponse writes the identity and sets the cookie.
func (s signedIn) VisitSignInResponse(w http.ResponseWriter) error {
	body, err := json.Marshal(showIdentity(s.identity))
	if err != nil {
		return err
	}
	setSession(w, s.cookie, int(access.SessionLifetime.Seconds()))
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return err
}

func setSession(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// WhoAmI answers GET /api/session.
func (a *API) WhoAmI(ctx context.Context, _ api.WhoAmIRequestObject) (api.WhoAmIResponseObject, error) {
	return api.WhoAmI200JSONResponse(showIdentity(callerOf(ctx).identity)), nil
}

// showIdentity lists the roles one by one: who may operate may do everything.
func showIdentity(i access.Identity) api.Identity {
	shown := api.Identity{Name: i.Name, Roles: []api.IdentityRoles{}}
	for _, r := range access.Roles() {
		if i.May(r) {
			shown.Roles = append(shown.Roles, api.IdentityRoles(r))
		}
	}
	return shown
}

// SignOut answers DELETE /api/session.
func (a *API) SignOut(ctx context.Context, _ api.SignOutRequestObject) (api.SignOutResponseObject, error) {
	if id := callerOf(ctx).session; id != "" {
		a.sessions.Close(id)
	}
	return signedOut{}, nil
}

// signedOut takes the cookie back.
type signedOut struct{}

// VisitSignOutResponse writes the answer.
func (signedOut) VisitSignOutResponse(w http.ResponseWriter) error {
	setSession(w, "", -1)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
