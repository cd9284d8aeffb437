package config

import (
	"bytes"
	"strings"
)

// shape is a kind of token that a fixed beginning gives away.
type shape struct {
	prefix string
	extra  string // what a token holds after the prefix beside letters and digits
	min    int    // bytes after the prefix
	kind   string // what stands in its place, as «kind»
}

// shapes are the well-known kinds.
var shapes = []shape{
	{"github_pat_", "_", 20, "github-token"},
	{"ghp_", "", 20, "github-token"}, {"gho_", "", 20, "github-token"}, {"ghu_", "", 20, "github-token"},
	{"ghs_", "", 20, "github-token"}, {"ghr_", "", 20, "github-token"},
	{"glpat-", "-_.", 16, "gitlab-token"}, {"gldt-", "-_.", 16, "gitlab-token"}, {"glrt-", "-_.", 16, "gitlab-token"},
	{"xoxb-", "-", 10, "slack-token"}, {"xoxp-", "-", 10, "slack-token"}, {"xoxa-", "-", 10, "slack-token"},
	{"xoxr-", "-", 10, "slack-token"}, {"xoxs-", "-", 10, "slack-token"}, {"xoxe-", "-", 10, "slack-token"},
	{"xoxc-", "-", 10, "slack-token"}, {"xoxd-", "-%", 10, "slack-token"}, {"xapp-", "-", 10, "slack-token"},
	{"AKIA", "", 16, "aws-key-id"}, {"ASIA", "", 16, "aws-key-id"},
	{"AIza", "-_", 30, "google-key"}, {"ya29.", "-_.", 20, "google-token"}, {"GOCSPX-", "-_", 20, "google-secret"},
	{"sk-", "-_", 16, "api-key"}, {"sk_live_", "", 10, "api-key"}, {"sk_test_", "", 10, "api-key"},
	{"rk_live_", "", 10, "api-key"}, {"rk_test_", "", 10, "api-key"}, {"whsec_", "+/", 16, "api-key"},
	{"ntn_", "", 20, "api-key"}, {"secret_", "", 32, "api-key"}, {"lin_api_", "", 20, "api-key"},
	{"figd_", "-_", 20, "api-key"}, {"tvly-", "-", 20, "api-key"}, {"fc-", "", 24, "api-key"},
	{"sbp_", "", 20, "api-key"}, {"hf_", "", 20, "api-key"}, {"gsk_", "", 20, "api-key"},
	{"xai-", "", 20, "api-key"}, {"pplx-", "", 20, "api-key"}, {"nvapi-", "-_", 20, "api-key"},
	{"npm_", "", 30, "api-key"}, {"pypi-", "-_", 30, "api-key"}, {"dckr_pat_", "-_", 20, "api-key"},
	{"glsa_", "_", 20, "api-key"}, {"shpat_", "", 20, "api-key"}, {"dop_v1_", "", 20, "api-key"},
	{"ATATT3", "-_=", 20, "api-key"}, {"SG.", "-_.", 20, "api-key"}, {"CCIPAT_", "_", 20, "api-key"},
	{"eyJ", "-_.", 20, "jwt"},
}

// shapesBy has the shapes by their first byte.
var shapesBy = func() (by [256][]shape) {
	for _, s := range shapes {
		by[s.prefix[0]] = append(by[s.prefix[0]], s)
	}
	return by
}()

// shapeLen returns the length and the kind of the token at the start of b; 0 if it
// has no known shape.
func shapeLen(b []byte) (n int, kind string) {
	if len(b) == 0 {
		return 0, ""
	}
	for _, s := range shapesBy[b[0]] {
		if !bytes.HasPrefix(b, []byte(s.prefix)) {
			continue
		}
		tail := b[len(s.prefix):]
		n := 0
		for n < len(tail) && (isAlnum(tail[n]) || strings.IndexByte(s.extra, tail[n]) >= 0) {
			n++
		}
		n = len(bytes.TrimRight(tail[:n], ".-"))
		if n >= s.min && looksRandom(tail[:n]) {
			return len(s.prefix) + n, s.kind
		}
	}
	return 0, ""
}

// looksRandom tells a token from words joined by hyphens: it has a digit, an upper
// case letter, or a long run without a hyphen.
func looksRandom(tail []byte) bool {
	run := 0
	for _, c := range tail {
		if '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' {
			return true
		}
		if run++; c == '-' || c == '_' || c == '.' {
			run = 0
		}
		if run >= 16 {
			return true
		}
	}
	return false
}
