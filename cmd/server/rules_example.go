package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"mcpledger/events"
)

// example is one failure with what a rule set is expected to make of it.
type example struct {
	id       string
	evidence events.Evidence
	expected expectation
	variants []exampleVariant
}

// expectation is what a verdict is expected to say; an empty field expects nothing.
type expectation struct{ class, disposition, rule string }

// exampleVariant is the example with other fields: the same failure another time, or
// one that differs and must not share its signature.
type exampleVariant struct {
	name     string
	differs  bool
	evidence events.Evidence
	expected expectation
}

// exampleVariants are the fields that hold variants.
var exampleVariants = []struct {
	field, name string
	differs     bool
}{
	{"same", "(same)", false},
	{"same_failure_variant", "(same)", false},
	{"other", "(other)", true},
	{"near_miss", "(other)", true},
}

// evidenceAliases are other names for fields of the evidence.
var evidenceAliases = map[string]string{"stderr": "stderr_tail", "duration_ms": "elapsed_ms", "command_kind": "command"}

// readExamples reads a YAML list of examples, or JSON objects that follow each other.
func readExamples(text []byte) ([]example, error) {
	raw, err := splitExamples(text)
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return nil, errors.New("there are no examples in it")
	}
	examples := make([]example, len(raw))
	for i, fields := range raw {
		if examples[i], err = readExample(fields); err != nil {
			return nil, fmt.Errorf("example %d: %w", i+1, err)
		}
		if examples[i].id == "" {
			examples[i].id = fmt.Sprintf("#%d", i+1)
		}
	}
	return examples, nil
}

func splitExamples(text []byte) ([]map[string]any, error) {
	var all []map[string]any
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return examplesOfYAML(text)
	}
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var one map[string]any
		if err := dec.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("example %d is no JSON object: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
}

func examplesOfYAML(text []byte) ([]map[string]any, error) {
	var list any
	err := yaml.Unmarshal(text, &list)
	if at, ok := errors.AsType[*yaml.LoadError](err); ok && at.Mark.Line > 0 {
		return nil, fmt.Errorf("line %d, column %d: neither a YAML list of examples nor JSON lines: %s", at.Mark.Line, at.Mark.Column, at.Message)
	}
	items, isList := list.([]any)
	if err != nil || !isList && list != nil {
		return nil, errors.New("neither a YAML list of examples nor JSON lines")
	}
	all := make([]map[string]any, len(items))
	for i, item := range items {
		if all[i], isList = item.(map[string]any); !isList {
			return nil, fmt.Errorf("example %d is no mapping", i+1)
		}
	}
	return all, nil
}

func readExample(fields map[string]any) (example, error) {
	x := example{id: textOf(fields, "id"), expected: expectationOf(fields)}
	evidence, nested := fields["evidence"].(map[string]any)
	if !nested {
		evidence = fields
	}
	var err error
	if x.evidence, err = evidenceFrom(evidence, nested); err != nil {
		return example{}, err
	}
	for _, v := range exampleVariants {
		changes, ok := fields[v.field].(map[string]any)
		if !ok {
			continue
		}
		merged := maps.Clone(evidence)
		maps.Copy(merged, changes)
		s := exampleVariant{name: v.name, differs: v.differs, expected: expectationOf(changes)}
		if s.evidence, err = evidenceFrom(merged, false); err != nil {
			return example{}, fmt.Errorf("%s: %w", v.field, err)
		}
		if reflect.DeepEqual(s.evidence, x.evidence) {
			return example{}, fmt.Errorf("%s: it changes nothing of the evidence", v.field)
		}
		x.variants = append(x.variants, s)
	}
	if x.expected == (expectation{}) && len(x.variants) == 0 {
		return example{}, errors.New("nothing is expected of it: give it want, expected_class, expected_disposition or expected_rule")
	}
	return x, nil
}

func expectationOf(fields map[string]any) expectation {
	e := expectation{
		class: textOf(fields, "expected_class"), disposition: textOf(fields, "expected_disposition"), rule: textOf(fields, "expected_rule"),
	}
	if want := textOf(fields, "want"); want != "" {
		e.class, e.disposition, _ = strings.Cut(want, "/")
	}
	return e
}

func textOf(fields map[string]any, name string) string {
	text, _ := fields[name].(string)
	return text
}

// evidenceFrom reads evidence from its fields. Fields that have no value were not seen.
// Fields that it does not know are labels, unless only evidence is expected.
func evidenceFrom(fields map[string]any, only bool) (events.Evidence, error) {
	named := map[string]any{}
	for name, value := range fields {
		if alias, ok := evidenceAliases[name]; ok {
			name = alias
		}
		if value != nil {
			named[name] = value
		}
	}
	raw, err := json.Marshal(named)
	if err != nil {
		return events.Evidence{}, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if only {
		dec.DisallowUnknownFields()
	}
	var e events.Evidence
	if err := dec.Decode(&e); err != nil {
		return events.Evidence{}, fmt.Errorf("the evidence: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return e, nil
}
