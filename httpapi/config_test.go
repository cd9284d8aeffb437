package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"mcpledger/events"
)

func TestConfigTellsFilesAndWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	w.append("", events.ConfigLoaded{Files: []string{"/etc/mcp.json"}, Warnings: []events.ConfigProblem{
		{File: "/etc/mcp.json", Line: 3, Column: 7, Server: "a", Detail: "unknown field"},
	}})
	w.configure("a", func(d *events.ServerConfigured) {
		d.Problem = &events.EntryProblem{Code: events.ProblemMalformed, Detail: "neither command nor url", Line: 5, Column: 12}
	})
	w.append("", events.ConfigRejected{ConfigProblem: events.ConfigProblem{File: "/etc/mcp.json", Line: 9, Detail: "unexpected }"}})
	a := w.get("/api/config").is(http.StatusOK)
	want(t, "file", a.at("files", 0), "/etc/mcp.json")
	want(t, "loaded", a.at("loaded_at"), "2026-03-04T12:00:00.000Z")
	want(t, "rejected", a.at("errors", 0, "detail"), "unexpected }")
	want(t, "fault of an entry", a.at("errors", 1, "server"), "a")
	want(t, "its line", a.at("errors", 1, "line"), 5.0)
	want(t, "its column", a.at("errors", 1, "column"), 12.0)
	want(t, "warning", a.at("warnings", 0, "column"), 7.0)

	// A later load has found the same fault elsewhere, and an entry nobody can name.
	w.append("", events.ConfigLoaded{Files: []string{"/etc/mcp.json"}, Faults: []events.ConfigProblem{
		{File: "/etc/mcp.json", Line: 2, Column: 3, Detail: "a server has no name: give it one"},
		{File: "/etc/mcp.json", Line: 8, Column: 12, Server: "a", Detail: "neither command nor url"},
	}})
	a = w.get("/api/config").is(http.StatusOK)
	want(t, "faults", len(a.at("errors").([]any)), 2)
	want(t, "an entry without a name", a.at("errors", 0, "detail"), "a server has no name: give it one")
	want(t, "the line a fault moved to", a.at("errors", 1, "line"), 8.0)
}

func TestAnEntryThatIsNoObjectIsShownAsAnEmptyOne(t *testing.T) {
	w := newWorld(t)
	for _, written := range []string{`null`, `[]`, `"uvx weather"`, `7`} {
		w.configure("odd", func(d *events.ServerConfigured) {
			d.Config = json.RawMessage(written)
			d.Problem = &events.EntryProblem{Code: events.ProblemMalformed, Detail: "the entry must be an object"}
		})
		config := w.get("/api/servers/odd").is(http.StatusOK).at("config")
		if object, ok := config.(map[string]any); !ok || len(object) > 0 {
			t.Errorf("the entry %s is shown as %v", written, config)
		}
	}
}
