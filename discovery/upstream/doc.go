// Package upstream connects to MCP servers: it starts or dials one, shakes hands,
// lists its tools, calls them, and says exactly what was seen when any of that
// fails.
//
// It owns processes, HTTP connections, sessions and evidence. It keeps the MCP
// client library behind Open and Session, and knows nothing of the log, of rules,
// of schedules or of config files. It gives no verdict: whether a failure lasts,
// who is to blame and when to try again is for others to say.
//
// # Evidence
//
// A Failure is taken where things happen, since the client library's errors lose
// or falsify much of it: the process is ours (exit code, signal, stderr, stray
// lines on stdout, a limit on lines), an http.RoundTripper sees status, headers,
// the beginning of the body and how far the request came, JSON-RPC errors are read
// from the reply itself, and a context's cause tells a limit from a cancellation.
// A process that dies is one fact, however it is noticed first: a broken pipe, the
// end of stdout and the exit give the same evidence.
//
// # Protocol eras
//
// Servers up to revision 2025-11-25 begin with initialize; from 2026-07-28 on there
// is no handshake, and server/discover asks for what it told. Unless a server is known
// as modern, initialize goes first: most servers are of that era or speak both, they
// answer at once, and one that stays silent or dies fails the only request it was sent.
// A server that refuses initialize in the protocol's own words is then asked
// server/discover, on the same connection, for it keeps no state a refusal could
// spoil. With EraModern server/discover goes first, and a refusal is followed by
// initialize in a new process, since some servers refuse initialize once they were
// asked to discover. A refusal by both is reported as the first one.
package upstream
