package cli

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
)

// metrics are what a running job exports, by Prometheus' naming rules. Labels are names of the job file, never data.
type metrics struct {
	registry *prometheus.Registry
	in       *prometheus.CounterVec
	out      *prometheus.CounterVec
	letters  prometheus.Counter
	skipped  prometheus.Counter
	poison   prometheus.Counter
	restarts prometheus.Counter
	batches  prometheus.Counter
	last     prometheus.Gauge
	lastTime prometheus.Gauge
	steps    *prometheus.HistogramVec
	total    prometheus.Histogram
	recovery *prometheus.CounterVec
	warnings prometheus.Counter
	verified prometheus.Counter
	differed prometheus.Counter

	transforms *transformMetrics
	lags       *sourceLags
	times      *timeMetrics
	state      *stateMetrics // nil: no stage has keys
}

func newMetrics(j *job.Job, kind string, watch *stateWatch) *metrics {
	labels := prometheus.Labels{"job_name": j.Name}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "wasmill", Name: name, Help: help, ConstLabels: labels})
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "wasmill", Name: name, Help: help, ConstLabels: labels}, []string{label})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "wasmill", Name: name, Help: help, ConstLabels: labels})
	}
	buckets := prometheus.ExponentialBuckets(0.001, 2, 16)
	m := &metrics{
		registry: prometheus.NewRegistry(),
		in:       counters("source_records_total", "Records read in sealed batches, by source.", "source"),
		out:      counters("sink_records_total", "Records published in sealed batches, by sink.", "sink"),
		letters:  counter("dead_letters_total", "Records set aside as dead letters."),
		skipped:  counter("skipped_records_total", "Records dropped under error policy skip."),
		poison:   counter("poison_records_total", "Records that a lane was started again without."),
		restarts: counter("lane_restarts_total", "Lane runs started again after a transform failed."),
		batches:  counter("batches_total", "Sealed batches."),
		last:     gauge("last_batch_id", "Id of the last sealed batch."),
		lastTime: gauge("last_batch_timestamp_seconds", "Batch time of the last sealed batch."),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "wasmill", Name: "batch_step_duration_seconds", Help: "Duration of the steps of a batch.", ConstLabels: labels, Buckets: buckets,
		}, []string{"step"}),
		total: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "wasmill", Name: "batch_duration_seconds", Help: "Duration of a batch, from planning to sealed.", ConstLabels: labels, Buckets: buckets,
		}),
		recovery: counters("recoveries_total", "What recovery did, by rung.", "rung"),
		warnings: counter("warnings_total", "What was reported and not fatal."),
		verified: counter("verified_batches_total", "Batches run once more on the other engine, with --verify-replay."),
		differed: counter("verify_mismatches_total", "Batches that came to something else on the other engine."),

		transforms: newTransformMetrics(j, labels),
		lags:       newSourceLags(labels),
		times:      newTimeMetrics(watch, labels),
	}
	if len(watch.keyed) > 0 {
		m.state = newStateMetrics(watch, labels)
		m.registry.MustRegister(m.state.all()...)
	}
	m.registry.MustRegister(m.times.all()...)
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "wasmill", Name: "build_info", Help: "Always 1; the labels say which program runs.",
		ConstLabels: prometheus.Labels{"version": buildVersions().Version, "engine": kind},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.in, m.out, m.letters, m.skipped, m.poison, m.restarts, m.batches, m.last, m.lastTime, m.steps, m.total, m.recovery, m.warnings,
		m.verified, m.differed, build, engineInfo(kind),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.registry.MustRegister(m.transforms.all()...)
	m.registry.MustRegister(m.lags)
	m.last.Set(-1)
	return m
}

func (m *metrics) batch(s engine.BatchStats) {
	for _, src := range s.Sources {
		m.in.WithLabelValues(src.Name).Add(float64(src.Records))
	}
	for _, k := range s.Sinks {
		m.out.WithLabelValues(k.Name).Add(float64(k.Records))
	}
	m.transforms.batch(s.Stages)
	m.lags.batch()
	m.times.batch(&s)
	if m.state != nil {
		m.state.batch(s.Stages)
	}
	m.letters.Add(float64(s.Letters))
	m.skipped.Add(float64(s.Skipped))
	m.poison.Add(float64(s.Poison))
	m.restarts.Add(float64(s.Restarts))
	m.batches.Inc()
	m.last.Set(float64(s.Batch))
	m.lastTime.Set(float64(s.TimeMS) / 1000)
	m.total.Observe(s.Total.Seconds())
	for step, d := range s.Steps {
		m.steps.WithLabelValues(string(step)).Observe(d.Seconds())
	}
}

func (m *metrics) recovered(r engine.Recovery) { m.recovery.WithLabelValues(r.Rung).Inc() }

func (m *metrics) warning() { m.warnings.Inc() }

func (m *metrics) verify(differs error) {
	m.verified.Inc()
	if differs != nil {
		m.differed.Inc()
	}
}
