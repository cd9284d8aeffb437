package httpapi_test

import (
	"bytes"
	"strconv"

	"mcpledger/events"
)

func contains(body []byte, text string) bool { return bytes.Contains(body, []byte(text)) }

func itoa(s events.Sequence) string { return strconv.FormatInt(int64(s), 10) }
