package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpledger/events"
	"mcpledger/events/sqlite"
	"mcpledger/projections/rules"
	"mcpledger/projections/simulate"
)

// fleets are the synthetic fleets by the name they are asked for.
var fleets = map[string]func(seed uint64) simulate.Fleet{
	"month":          simulate.Mixed,
	"year":           simulate.Year,
	"never-answered": simulate.NeverAnswered,
	"week":           simulate.Week,
}

// recordedAtOnce is how many simulated events are appended in one batch.
const recordedAtOnce = 256

func (p *program) simulateCommand() *cobra.Command {
	var sets []string
	var fleet, into string
	seed := int64(1)
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Let time pass over synthetic servers under several failure policies, and compare",
		Long: "Let time pass over a synthetic fleet of servers, of which some break and are repaired,\n" +
			"and print what each policy costs: attempts in vain against recoveries noticed late. Without\n" +
			"--rules the policies are the default and changes of its numbers. Nothing is started and,\n" +
			"without --log, nothing is written; the same seed gives the same fleet.",
		Args: noArgs,
	}
	cmd.Flags().StringArrayVar(&sets, "rules", nil, "compare the default with this rule `set` or file; may be given several times")
	names := slices.Sorted(maps.Keys(fleets))
	cmd.Flags().Var(choice(&fleet, names...), "fleet", "the `fleet`: "+strings.Join(names, ", ")+"; default: month")
	cmd.Flags().Var(wholeNumber(&seed, 0, 0), "seed", "the `number` that the fleet's chance begins with")
	cmd.Flags().StringVar(&into, "log", "", "write what happens under the default into a new log in this `folder`, to try rules on")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f := fleets[cmp.Or(fleet, "month")](uint64(seed))
		if into != "" {
			return p.recordSimulation(cmd.Context(), f, into)
		}
		results, err := simulateUnder(f, sets)
		if err != nil {
			return err
		}
		if p.json {
			return p.printJSON(simulationOf(f, results))
		}
		fmt.Fprintf(p.stdout, "%s, %s, seed %d\n\n", f.Name, count(len(f.Servers), "server"), f.Seed)
		_, err = fmt.Fprint(p.stdout, simulate.Table(results))
		return err
	}
	return cmd
}

// recordSimulation lets the fleet's time pass under the default set and appends what
// happens to a new log.
func (p *program) recordSimulation(ctx context.Context, f simulate.Fleet, folder string) (err error) {
	var now time.Time
	log, err := sqlite.Open(ctx, folder, sqlite.Options{Now: func() time.Time { return now }})
	if err != nil {
		return unrecorded(err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	switch head, err := log.Head(ctx); {
	case err != nil:
		return err
	case head.Sequence > 0:
		return usagef("--log: there is a log in %s already, name a new folder", folder)
	}
	var batch []events.Event
	var failed error
	write := func() {
		if failed == nil && len(batch) > 0 {
			now = batch[len(batch)-1].Time
			_, failed = log.Append(ctx, batch)
		}
		batch = batch[:0]
	}
	r := f.Run(rules.Default(), func(e events.Event) {
		if batch = append(batch, e); len(batch) == recordedAtOnce {
			write()
		}
	})
	if write(); failed != nil {
		return unrecorded(failed)
	}
	_, err = fmt.Fprintf(p.stdout, "%s, seed %d: %s in %s\n", f.Name, f.Seed, count(int(r.Events), "event"), folder)
	return err
}

// unrecorded adds to an error of a simulation's log what a person can do about it.
func unrecorded(err error) error {
	if errors.Is(err, events.ErrUnavailable) {
		return fmt.Errorf("%w; make room there, or name another folder with --log", err)
	}
	return err
}

// simulateUnder lets the fleet's time pass under the default set and the sets named,
// or under the candidate policies when none is.
func simulateUnder(f simulate.Fleet, sets []string) ([]simulate.Result, error) {
	if len(sets) == 0 {
		return simulate.Compare(f, rules.Default(), simulate.Candidates())
	}
	all := []*rules.Set{rules.Default()}
	for _, arg := range sets {
		set, err := readRules(arg)
		if err != nil {
			return nil, err
		}
		all = append(all, set)
	}
	results := make([]simulate.Result, len(all))
	for i, set := range all {
		results[i] = f.Run(set, nil)
	}
	return results, nil
}

// simulation is what simulate prints as JSON.
type simulation struct {
	Fleet    string            `json:"fleet"`
	Seed     uint64            `json:"seed"`
	SpanMS   int64             `json:"span_ms"`
	Policies []simulatedPolicy `json:"policies"`
}

type simulatedPolicy struct {
	Policy string          `json:"policy"`
	Events int64           `json:"events"`
	Kinds  []simulatedKind `json:"kinds"`
}

// simulatedKind is what came of the servers of one kind. Mean, p95 and max are of how
// late recoveries were noticed.
type simulatedKind struct {
	Kind         string  `json:"kind"`
	Servers      int     `json:"servers"`
	WastedPerDay float64 `json:"wasted_per_server_and_day"`
	Recoveries   int     `json:"recoveries"`
	Missed       int     `json:"missed"`
	MeanMS       int64   `json:"mean_ms"`
	P95MS        int64   `json:"p95_ms"`
	MaxMS        int64   `json:"max_ms"`
}

func simulationOf(f simulate.Fleet, results []simulate.Result) simulation {
	s := simulation{Fleet: f.Name, Seed: f.Seed, SpanMS: f.Span.Milliseconds(), Policies: []simulatedPolicy{}}
	for _, r := range results {
		policy := simulatedPolicy{Policy: r.Policy, Events: r.Events, Kinds: []simulatedKind{}}
		for _, kind := range r.Kinds() {
			sum := r.Of(kind)
			policy.Kinds = append(policy.Kinds, simulatedKind{
				Kind: string(kind), Servers: sum.Servers, WastedPerDay: sum.WastedPerDay, Recoveries: sum.Recoveries,
				Missed: sum.Missed, MeanMS: sum.Mean.Milliseconds(), P95MS: sum.P95.Milliseconds(), MaxMS: sum.Max.Milliseconds(),
			})
		}
		s.Policies = append(s.Policies, policy)
	}
	return s
}
