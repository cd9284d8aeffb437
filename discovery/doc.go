// Package discovery does what the folds say is due: it starts and dials MCP
// servers, learns their tools, and writes down every attempt before it is made and
// every outcome after.
//
// It acts and records; it does not judge. When a server is due, whether it is
// skipped and what a failure means is asked of package projections. How servers are
// reached, and what evidence a failure leaves, is package discovery/upstream; files,
// keys and secrets are package discovery/config.
package discovery
