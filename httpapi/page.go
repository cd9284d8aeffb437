package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// defaultLimit is how many items a page has when nothing else is asked for.
const defaultLimit = 100

func pageSize(limit int) int {
	if limit == 0 {
		return defaultLimit
	}
	return limit
}

// cursor is where a page ended. Clients see it encoded and take it as it is.
type cursor struct {
	List string `json:"l"` // the list and its order, which the next page must share
	Key  string `json:"k"` // of the last item
}

func (c cursor) encode() *string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // of two strings
	}
	text := base64.RawURLEncoding.EncodeToString(b)
	return &text
}

// decodeCursor returns the key a page of the list begins after; false for the first
// page.
func decodeCursor(text, list string) (key string, given bool, err error) {
	if text == "" {
		return "", false, nil
	}
	var c cursor
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &c) != nil {
		return "", false, refuse(codeInvalidCursor, "this is no next_cursor of ours")
	}
	if c.List != list {
		return "", false, refuse(codeInvalidCursor, "the cursor belongs to another list or order")
	}
	return c.Key, true, nil
}

// pageOf sorts items by key and returns the page after the cursor. Keys must differ.
// A page begins where the one before ended even if items came or went meanwhile.
func pageOf[T any](items []T, list string, key func(T) string, descending bool, text string, limit int) ([]T, *string, error) {
	after, given, err := decodeCursor(text, list)
	if err != nil {
		return nil, nil, err
	}
	order := strings.Compare
	if descending {
		order = func(a, b string) int { return strings.Compare(b, a) }
	}
	items = slices.SortedFunc(slices.Values(items), func(a, b T) int { return order(key(a), key(b)) })
	start := 0
	if given {
		start = slices.IndexFunc(items, func(item T) bool { return order(key(item), after) > 0 })
		if start < 0 {
			return []T{}, nil, nil
		}
	}
	items = items[start:]
	if limit = pageSize(limit); len(items) <= limit {
		return items, nil, nil
	}
	return items[:limit], cursor{List: list, Key: key(items[limit-1])}.encode(), nil
}
