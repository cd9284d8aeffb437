package gateway_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpledger/events"
	"mcpledger/httpapi/gateway"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a_very_long_tool_name_", 4)[:70]
	for story, c := range map[string]struct {
		server events.ServerName
		tool   string
		want   string
	}{
		"a plain pair is joined":                        {"weather", "get-forecast", "weather__get-forecast"},
		"a tool may hold the separator":                 {"a", "b__c", "a__b__c"},
		"a server that holds it gets a hash":            {"a__b", "c", `a_b__c_[0-9a-f]{10}`},
		"so does one that ends like the separator":      {"a_", "b", `a__b_[0-9a-f]{10}`},
		"a long tool is shortened":                      {"srv", long, `srv__a_very_long_tool_name_a_very_lon_[0-9a-f]{10}`},
		"other characters are left out":                 {"wetter.de", "prüfe/ort", `wetter_de__pr_fe_ort_[0-9a-f]{10}`},
		"a name of none but others is still a name":     {"日本", "天気", `x__x_[0-9a-f]{10}`},
		"a tool that looks as if hashed is hashed":      {"a", "b_0123456789", `a__b_0123456789_[0-9a-f]{10}`},
		"the service's own prefix is out of reach here": {"ledger_", "why", `ledger__why_[0-9a-f]{10}`},
	} {
		t.Run(story, func(t *testing.T) {
			got := gateway.Namer{Limit: gateway.DefaultNameLimit}.Name(c.server, c.tool)
			if !regexp.MustCompile("^" + c.want + "$").MatchString(got) {
				t.Errorf("%q / %q is named %q, want %s", c.server, c.tool, got, c.want)
			}
		})
	}
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Whatever servers and tools are called, their names are valid, short enough and
// never shared, and a name that can be split leads back.
func TestNamesAreValidAndNeverShared(t *testing.T) {
	alphabet := rapid.StringOfN(rapid.RuneFrom([]rune("ab_-. ü/0")), 1, 60, -1)
	rapid.Check(t, func(t *rapid.T) {
		namer := gateway.Namer{Limit: rapid.IntRange(gateway.MinNameLimit, gateway.MaxNameLimit).Draw(t, "limit")}
		names := map[string][2]string{}
		for range rapid.IntRange(2, 40).Draw(t, "tools") {
			pair := [2]string{alphabet.Draw(t, "server"), alphabet.Draw(t, "tool")}
			name := namer.Name(events.ServerName(pair[0]), pair[1])
			if len(name) > namer.Limit || !validName.MatchString(name) {
				t.Fatalf("%q is named %q", pair, name)
			}
			if other, taken := names[name]; taken && other != pair {
				t.Fatalf("%q and %q are both named %q", pair, other, name)
			}
			names[name] = pair
			if server, tool, ok := namer.Split(name); ok && [2]string{string(server), tool} != pair {
				t.Fatalf("%q of %q leads to %q / %q", name, pair, server, tool)
			}
		}
	})
}
