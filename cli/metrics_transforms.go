package cli

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
)

// trapNames are all traps that there are, so that each has its series from the start.
var trapNames = [...]abi.TrapName{
	abi.TrapUnreachable, abi.TrapMemory, abi.TrapTable, abi.TrapIndirect, abi.TrapIntegerOverflow, abi.TrapDivide, abi.TrapConversion,
	abi.TrapDepth, abi.TrapFuel, abi.TrapExit, abi.TrapEmit, abi.TrapState, abi.TrapQuota, abi.TrapTooLarge, abi.TrapAbort,
}

// transformMetrics are what the transforms of a job do and use, beside what they may use. Their labels are the names of
// the job file and the closed lists of traps and limits.
type transformMetrics struct {
	counters map[string]*prometheus.CounterVec // by name
	order    []prometheus.Collector
	traps    *prometheus.CounterVec
	memory   *prometheus.GaugeVec
	highest  map[string]int64 // memory, by transform
}

// counted are the counters of a transform: what they take of a batch, and what they are called.
var counted = [...]struct {
	name, help string
	of         func(*engine.StageStats) float64
}{
	{"transform_records_total", "Records that a transform took.", func(s *engine.StageStats) float64 { return float64(s.Records) }},
	{"transform_emitted_records_total", "Records that a transform emitted on its ports.", func(s *engine.StageStats) float64 { return float64(s.Emitted) }},
	{"transform_instances_total", "Instances made: one a lane and batch that has work, and more where a record failed.", func(s *engine.StageStats) float64 { return float64(s.Instances) }},
	{"transform_calls_total", "Calls of a transform, each with up to 1,024 records.", func(s *engine.StageStats) float64 { return float64(s.Calls) }},
	{"transform_fuel_total", "Fuel used, about one an instruction. limits.fuel bounds it by call and record.", func(s *engine.StageStats) float64 { return float64(s.Fuel) }},
	{"transform_output_bytes_total", "Bytes of emitted records.", func(s *engine.StageStats) float64 { return float64(s.Output) }},
	{"transform_log_bytes_total", "Bytes of log text that was heard.", func(s *engine.StageStats) float64 { return float64(s.Log) }},
	{"transform_log_lines_dropped_total", "Log lines that were dropped because a lane had logged its share.", func(s *engine.StageStats) float64 { return float64(s.Lost) }},
}

func newTransformMetrics(j *job.Job, labels prometheus.Labels) *transformMetrics {
	m := &transformMetrics{counters: map[string]*prometheus.CounterVec{}, highest: map[string]int64{}}
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "wasmill", Name: name, Help: help, ConstLabels: labels}
	}
	for _, c := range counted {
		m.counters[c.name] = prometheus.NewCounterVec(prometheus.CounterOpts(opts(c.name, c.help)), []string{"transform"})
		m.order = append(m.order, m.counters[c.name])
	}
	m.traps = prometheus.NewCounterVec(prometheus.CounterOpts(opts("transform_traps_total", "Why instances of a transform were stopped.")), []string{"transform", "trap"})
	m.memory = prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("transform_memory_peak_bytes", "Most memory that one instance has had.")), []string{"transform"})
	limits := prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("transform_limit",
		"What the job file allows a transform: bytes of memory, output and log, calls of depth, fuel of a call and a record.")), []string{"transform", "limit"})
	m.order = append(m.order, m.traps, m.memory, limits)
	for i := range j.Transforms {
		t := &j.Transforms[i]
		m.begin(t.Name)
		for limit, value := range map[string]float64{
			"memory": float64(t.Limits.Memory), "fuel_call": float64(t.Limits.FuelCall), "fuel_record": float64(t.Limits.FuelRecord),
			"depth": float64(t.Limits.Depth), "output": float64(t.Limits.Output), "log": float64(t.Limits.Log),
		} {
			limits.WithLabelValues(t.Name, limit).Set(value)
		}
	}
	return m
}

// begin gives a transform its series.
func (m *transformMetrics) begin(name string) {
	for _, c := range m.counters {
		c.WithLabelValues(name)
	}
	for _, trap := range trapNames {
		m.traps.WithLabelValues(name, string(trap))
	}
	m.memory.WithLabelValues(name)
}

func (m *transformMetrics) all() []prometheus.Collector { return m.order }

// batch adds what the transforms of a sealed batch did.
func (m *transformMetrics) batch(stages []engine.StageStats) {
	for i := range stages {
		s := &stages[i]
		for _, c := range counted {
			m.counters[c.name].WithLabelValues(s.Name).Add(c.of(s))
		}
		for trap, n := range s.Traps {
			m.traps.WithLabelValues(s.Name, string(trap)).Add(float64(n))
		}
		m.highest[s.Name] = max(m.highest[s.Name], s.Memory)
		m.memory.WithLabelValues(s.Name).Set(float64(m.highest[s.Name]))
	}
}
