package cli

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/statestore"
)

// stateWatch knows of a running job's state what its batches do not say themselves.
type stateWatch struct {
	keyed map[string]bool // stages with keys, by name
	lanes int
	late  map[string]int // by transform: the port for late records, where nobody reads it
	// ask asks the store while the job is open, nil else.
	ask atomic.Pointer[func() (statestore.Stats, bool)]
}

// opened begins to ask a store for what it says of itself, until the function that it returns is called.
func (w *stateWatch) opened(ask func() (statestore.Stats, bool)) (closed func()) {
	w.ask.Store(&ask)
	return func() { w.ask.Store(nil) }
}

func newStateWatch(j *job.Job) *stateWatch {
	w := &stateWatch{keyed: map[string]bool{}, lanes: j.Lanes}
	for i := range j.Transforms {
		if j.Transforms[i].Keyed() {
			w.keyed[j.Transforms[i].Name] = true
		}
	}
	return w
}

// stats is what the store says of itself; false where there is none, or it is not open.
func (w *stateWatch) stats() (statestore.Stats, bool) {
	if w == nil {
		return statestore.Stats{}, false
	}
	if ask := w.ask.Load(); ask != nil {
		return (*ask)()
	}
	return statestore.Stats{}, false
}

// dropped counts the late records of a stage that nobody takes.
func (w *stateWatch) dropped(s *engine.StageStats) int64 {
	if port, ok := w.late[s.Name]; ok && port < len(s.Ports) {
		return s.Ports[port]
	}
	return 0
}

// stateMetrics are what a job with keyed stages exports of its state. Other jobs have none of it.
type stateMetrics struct {
	watch   *stateWatch
	apply   prometheus.Histogram
	entries prometheus.Counter
	bytes   prometheus.Counter
	snaps   prometheus.Counter
	size    prometheus.Gauge
	updated *prometheus.CounterVec
	removed *prometheus.CounterVec
	timers  *prometheus.CounterVec
	overlay *prometheus.GaugeVec
	gauges  []stateGauge
}

// stateGauge is read when somebody asks for it.
type stateGauge struct {
	desc *prometheus.Desc
	of   func(*statestore.Stats) int64
	kind prometheus.ValueType
}

func newStateMetrics(w *stateWatch, labels prometheus.Labels) *stateMetrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "wasmill", Subsystem: "state", Name: name, Help: help, ConstLabels: labels}
	}
	counters := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), []string{"transform"})
	}
	m := &stateMetrics{
		watch: w,
		apply: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "wasmill", Subsystem: "state", Name: "apply_duration_seconds", ConstLabels: labels,
			Help: "Duration of applying the changes of a sealed batch, in the background.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
		entries: prometheus.NewCounter(prometheus.CounterOpts(opts("changelog_entries_total", "Entries of changelogs that were applied."))),
		bytes:   prometheus.NewCounter(prometheus.CounterOpts(opts("changelog_bytes_total", "Bytes of changelogs that were applied, before compression."))),
		snaps:   prometheus.NewCounter(prometheus.CounterOpts(opts("snapshots_total", "Snapshots written, which the store can be built anew from."))),
		size:    prometheus.NewGauge(prometheus.GaugeOpts(opts("snapshot_bytes", "Bytes of the last snapshot, before compression."))),
		updated: counters("updated_entries_total", "Entries of tables that sealed batches have put."),
		removed: counters("removed_entries_total", "Entries of tables that sealed batches have removed."),
		timers:  counters("fired_timers_total", "Timers that have fired in sealed batches."),
		overlay: prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("overlay_bytes", "Memory that the changes of the last batch took.")), []string{"transform"}),
	}
	gauge := func(name, help string, of func(*statestore.Stats) int64) {
		m.gauges = append(m.gauges, stateGauge{prometheus.NewDesc("wasmill_state_"+name, help, nil, labels), of, prometheus.GaugeValue})
	}
	gauge("stored_versions", "About how many versions of entries, timers and indexes the store has, those included that were replaced or deleted and are not compacted yet; no number of keys, which state ls counts.",
		func(s *statestore.Stats) int64 { return s.Versions })
	gauge("bytes", "Bytes of the store on disk, without changelogs.", func(s *statestore.Stats) int64 { return s.Bytes })
	gauge("memory_bytes", "Memory of the store's tables and caches, as far as known.", func(s *statestore.Stats) int64 { return s.BackendMemory })
	count := func(name, help string, of func(*statestore.Stats) int64) {
		m.gauges = append(m.gauges, stateGauge{prometheus.NewDesc("wasmill_state_"+name, help, nil, labels), of, prometheus.CounterValue})
	}
	count("cache_hits_total", "Reads that a last value in memory answered.", func(s *statestore.Stats) int64 { return s.CacheHits })
	count("cache_misses_total", "Reads that went to the store.", func(s *statestore.Stats) int64 { return s.CacheMisses })
	gauge("cache_bytes", "Memory of the last values that were read or written.", func(s *statestore.Stats) int64 { return s.CacheBytes })
	gauge("backlog_batches", "Sealed batches that wait to be applied.", func(s *statestore.Stats) int64 { return int64(s.BacklogBatches) })
	gauge("backlog_bytes", "Bytes of sealed batches that wait to be applied.", func(s *statestore.Stats) int64 { return s.BacklogBytes })
	gauge("applied_batch_id", "Newest batch whose changes are in the store; -1 none.", func(s *statestore.Stats) int64 { return s.Applied })
	for name := range w.keyed {
		for _, v := range []*prometheus.CounterVec{m.updated, m.removed, m.timers} {
			v.WithLabelValues(name)
		}
		m.overlay.WithLabelValues(name)
	}
	return m
}

