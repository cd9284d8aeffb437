package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// adviceError is why a flag does not take a value: what to give instead. The sentence
// around it names the flag and the value.
type adviceError string

func (e adviceError) Error() string { return string(e) }

// wrongValue puts an error of pflag into our words where a value of ours refused what
// was given, and returns nil elsewhere.
func wrongValue(err error) error {
	advice, ours := errors.AsType[adviceError](err)
	invalid, named := errors.AsType[*pflag.InvalidValueError](err)
	if !ours || !named {
		return nil
	}
	return usagef("--%s is %q, %s", invalid.GetFlag().Name, invalid.GetValue(), advice)
}

// value is a pflag.Value that is read by parse and keeps what was given as text.
type value struct {
	kind  string
	text  string
	parse func(string) error
	words []string // those it takes; nil where it is not for a choice
}

func (v *value) String() string { return v.text }
func (v *value) Type() string   { return v.kind }

func (v *value) Set(given string) error {
	if err := v.parse(given); err != nil {
		return err
	}
	v.text = given
	return nil
}

// choice is the value of a flag that takes one of a few words, and an empty one as if
// it were not given.
func choice[T ~string](to *string, words ...T) pflag.Value {
	listed := make([]string, len(words))
	for i, w := range words {
		listed[i] = string(w)
	}
	return &value{kind: "string", words: listed, parse: func(given string) error {
		if given != "" && !slices.Contains(listed, given) {
			return adviceError("give one of " + strings.Join(listed, ", "))
		}
		*to = given
		return nil
	}}
}

// timeOf is the value of a flag that takes a time, also as how long ago it was. An empty
// one is as if it were not given.
func timeOf(to *time.Time, now func() time.Time) pflag.Value {
	return &value{kind: "string", parse: func(given string) (err error) {
		*to = time.Time{}
		if given == "" {
			return nil
		}
		if *to, err = readTimeOrAgo(given, now()); err != nil {
			return adviceError("give a time such as 2026-03-04T12:00:00Z, or 2h for two hours ago")
		}
		return nil
	}}
}

// readTimeOrAgo reads a time, or a duration back from now.
func readTimeOrAgo(given string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(given); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	return readTime(given)
}

// comingTimeOf is the value of a flag that takes a time after now.
func comingTimeOf(to *time.Time, now func() time.Time) pflag.Value {
	return &value{kind: "string", parse: func(given string) (err error) {
		*to = time.Time{}
		if given == "" {
			return nil
		}
		if *to, err = readTime(given); err != nil {
			return adviceError("give a time such as 2026-03-04T12:00:00Z")
		}
		if !to.After(now()) {
			return adviceError("which has passed; give a time to come")
		}
		return nil
	}}
}

// timeParameter writes a time as the service reads it, "" for none.
func timeParameter(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// momentOf is the value of a flag that takes a moment of the past.
func momentOf(to *string, now func() time.Time) pflag.Value {
	return &value{kind: "string", parse: func(given string) error {
		if given == "" {
			*to = ""
			return nil
		}
		moment, err := readMoment(given, now())
		*to = moment
		return err
	}}
}

// readMoment reads a sequence, or a time that is not after now, also as how long ago it
// was, and returns it as the HTTP contract has it. Whether the log reaches that far is
// known to whoever reads it.
func readMoment(given string, now time.Time) (string, error) {
	if sequence, err := strconv.ParseInt(given, 10, 64); err == nil && sequence > 0 {
		return given, nil
	}
	at, err := readTimeOrAgo(given, now)
	switch {
	case err != nil:
		return "", adviceError("give a time such as 2026-03-04T12:00:00Z, 2h for two hours ago, or a sequence from 1 on")
	case at.After(now):
		return "", adviceError("which has not come yet, give a moment of the past")
	}
	return timeParameter(at), nil
}

// wholeNumber is the value of a flag that takes a whole number from least to most; a most
// of 0 is no bound. The flag's default is what to holds.
func wholeNumber[T ~int | ~int64](to *T, least, most T) pflag.Value {
	return &value{kind: "int", text: strconv.FormatInt(int64(*to), 10), parse: func(given string) error {
		n, err := strconv.ParseInt(given, 10, 64)
		switch {
		case err == nil && T(n) >= least && (most == 0 || T(n) <= most):
			*to = T(n)
			return nil
		case most == 0:
			return adviceError(fmt.Sprintf("give a whole number of at least %d", least))
		}
		return adviceError(fmt.Sprintf("give a whole number from %d to %d", least, most))
	}}
}

// durationOf is the value of a flag that takes a duration of at least least.
func durationOf(to *time.Duration, least time.Duration, advice adviceError) pflag.Value {
	return &value{kind: "duration", parse: func(given string) error {
		d, err := time.ParseDuration(given)
		if err != nil || d < least {
			return advice
		}
		*to = d
		return nil
	}}
}
