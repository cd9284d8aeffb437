package rules_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpledger/events"
	"mcpledger/projections/rules"
)

func ptr[T any](v T) *T { return &v }

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	s := mustParse(t, withRules(`
  - {id: narrow, match: {phase: initialize, text: 'refused', http_status: none}, class: network, disposition: transient}
  - {id: wide, match: {text: 'refused'}, unless: {phase: call_tool, error: 'ignored'}, class: config, disposition: deterministic}
  - {id: numbers, match: {exit_code: [2, 10..19, 126..]}, class: resource, disposition: transient}
  - {id: absent, match: {jsonrpc_code: none, transport: none, exit_code: any}, class: protocol, disposition: transient}
`))
	for _, tc := range []struct {
		name string
		e    events.Evidence
		want string
	}{
		{"all conditions hold", events.Evidence{Phase: events.PhaseHandshake, Error: "it refused"}, "narrow"},
		{"the host's word for the handshake is understood", events.Evidence{Phase: "initialize", Error: "it refused"}, "narrow"},
		{"a status was seen", events.Evidence{Phase: events.PhaseHandshake, Error: "it refused", HTTPStatus: 500}, "wide"},
		{"letters match in either case", events.Evidence{Error: "REFUSED"}, "wide"},
		{"one condition of unless is enough", events.Evidence{Phase: events.PhaseCallTool, Error: "it refused", ExitCode: ptr(2)}, "numbers"},
		{"so is the other", events.Evidence{Error: "refused, ignored", ExitCode: ptr(12)}, "numbers"},
		{"a range without an end", events.Evidence{ExitCode: ptr(300)}, "numbers"},
		{"an exit code of 0 was seen", events.Evidence{ExitCode: ptr(0)}, "absent"},
		{"nothing else matches", events.Evidence{Error: "what"}, "last"},
		{"no evidence at all", events.Evidence{}, "last"},
	} {
		if got := s.Classify(tc.e).Rule; got != tc.want {
			t.Errorf("%s: got rule %s, want %s", tc.name, got, tc.want)
		}
	}
}

// A weak rule says how it ended: a rule above it that names a cause anywhere wins.
func TestAWeakRuleGivesWayToACauseInAnotherBlock(t *testing.T) {
	s := mustParse(t, withRules(`
  - {id: cause, match: {text: 'quota is spent'}, class: rate_limit, disposition: auth}
  - {id: strong, match: {text: 'strongly'}, class: config, disposition: deterministic}
  - {id: end, match: {text: 'giving up'}, weak: true, class: unknown, disposition: transient}
`))
	stderr := "quota is spent\n\nFatalError: %s giving up, nothing can be done\n"
	if got := s.Classify(events.Evidence{StderrTail: strings.Replace(stderr, "%s", "", 1)}).Rule; got != "cause" {
		t.Errorf("got rule %s for a cause above the decisive block, want cause", got)
	}
	if got := s.Classify(events.Evidence{StderrTail: strings.Replace(stderr, "%s", "strongly", 1)}).Rule; got != "strong" {
		t.Errorf("got rule %s for a decisive block with a rule of its own, want strong", got)
	}
}

