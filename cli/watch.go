package cli

import (
	"context"
	"fmt"
	"log/slog"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/statestore"
)

// watch starts what shows the job's progress: a line or JSON, metrics and health.
func (r *running) watch(ctx context.Context, c *ucli.Context) error {
	e := r.env
	r.status = newStatus(r.kind, e.Now)
	r.state = newStateWatch(r.job)
	r.metrics = newMetrics(r.job, r.kind, r.state)
	switch how := c.String("progress"); how {
	case progressNone:
		r.progress = noProgress{}
	case progressJSON:
		p := &jsonProgress{w: e.Stdout, job: r.job.Name, sources: map[string]string{}, lags: r.metrics.lags, state: r.state}
		for i := range r.job.Sources {
			p.sources[r.job.Sources[i].Name] = describe(&r.job.Sources[i])
		}
		for i := range r.job.Sinks {
			s := &r.job.Sinks[i]
			if s.Stdout != nil {
				p.w = e.Stderr // stdout is the sink's
			}
			if p.sink == "" {
				p.sink = describeSink(s)
			}
		}
		r.progress = p
	case progressAuto:
		r.progress = &lineProgress{w: e.Stderr, now: e.Now, tty: e.StderrTerminal, dead: r.job.Errors.DeadLetters, verifies: r.verifies, allowed: r.allowed.Load, lags: r.metrics.lags, state: r.state}
	default:
		return usagef(c, "--progress %q: it is auto, json or none", how)
	}
	address := c.String("listen")
	if address == "" {
		return nil
	}
	var err error
	if r.server, err = listen(ctx, address, r.metrics, r.status); err != nil {
		return err
	}
	r.log.Info("listening", "address", r.server.address())
	return nil
}

// leftOut takes up what a source goes on without, for the summary.
func (r *running) leftOut(l *source.LeftOutError) {
	p, ok := r.progress.(*lineProgress)
	switch {
	case !ok:
	case len(p.left) < maxLeftOut:
		p.left = append(p.left, l)
	default:
		p.more++
	}
}

func (r *running) close(failed error) {
	r.progress.close(failed)
	if r.server != nil {
		if err := r.server.close(); err != nil {
			r.log.Warn("close the listener", "error", err)
		}
	}
}

// stateEvents connects the state store to the log and the metrics.
func (r *running) stateEvents() statestore.Events {
	events := statestore.Events{Warning: func(op string, err error) {
		r.metrics.warning()
		r.log.Warn(op, "error", err)
	}}
	events.Rebuilt = func(snapshot int64, why error) {
		from := "changelogs alone"
		if snapshot >= 0 {
			from = fmt.Sprintf("the snapshot of batch %d", snapshot)
		}
		r.log.Warn("the state store was built anew", "from", from, "reason", why)
	}
	if m := r.metrics.state; m != nil {
		events.Applied, events.Snapshot = m.applied, m.snapshot
	}
	return events
}

// events connects the engine to the log, the metrics and the progress.
func (r *running) events(ctx context.Context) *engine.Events {
	return &engine.Events{
		Opened: r.progress.start,
		Step:   func(_ checkpoint.BatchID, s engine.Step, done bool) { r.status.step(s, done) },
		Batch: func(s engine.BatchStats) {
			r.sealed.Add(1)
			r.metrics.batch(s)
			r.progress.batch(s)
			for _, t := range s.Stages {
				for _, failure := range t.Failures {
					r.log.Warn("a record was set aside", "batch", s.Batch, "transform", t.Name, "failure", failure)
				}
			}
		},
		Verified: func(id checkpoint.BatchID, differs error) {
			r.metrics.verify(differs)
			if differs == nil {
				r.progress.verified(id)
			}
			r.log.Debug("verified on the other engine", "batch", id, "same", differs == nil)
		},
		Recovered: func(rec engine.Recovery) {
			r.metrics.recovered(rec)
			level := slog.LevelInfo
			if rec.Rung == "done" {
				level = slog.LevelDebug // how every good start begins
			}
			r.log.Log(ctx, level, "recovered", "batch", rec.Batch, "target", rec.Target, "rung", rec.Rung, "detail", rec.Detail)
		},
		Warning: func(op string, err error) {
			r.metrics.warning()
			r.log.Warn(op, "error", err)
		},
	}
}