func (m *stateMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.apply, m.entries, m.bytes, m.snaps, m.size, m.updated, m.removed, m.timers, m.overlay, m}
}

func (m *stateMetrics) snapshot(_, _, bytes int64) {
	m.snaps.Inc()
	m.size.Set(float64(bytes))
}

// applied takes what applying the changes of a batch was.
func (m *stateMetrics) applied(_, entries, bytes int64, took time.Duration) {
	m.apply.Observe(took.Seconds())
	m.entries.Add(float64(entries))
	m.bytes.Add(float64(bytes))
}

func (m *stateMetrics) batch(stages []engine.StageStats) {
	for i := range stages {
		s := &stages[i]
		if !m.watch.keyed[s.Name] {
			continue
		}
		m.updated.WithLabelValues(s.Name).Add(float64(s.Updated))
		m.removed.WithLabelValues(s.Name).Add(float64(s.Removed))
		m.timers.WithLabelValues(s.Name).Add(float64(s.Timers))
		m.overlay.WithLabelValues(s.Name).Set(float64(s.State))
	}
}

// Describe implements prometheus.Collector.
func (m *stateMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, g := range m.gauges {
		out <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (m *stateMetrics) Collect(out chan<- prometheus.Metric) {
	s, ok := m.watch.stats()
	if !ok {
		return
	}
	for _, g := range m.gauges {
		out <- prometheus.MustNewConstMetric(g.desc, g.kind, float64(g.of(&s)))
	}
}

// timeMetrics are what a job exports of event time. A series begins when there is something to say.
type timeMetrics struct {
	watch   *stateWatch
	job     *prometheus.GaugeVec
	sources *prometheus.GaugeVec
	idle    *prometheus.GaugeVec
	late    *prometheus.CounterVec
}

func newTimeMetrics(w *stateWatch, labels prometheus.Labels) *timeMetrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "wasmill", Name: name, Help: help, ConstLabels: labels}
	}
	return &timeMetrics{
		watch:   w,
		job:     prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("watermark_timestamp_seconds", "Watermark of the last sealed batch.")), nil),
		sources: prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("source_watermark_timestamp_seconds", "A source's own watermark after the last sealed batch.")), []string{"source"}),
		idle:    prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("source_idle", "1 while a source's watermark goes on with the clock.")), []string{"source"}),
		late:    prometheus.NewCounterVec(prometheus.CounterOpts(opts("transform_late_records_total", "Records that a transform sent to a port late that nobody reads.")), []string{"transform"}),
	}
}

func (m *timeMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.job, m.sources, m.idle, m.late}
}

func (m *timeMetrics) batch(s *engine.BatchStats) {
	if s.WatermarkMS > 0 {
		m.job.WithLabelValues().Set(float64(s.WatermarkMS) / 1000)
	}
	for i := range s.Sources {
		src := &s.Sources[i]
		if src.WatermarkMS <= 0 {
			continue
		}
		m.sources.WithLabelValues(src.Name).Set(float64(src.WatermarkMS) / 1000)
		idle := 0.0
		if src.Idle {
			idle = 1
		}
		m.idle.WithLabelValues(src.Name).Set(idle)
	}
	for i := range s.Stages {
		if _, ok := m.watch.late[s.Stages[i].Name]; ok {
			m.late.WithLabelValues(s.Stages[i].Name).Add(float64(m.watch.dropped(&s.Stages[i])))
		}
	}
}
