package sqlite

// words are what pack shortens: the members' names and the fixed values of our
// payloads. The place of a word is its code on disk: words are only added, at the
// end, and never moved. The first shortWords take one byte, so they are the ones
// that failures and calls repeat.
var words = []string{
	`"evidence":`, `"phase":`, `"transport":`, `"error":`, `"error_kind":`, `"command":`, `"exit_code":`,
	`"ended_by":`, `"stderr_tail":`, `"stderr_bytes":`, `"stderr_last_ms":`, `"elapsed_ms":`, `"limit_ms":`,
	`"protocol_version":`, `"tool":`, `"dispatched":`, `"arguments_hash":`, `"arguments_size":`, `"caller":`,
	`"generation":`, `"result_size":`, `"attempt":`, `"trigger":`, `"facts":`, `"http_status":`,

	`"added":`, `"after":`, `"allow":`, `"arguments":`, `"before":`, `"body_excerpt":`, `"cancelled":`,
	`"capabilities":`, `"catalogue_hash":`, `"change":`, `"changed":`, `"clears_on":`, `"client":`, `"code":`,
	`"column":`, `"config":`, `"content_type":`, `"count":`, `"deny":`, `"description":`, `"detail":`,
	`"disabled":`, `"excerpt":`, `"failed":`, `"failures":`, `"file":`, `"files":`, `"first":`, `"found":`,
	`"from":`, `"hash":`, `"instance":`, `"instructions":`, `"is_error":`, `"jsonrpc_code":`, `"jsonrpc_data":`,
	`"jsonrpc_message":`, `"last":`, `"line":`, `"location":`, `"max_result":`, `"mtime":`, `"name":`,
	`"names":`, `"never":`, `"path":`, `"pid":`, `"problem":`, `"process_group":`, `"reason":`,
	`"record_calls":`, `"removed":`, `"requires_oauth":`, `"result":`, `"retry_after_ms":`, `"rule_id":`,
	`"rules_hash":`, `"server":`, `"server_info":`, `"servers":`, `"session":`, `"session_sent":`, `"set":`,
	`"settings":`, `"signal":`, `"since":`, `"size":`, `"skip":`, `"source_file":`, `"stderr":`,
	`"stderr_head":`, `"stdout_junk":`, `"succeeded":`, `"text":`, `"title":`, `"tool_count":`, `"tools":`,
	`"ttl_ms":`, `"until":`, `"version":`, `"warnings":`, `"www_authenticate":`, `"inputSchema":`, `"type":`,
	`"properties":`, `"required":`, `"args":`, `"env":`, `"url":`, `"headers":`, `"cwd":`, `"oauth":`,
	`"timeouts":`,

	`"config"`, `"spawn"`, `"connect"`, `"handshake"`, `"initialized"`, `"list_tools"`, `"call_tool"`,
	`"stdio"`, `"http"`, `"sse"`, `"exec_not_found"`, `"permission"`, `"exit"`, `"signal"`, `"dns"`,
	`"refused"`, `"reset"`, `"unreachable"`, `"tls"`, `"timeout_connect"`, `"timeout_headers"`,
	`"timeout_body"`, `"timeout_start"`, `"eof"`, `"malformed"`, `"oversized"`, `"redirect"`, `"http_status"`,
	`"jsonrpc"`, `"tool_error"`, `"cancelled"`, `"server"`, `"us"`, `"added"`, `"key"`, `"values"`,
	`"settings"`, `"variable_unset"`, `"startup"`, `"config_changed"`, `"retry"`, `"skip_expired"`,
	`"requalified"`, `"check"`, `"verify"`, `"refresh"`, `"manual"`, `"on_use"`, `"gate"`, `"skip"`, `"brake"`,
	`"busy"`, `"disabled"`, `"not_connected"`, `"auth"`, `"identical_failures"`, `"any_failures"`, `"pinned"`,
	`"shutdown"`, `"SIGKILL"`, `"SIGTERM"`, `"SIGSEGV"`, `"SIGABRT"`, `"2024-11-05"`, `"2025-03-26"`,
	`"2025-06-18"`, `"2025-11-25"`, `"2026-07-28"`,
}
