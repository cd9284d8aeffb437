package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
)

func TestHandlerInProcessAnswersAsOverTheNetwork(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("Too-Late", "yes")
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.RequestURI, r.Host, body)
	})
	client := &http.Client{Transport: handlerTransport{handler}}
	res, err := client.Get("http://127.0.0.1/api/events?limit=2")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusTeapot || res.Header.Get("Content-Type") != "text/plain" || res.Header.Get("Too-Late") != "" {
		t.Errorf("got status %d and header %v", res.StatusCode, res.Header)
	}
	if want := "GET /api/events?limit=2 127.0.0.1 "; string(body) != want {
		t.Errorf("got %q, want %q", body, want)
	}
}

func TestHandlerInProcessStreams(t *testing.T) {
	gone := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for n := 1; ; n++ {
			if _, err := fmt.Fprintln(w, n); err != nil {
				gone <- err
				return
			}
		}
	})
	client := &http.Client{Transport: handlerTransport{handler}}
	res, err := client.Get("http://127.0.0.1/")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	for want := 1; want <= 3; want++ {
		if !lines.Scan() || lines.Text() != fmt.Sprint(want) {
			t.Fatalf("line %d is %q", want, lines.Text())
		}
	}
	res.Body.Close()
	if err := <-gone; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the handler was told %v when the reader left", err)
	}
}

func TestHandlerInProcessIsLeftWhenTheRequestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	defer close(left)
	client := &http.Client{Transport: handlerTransport{http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-left
	})}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the request's end", err)
	}
}
