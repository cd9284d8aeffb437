package httpapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"mcpledger/events"
	"mcpledger/httpapi/api"
	"mcpledger/projections/replay"
	"mcpledger/projections/rules"
)

// Bounds on replays, each of which reads the whole log.
const (
	maxWaiting     = 3  // besides the one that runs
	maxReplaysKept = 16 // that have ended
)

// errReplayCancelled is why a replay failed that somebody cancelled.
var errReplayCancelled = errors.New("cancelled by request")

// replays runs one replay at a time, in the order they were asked for, and remembers
// the last ones.
type replays struct {
	mu      sync.Mutex
	running *replayJob // nil: none
	waiting []*replayJob
	ended   []*replayJob // the last to end last
}

// replayJob is one replay.
type replayJob struct {
	id     string
	run    func(context.Context, func(done, total events.Sequence)) (replay.Report, error)
	ctx    context.Context // ends when it is cancelled
	cancel context.CancelCauseFunc
	over   chan struct{} // closed at its end

	mu       sync.Mutex
	progress float64
	report   *replay.Report // nil until it is done
	err      error          // why it failed
}

// add has a job run when those before it have ended. It reports false when too many
// wait already.
func (r *replays) add(j *replayJob) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.running == nil:
		r.running = j
		go r.work(j)
	case len(r.waiting) < maxWaiting:
		r.waiting = append(r.waiting, j)
	default:
		return false
	}
	return true
}

// work runs a job and then those that wait.
func (r *replays) work(j *replayJob) {
	for j != nil {
		j.do()
		r.mu.Lock()
		r.keep(j)
		j, r.running = nil, nil
		if len(r.waiting) > 0 {
			j, r.waiting = r.waiting[0], r.waiting[1:]
			r.running = j
		}
		r.mu.Unlock()
	}
}

// keep remembers a job that has ended. It is called with mu held.
func (r *replays) keep(j *replayJob) {
	r.ended = append(r.ended, j)
	r.ended = r.ended[max(0, len(r.ended)-maxReplaysKept):]
}

// find returns the job with the id, and whether it waits for its turn; nil if there
// is none.
func (r *replays) find(id string) (j *replayJob, waiting bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running != nil && r.running.id == id {
		return r.running, false
	}
	has := func(j *replayJob) bool { return j.id == id }
	if i := slices.IndexFunc(r.waiting, has); i >= 0 {
		return r.waiting[i], true
	}
	if i := slices.IndexFunc(r.ended, has); i >= 0 {
		return r.ended[i], false
	}
	return nil, false
}

// cancel ends the job with the id and returns it; nil if there is none. One that waits
// gives up its place at once.
func (r *replays) cancel(id string) *replayJob {
	j, waiting := r.find(id)
	if j == nil {
		return nil
	}
	j.cancel(errReplayCancelled)
	if !waiting {
		return j
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.waiting, j); i >= 0 { // else its turn has come meanwhile
		r.waiting = slices.Delete(r.waiting, i, i+1)
		j.do()
		r.keep(j)
	}
	return j
}

// do runs the job to its end, which comes at once for one that was cancelled.
func (j *replayJob) do() {
	defer close(j.over)
	defer j.cancel(nil)
	var report replay.Report
	err := context.Cause(j.ctx)
	if err == nil {
		report, err = j.run(j.ctx, j.reached)
		err = cmp.Or(context.Cause(j.ctx), err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err = err; err == nil {
		j.progress, j.report = 1, &report
	}
}

func (j *replayJob) reached(done, total events.Sequence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progress = float64(done) / float64(total)
}

// StartReplay answers POST /api/replays.
func (a *API) StartReplay(ctx context.Context, r api.StartReplayRequestObject) (api.StartReplayResponseObject, error) {
	set, err := a.candidate(ctx, r.Body.Rules)
	if err != nil {
		return nil, err
	}
	opts := replay.Options{Servers: r.Body.Servers, All: r.Body.All, Now: a.now}
	if opts.Since, err = parseBound("since", r.Body.Since); err != nil {
		return nil, err
	}
	if opts.Until, err = parseBound("until", r.Body.Until); err != nil {
		return nil, err
	}
	switch err := opts.Check(ctx, a.log); {
	case errors.Is(err, replay.ErrEmptySpan), errors.Is(err, replay.ErrUnknownServer):
		return nil, refuse(codeBadBody, "nothing would be counted: %v", err)
	case err != nil:
		return nil, err
	}
	j := a.newReplay(set, opts)
	if !a.replays.add(j) {
		j.cancel(nil)
		return nil, refuse(codeTooManyReplays, "one replay runs and %d wait; cancel one or try again later", maxWaiting)
	}
	return api.StartReplay202JSONResponse{ReplayId: j.id}, nil
}

// newReplay returns the job that compares a set with the one in force when it runs.
// It ends with the service.
func (a *API) newReplay(candidate *rules.Set, opts replay.Options) *replayJob {
	ctx, cancel := context.WithCancelCause(a.draining)
	return &replayJob{
		id: uuid.Must(uuid.NewV7()).String(), ctx: ctx, cancel: cancel, over: make(chan struct{}),
		run: func(ctx context.Context, progress func(done, total events.Sequence)) (replay.Report, error) {
			opts.Progress = progress
			return replay.Run(ctx, a.log, a.engine.Rules(), candidate, opts)
		},
	}
}

// parseBound reads a bound of time, zero for "".
func parseBound(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, refuse(codeBadBody, "%s: %q is no RFC 3339 time", name, text)
	}
	return t, nil
}

// GetReplay answers GET /api/replays/{replay_id}.
func (a *API) GetReplay(ctx context.Context, r api.GetReplayRequestObject) (api.GetReplayResponseObject, error) {
	j, waiting := a.replays.find(r.ReplayId)
	if j == nil {
		return nil, noSuchReplay(r.ReplayId)
	}
	m, err := a.place(ctx, "", "")
	if err != nil {
		return nil, err
	}
	return api.GetReplay200JSONResponse{
		Body: j.show(waiting), Headers: api.GetReplay200ResponseHeaders{LedgerSequence: int64(m.sequence)},
	}, nil
}

func (j *replayJob) show(waiting bool) api.Replay {
	j.mu.Lock()
	defer j.mu.Unlock()
	shown := api.Replay{
		ReplayId: j.id, Status: api.ReplayStatusRunning, Waiting: waiting, Progress: j.progress, Report: j.report,
	}
	switch {
	case j.err != nil:
		shown.Status, shown.Error, shown.Waiting = api.ReplayStatusFailed, j.err.Error(), false
	case j.report != nil:
		shown.Status, shown.Waiting = api.ReplayStatusDone, false
	}
	return shown
}

// CancelReplay answers DELETE /api/replays/{replay_id}.
func (a *API) CancelReplay(ctx context.Context, r api.CancelReplayRequestObject) (api.CancelReplayResponseObject, error) {
	j := a.replays.cancel(r.ReplayId)
	if j == nil {
		return nil, noSuchReplay(r.ReplayId)
	}
	select {
	case <-j.over:
		return api.CancelReplay204Response{}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func noSuchReplay(id string) error {
	return refuse(codeReplayNotFound, "no replay has the id %q; those of earlier starts are gone", id)
}
