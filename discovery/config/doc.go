// Package config knows the config files that people have for MCP clients: where
// servers stand in them, how each client spells its fields, what variables and files
// an entry refers to. It turns them into servers ready to start or dial, gives each
// connection its config key, says what differs between two configs, and masks the
// secrets it has seen in whatever is to be recorded, logged or shown.
//
// It reads files and the environment it is handed. It starts no process, opens no
// connection and writes nothing.
package config
