// Package simulate lets time pass over synthetic fleets of MCP servers, to see what
// a failure policy costs before anybody has to live with it: launches that were in
// vain against recoveries that were noticed late.
//
// A fleet says when each server is broken, and how. The simulation asks the real
// fold when a server is due, makes the attempt, and folds the event that comes of
// it; no rule is written twice. Time, chance and ids are its own: the same seed
// gives the same events. It starts no process and opens no connection.
package simulate
