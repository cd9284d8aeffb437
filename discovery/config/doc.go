// Package config knows the config files that people have for MCP clients: where
// servers stand in them, how each client spells its fields, what variables and files
// an entry refers to. It turns them into servers ready to start or dial, gives each
// connection its config key, says what differs between two configs, and masks the
// secrets it has seen in whatever is to be recorded, logged or shown.
//
// It reads files and the environment it is handed. It starts no process, opens no
// connection and writes nothing.
//
// # Files
//
// A file is JSON in which comments and trailing commas are allowed. Its servers stand
// by name under "mcpServers" or "servers"; a file that is nothing but such a map will
// do. Fields of other clients without a meaning here are accepted in silence, and
// "timeout" is one of them, for some clients mean seconds by it and some
// milliseconds. Lists of tools to include or exclude are obeyed. Our own settings
// stand under "mcpledger" in an entry:
//
//	timeouts     start, silence, call, call_total: spans such as "90s"
//	tools        allow, deny: lists of globs on tool names
//	inherit_env  true for all of the service's variables, or a list of names
//	skip         after: failing runs; ttl: a span or a list of them; never: true
//	session      "shared" or "per_client"
//	era          "legacy" or "modern": how the protocol begins; found out if not given
//	max_result   bytes
//	record_calls true to keep arguments and results in the log
//
// # Secrets
//
// Where a value stands decides whether it is a secret, and then how it looks: under a
// name such as API_KEY, in a header, a URL's userinfo or query, in or after a flag
// such as --token, or from a variable or file. Values that tell nobody anything, such
// as plain words, hosts, ports and paths, are none; under a name that says secret a
// plain word is one too. In running text secrets of MinSecretBytes or more are
// masked, in an entry that is shown shorter ones as well.
package config
