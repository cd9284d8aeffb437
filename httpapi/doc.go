// Package httpapi answers over HTTP: what servers there are and why each is as it
// is, the events behind it, and the few things a person may do about it.
//
// openapi.yaml is the contract. The types and routes in package api are generated
// from it, and so is what the handlers need not repeat: which role a route asks for,
// which parameters it knows and what they may be. Reads fold nothing of their own
// but ask package projections; they start nothing and write nothing. Writes go to
// the Discovery port, but for reported events, which go to the log.
//
// The package knows Echo and hides it. It does not know how servers are reached, nor
// which log it reads.
package httpapi