func TestAGateFollowsStatusAndHeaderWhateverTheClass(t *testing.T) {
	set := rules.Default()
	challenge := `Bearer error="insufficient_scope", scope="files:write"`
	for _, tc := range []struct {
		name  string
		e     events.Evidence
		class rules.Class
		gate  rules.Gate
	}{
		{"401", events.Evidence{HTTPStatus: 401}, rules.ClassAuth, rules.GateAuthRequired},
		{"403", events.Evidence{HTTPStatus: 403}, rules.ClassAuth, rules.GateAuthRequired},
		{"a bot challenge is network and gates", events.Evidence{HTTPStatus: 403, BodyExcerpt: "<html><title>Just a moment...</title>"}, rules.ClassNetwork, rules.GateAuthRequired},
		{"scope in the header", events.Evidence{HTTPStatus: 403, WWWAuthenticate: challenge}, rules.ClassAuth, rules.GateInsufficientScope},
		{"scope in the header of a 401", events.Evidence{HTTPStatus: 401, WWWAuthenticate: challenge}, rules.ClassAuth, rules.GateInsufficientScope},
		{"scope as error", events.Evidence{HTTPStatus: 403, BodyExcerpt: `{"error":"insufficient_scope"}`}, rules.ClassAuth, rules.GateInsufficientScope},
		{"scope as error.code", events.Evidence{HTTPStatus: 403, BodyExcerpt: `{"error": {"code": "insufficient_scope"}}`}, rules.ClassAuth, rules.GateInsufficientScope},
		{"scope as error.data.code", events.Evidence{HTTPStatus: 403, BodyExcerpt: `{"error":{"code":-32003,"data":{"code":"insufficient_scope"}}}`}, rules.ClassAuth, rules.GateInsufficientScope},
		{"scope in prose", events.Evidence{HTTPStatus: 403, BodyExcerpt: `{"message":"you have insufficient_scope"}`}, rules.ClassAuth, rules.GateAuthRequired},
		{"scope in a 200", events.Evidence{HTTPStatus: 200, Phase: events.PhaseCallTool, BodyExcerpt: `{"error":"insufficient_scope"}`}, rules.ClassAuth, rules.GateNone},
		{"an unauthorized tool answer", events.Evidence{Phase: events.PhaseCallTool, ErrorKind: events.KindToolError, Error: "401 Unauthorized"}, rules.ClassAuth, rules.GateNone},
		{"a key missing in the config", events.Evidence{Phase: events.PhaseConfig, Error: "WIKI_TOKEN is not set"}, rules.ClassCredentialsMissing, rules.GateCredentialsMissing},
		{"a malformed entry", events.Evidence{Phase: events.PhaseConfig, Error: "invalid configuration: command and url are both set"}, rules.ClassConfig, rules.GateNone},
		{"a key missing at the start of a process", events.Evidence{Phase: events.PhaseHandshake, Transport: events.TransportStdio, ExitCode: ptr(1), StderrTail: "WIKI_TOKEN is not set"}, rules.ClassCredentialsMissing, rules.GateNone},
		{"a 500", events.Evidence{HTTPStatus: 500}, rules.ClassServerError, rules.GateNone},
	} {
		if v := set.Classify(tc.e); v.Class != tc.class || v.Gate != tc.gate {
			t.Errorf("%s: got class %s and gate %q by %s, want %s and %q", tc.name, v.Class, v.Gate, v.Rule, tc.class, tc.gate)
		}
	}
}

func TestDefaultSetIsInOrder(t *testing.T) {
	set := rules.Default()
	if warnings := set.Check(); len(warnings) > 0 {
		t.Errorf("the default set has rules that can never match, or hints with a gap: %+v", warnings)
	}
	if beyond := set.GatesBeyondLaw3(); len(beyond) > 0 {
		t.Errorf("the default set gates beyond the law: %v", beyond)
	}
	sentence := regexp.MustCompile(`^[A-Z][^\n…]*[^.]\.$`)
	for _, r := range set.Rules() {
		if !sentence.MatchString(r.Hint) {
			t.Errorf("rule %s has no hint of one sentence: %q", r.ID, r.Hint)
		}
		if r.Disposition != rules.DispositionIgnore && r.Policy.After == 0 {
			t.Errorf("rule %s never skips", r.ID)
		}
	}
}

func TestSetsOfHistoryMayBeReplayedAndSomeNotActivated(t *testing.T) {
	want := map[string]bool{ // whether it gates beyond the law
		"default": false, "call-scoped": false,
		"auth-substring": true, "any-failure-gates": true, "transport-failure-gates": true,
	}
	if got := rules.BuiltinNames(); len(got) != len(want) || !slices.IsSorted(got) {
		t.Errorf("got names %v", got)
	}
	for name, beyond := range want {
		s, err := rules.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name() != name || len(s.Check()) > 0 || len(s.GatesBeyondLaw3()) > 0 != beyond {
			t.Errorf("%s: name %q, warnings %v, gates beyond the law %v, want any: %v", name, s.Name(), s.Check(), s.GatesBeyondLaw3(), beyond)
		}
	}
	if _, err := rules.Builtin("nobody"); !errors.Is(err, rules.ErrNoSuchSet) || !strings.Contains(err.Error(), "call-scoped") {
		t.Errorf("got error %v for an unknown name, want one that lists the names", err)
	}
	histories := []struct {
		set  string
		e    events.Evidence
		gate rules.Gate
	}{
		{"auth-substring", events.Evidence{Error: "listen on port 4010"}, rules.GateAuthRequired},
		{"auth-substring", events.Evidence{Error: "division by zero"}, rules.GateNone},
		{"any-failure-gates", events.Evidence{Error: "division by zero"}, rules.GateAuthRequired},
		{"transport-failure-gates", events.Evidence{ErrorKind: events.KindReset}, rules.GateAuthRequired},
		{"transport-failure-gates", events.Evidence{ErrorKind: events.KindToolError, Error: "no such row"}, rules.GateNone},
		{"call-scoped", events.Evidence{ErrorKind: events.KindReset}, rules.GateNone},
		{"call-scoped", events.Evidence{HTTPStatus: 401}, rules.GateAuthRequired},
	}
	for _, h := range histories {
		s, err := rules.Builtin(h.set)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Classify(h.e).Gate; got != h.gate {
			t.Errorf("%s: %+v: got gate %q, want %q", h.set, h.e, got, h.gate)
		}
	}
}

