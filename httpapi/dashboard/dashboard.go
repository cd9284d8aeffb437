// Package dashboard holds the page that shows people how their servers are. The page
// is static: it asks the API for everything it shows, and loads nothing from
// elsewhere.
package dashboard

import (
	"embed"
	"path"
)

//go:embed index.html dashboard.css dashboard.js icon.svg
var files embed.FS

// Policy is the content security policy the page lives under: its own files and the
// API, and no script or style inside the page.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File is one of the dashboard's files.
type File struct {
	MediaType string
	Body      []byte
}

// mediaTypes has the type of each kind of file.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Page returns the page itself.
func Page() File {
	f, ok := Open("index.html")
	if !ok {
		panic("dashboard: the page is not embedded")
	}
	return f
}

// Open returns the file of that name; false when there is none.
func Open(name string) (File, bool) {
	body, err := files.ReadFile(name)
	if err != nil {
		return File{}, false
	}
	return File{MediaType: mediaTypes[path.Ext(name)], Body: body}, true
}
