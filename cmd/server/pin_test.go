package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"mcpledger/httpapi/api"
)

func TestAPinForATimeLastsThatLong(t *testing.T) {
	var asked api.Pin
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				t.Error(err)
			}
			_ = json.NewEncoder(w).Encode(api.Server{Name: "mine"})
		}
	}))
	defer service.Close()
	var stdout, stderr bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	before := time.Now()
	code := run([]string{"pin", "mine", "--for", "2h", "--url", service.URL}, nil, &stdout, &stderr, none)
	after := time.Now()
	until, err := time.Parse(time.RFC3339Nano, asked.Until)
	if code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout.String(), stderr.String())
	}
	if until.Before(before.Add(2*time.Hour)) || until.After(after.Add(2*time.Hour)) {
		t.Errorf("until %v, asked for between %v and %v", until, before, after)
	}
}
