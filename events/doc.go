// Package events holds the facts mcpledger records and the contract of the log
// that keeps them.
//
// An event says what was seen, when and by whom: a discovery attempt that failed
// and the evidence of it, a tool call and its outcome, a change of the config.
// It never says what that means. Class, signature, streak, skip and gate are
// judgments; package projections derives them by folding events under rules, so
// that new rules can judge old facts again.
//
// The package knows the standard library and nothing else: no SQLite, no HTTP, no
// MCP client. Package events/sqlite is the log on disk; events/eventstest has a
// log in memory and the suite that every log passes.
//
// The JSON of events is for ever. Types and fields are only added; a field is
// never renamed or given another meaning; what a reader does not know it carries
// along unchanged.
package events
