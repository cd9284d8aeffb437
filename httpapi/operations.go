package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/httpapi/dashboard"
)

// GetHealthz answers GET /healthz.
func (a *API) GetHealthz(context.Context, api.GetHealthzRequestObject) (api.GetHealthzResponseObject, error) {
	return api.GetHealthz200JSONResponse{Alive: true}, nil
}

// GetReadyz answers GET /readyz.
func (a *API) GetReadyz(ctx context.Context, _ api.GetReadyzRequestObject) (api.GetReadyzResponseObject, error) {
	head, err := a.log.Head(ctx)
	state := api.Readiness{Sequence: head.Sequence, Head: head.String()}
	unwritable := a.unwritable()
	state.Writable = unwritable == ""
	switch {
	case err != nil:
		state.Reason, state.Head = "the log cannot be read", ""
	case a.draining.Err() != nil:
		state.Reason = "the service is stopping"
	case !a.engine.Ready():
		state.Reason = "the folds have not reached the head of the log yet"
	case !a.configured():
		state.Reason = "the config is not in force yet"
	default:
		state.Ready, state.Reason = true, unwritable
		return api.GetReadyz200JSONResponse(state), nil
	}
	return api.GetReadyz503JSONResponse(state), nil
}

// unwritable says why the log cannot be written, "" when it can. Anybody may read it,
// so it holds no words of the error, which may name files.
func (a *API) unwritable() string {
	log, tells := a.log.(writeState)
	if !tells {
		return ""
	}
	switch err := log.Unavailable(); {
	case err == nil:
		return ""
	case errors.Is(err, events.ErrCorrupt):
		return "the log is damaged and cannot be written; the service's own log says more"
	}
	return "the log cannot be written: the disk is full or refuses writes; the service's own log says more"
}

// GetOpenAPI answers GET /openapi.json.
func (a *API) GetOpenAPI(context.Context, api.GetOpenAPIRequestObject) (api.GetOpenAPIResponseObject, error) {
	return document(a.contract.json), nil
}

// document is the contract as JSON.
type document []byte

// VisitGetOpenAPIResponse writes the document.
func (d document) VisitGetOpenAPIResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(d)
	return err
}

// GetDashboard answers GET /.
func (a *API) GetDashboard(context.Context, api.GetDashboardRequestObject) (api.GetDashboardResponseObject, error) {
	return asset{dashboard.Page()}, nil
}

// GetDashboardFile answers GET /dashboard/{file}.
func (a *API) GetDashboardFile(_ context.Context, r api.GetDashboardFileRequestObject) (api.GetDashboardFileResponseObject, error) {
	f, ok := dashboard.Open(r.File)
	if !ok {
		return nil, refuse(codeNotFound, "the dashboard has no such file")
	}
	return asset{f}, nil
}

// asset is a file of the dashboard. Nothing but its own files and the API may be
// loaded by a page, and no page elsewhere may frame it.
type asset struct{ dashboard.File }

func (s asset) write(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("Content-Type", s.MediaType)
	h.Set("Content-Security-Policy", dashboard.Policy)
	h.Set("Cache-Control", "no-cache")
	_, err := bytes.NewReader(s.Body).WriteTo(w)
	return err
}

// VisitGetDashboardResponse writes the page.
func (s asset) VisitGetDashboardResponse(w http.ResponseWriter) error { return s.write(w) }

// VisitGetDashboardFileResponse writes the file.
func (s asset) VisitGetDashboardFileResponse(w http.ResponseWriter) error { return s.write(w) }
