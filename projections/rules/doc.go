// Package rules says what a failure means: its class, what trying again can do, the
// signature that tells it from other failures, how long to leave the server alone,
// and whether calls to it are refused meanwhile.
//
// All of that is written in a rule set, one YAML file of ordered rules. Parse reads
// one, Builtin gives those that come with the program, and Set.Classify applies one
// to evidence. A set is values: it never changes after Parse and may be used from
// any number of goroutines. The same evidence under the same set gives the same
// verdict on every machine.
//
// What a rule may look at is the evidence alone. The package knows no clock, no
// server, no history: how many failures make a skip is for the folds of package
// projections, which ask the verdict's policy.
//
// Three steps lead to a verdict. The texts of the evidence are cleaned and cut into
// lines, and the lines that say what failed, the decisive block, are told from
// banners, warnings and stack frames. The rules are tried in order; one pass for the
// literals of all patterns picks the few that can match at all. Last, the decisive
// block is scrubbed of what varies from run to run and hashed into the signature.
package rules
