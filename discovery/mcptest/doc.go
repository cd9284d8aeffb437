// Package mcptest has fake MCP servers for tests: programs that speak the protocol
// over stdin and stdout, and HTTP servers. A fake is healthy unless it is told what
// to do wrong, and where.
//
// A program is the test binary itself, started again with an environment variable
// set; the package's TestMain makes that work:
//
//	func TestMain(m *testing.M) { mcptest.Main(m) }
//
// The fakes speak JSON-RPC by hand, so that they can break it and so that no client
// is tested against its own library.
package mcptest