func TestAbandonedAttemptsAreAVerdictOfTheSet(t *testing.T) {
	v := rules.Default().Abandoned()
	if v.Class != rules.ClassResource || v.Policy.After == 0 || v.Signature == "" || v.Hint == "" || v.Gate != rules.GateNone {
		t.Errorf("got %+v", v)
	}
	if v := mustParse(t, minimal).Abandoned(); v.Disposition != rules.DispositionIgnore {
		t.Errorf("a set that says nothing of it: got %+v, want it ignored", v)
	}
}

// The filter saves time and changes nothing: trying each rule in turn gives the same
// verdict, whatever the evidence, and so does asking a second time.
func TestTheFilterNeverChangesAVerdict(t *testing.T) {
	examples := readExamples(t)
	var words []string
	var known []events.Evidence
	for _, x := range examples {
		e := x.with(t, nil)
		known = append(known, e)
		words = append(words, strings.FieldsFunc(e.StderrTail+"\n"+e.Error+"\n"+e.BodyExcerpt, func(r rune) bool { return r == ' ' })...)
	}
	var sets []*rules.Set
	for _, name := range rules.BuiltinNames() {
		s, err := rules.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, s)
	}
	same := func(t rapid.TB, e events.Evidence) {
		for _, s := range sets {
			want := s.ClassifySlowly(e)
			for _, got := range []rules.Verdict{s.ClassifyUncached(e), s.Classify(e), s.Classify(e)} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s: the filter changed the verdict of %+v (-without +with):\n%s", s.Name(), e, diff)
				}
			}
		}
	}
	for _, e := range known {
		same(t, e)
	}
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(known).Draw(t, "example")
		mixed := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 12).Draw(t, "words"), rapid.SampledFrom([]string{" ", "\n"}).Draw(t, "between"))
		switch rapid.SampledFrom([]string{"stderr", "error", "body", "message"}).Draw(t, "field") {
		case "stderr":
			e.StderrTail = mixed
		case "error":
			e.Error = mixed
		case "body":
			e.BodyExcerpt = mixed
		default:
			e.JSONRPCMessage = mixed
		}
		same(t, e)
	})
}

func TestManyGoroutinesGetTheSameVerdicts(t *testing.T) {
	set := rules.Default()
	examples := readExamples(t)
	want := make([]rules.Verdict, len(examples))
	for i, x := range examples {
		want[i] = set.ClassifyUncached(x.with(t, nil))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i, x := range examples {
				if got := set.Classify(x.with(t, nil)); !cmp.Equal(got, want[i]) {
					t.Errorf("%s: got %+v, want %+v", x.ID, got, want[i])
				}
			}
		})
	}
	wg.Wait()
}

func TestAVerdictIsBoundedAndOnOneLine(t *testing.T) {
	set := rules.Default()
	signature := regexp.MustCompile(`^s_[a-z2-7]{16}$`)
	rapid.Check(t, func(t *rapid.T) {
		e := events.Evidence{
			Error: rapid.String().Draw(t, "error"), StderrTail: rapid.String().Draw(t, "stderr"),
			BodyExcerpt: rapid.String().Draw(t, "body"), JSONRPCMessage: rapid.String().Draw(t, "message"),
			HTTPStatus: rapid.SampledFrom([]int{0, 200, 401, 500}).Draw(t, "status"),
		}
		v := set.Classify(e)
		if len(v.Text) > 200 || !utf8.ValidString(v.Text) || strings.ContainsAny(v.Text, "\n\r\x1b") || !signature.MatchString(v.Signature) {
			t.Fatalf("got text %q and signature %q", v.Text, v.Signature)
		}
	})
}

func FuzzClassify(f *testing.F) {
	for _, x := range readExamples(f) {
		e := x.with(f, nil)
		f.Add(e.StderrTail, e.Error, e.BodyExcerpt, e.JSONRPCMessage, e.HTTPStatus)
	}
	set := rules.Default()
	f.Fuzz(func(t *testing.T, stderr, text, body, message string, status int) {
		e := events.Evidence{StderrTail: stderr, Error: text, BodyExcerpt: body, JSONRPCMessage: message, HTTPStatus: status}
		got, want := set.ClassifyUncached(e), set.ClassifySlowly(e)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the filter changed the verdict (-without +with):\n%s", diff)
		}
	})
}
