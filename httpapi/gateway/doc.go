// Package gateway is the MCP endpoint: a client that points at it gets the tools of
// every server that is ready under names that do not clash, and for the rest an
// answer that says what is wrong.
//
// # Two paths
//
// What servers and clients say to each other passes through as the bytes it was sent
// in: tool lists, calls, results, resources, prompts, completions. The MCP library's
// types would drop what they do not know and round large integers, so these methods
// are answered here, on raw JSON, and the streams of notifications are written here, so
// that nobody waits for a client that does not read. What belongs to the protocol itself
// (initialize, server/discover) is the library's, one server of it for each view. Package
// gateway and package discovery/upstream are the only ones that know the library.
//
// # Subscriptions
//
// A server is asked once for the updates of a resource, while any client wants to hear
// of them, and asked again when its session is a new one. Each client hears of what it
// subscribed to itself, until its session or its stream ends.
//
// # Views
//
// A view is what one address offers: the servers of all, of some, or a single one
// under its own names. A client's session belongs to the view it was opened at.
//
// The package calls no server itself: package discovery does, with its gates, limits
// and records.
package gateway
