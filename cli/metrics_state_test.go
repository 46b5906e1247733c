package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/engine"
	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/statestore"
)

// keyedWatch is that of a job with one stage with keys, whose late records nobody reads.
func keyedWatch(t *testing.T) (*job.Job, *stateWatch) {
	t.Helper()
	text := strings.Replace(metricsJob, "from: [first]", "from: [{input: first, keyBy: {key: true}}]", 1)
	j, err := job.Parse("job.yaml", []byte(text), job.Env{})
	if err != nil {
		t.Fatal(err)
	}
	w := newStateWatch(j)
	w.late = map[string]int{"second": 1}
	return j, w
}

func keyedBatch() engine.BatchStats {
	b := measuredBatch(3, 2)
	b.WatermarkMS = 1_767_225_590_000
	b.Sources[0].WatermarkMS, b.Sources[0].NewestMS, b.Sources[0].Idle = 1_767_225_595_000, 1_767_225_599_500, true
	s := &b.Stages[1]
	s.Ports, s.Timers, s.Updated, s.Removed, s.State = []int64{9, 5}, 4, 6, 2, 1608
	b.Steps[engine.StepSeal] = 7 * time.Millisecond
	return b
}

func keyedStats() (statestore.Stats, bool) {
	return statestore.Stats{
		Applied: 2, Last: 3, Versions: 1234, Bytes: 56789, BackendMemory: 4096, BacklogBatches: 1, BacklogBytes: 333,
		CacheBytes: 77, CacheHits: 10, CacheMisses: 3,
	}, true
}

// TestStateMetrics: a job with keyed stages exports what it keeps and where its time stands; late records that nobody reads
// are counted.
func TestStateMetrics(t *testing.T) {
	j, w := keyedWatch(t)
	m := newMetrics(j, "compiler", w)
	m.batch(keyedBatch())
	m.batch(measuredBatch(4, 1)) // nothing of event time: the gauges stay
	m.state.applied(3, 8, 900, 20*time.Millisecond)
	m.state.snapshot(3, 5, 700)
	s, err := listen(t.Context(), "127.0.0.1:0", m, newStatus("compiler", time.Now))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	if closed := scrape(t, s); bytes.Contains(closed, []byte("wasmill_state_stored_versions{")) {
		t.Error("a store that is not open is counted")
	}
	defer w.opened(keyedStats)()
	goldenScrape(t, s, "metrics_state.golden")
}

// TestProgressOfState holds the members of a batch's progress that are about state and event time to Spark's.
func TestProgressOfState(t *testing.T) {
	_, w := keyedWatch(t)
	var out bytes.Buffer
	p := &jsonProgress{w: &out, job: "measured", state: w}
	p.batch(keyedBatch())
	type shown struct {
		EventTime      map[string]string `json:"eventTime"`
		StateOperators json.RawMessage   `json:"stateOperators"`
	}
	read := func() (s shown) {
		t.Helper()
		if err := json.Unmarshal(out.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		return s
	}
	const operator = `"operatorName":"second","numRowsTotal":-1,"numRowsUpdated":6,"allUpdatesTimeMs":0,"numRowsRemoved":2,"allRemovalsTimeMs":0,` +
		`"commitTimeMs":7,"memoryUsedBytes":1608,"numRowsDroppedByWatermark":5,"numShufflePartitions":64,"numStateStoreInstances":4,"customMetrics":{`
	got := read()
	if want := "[{" + operator + `"timersFired":4}}]`; string(got.StateOperators) != want {
		t.Errorf("before the store is open:\n%s, want\n%s", got.StateOperators, want)
	}
	if e := got.EventTime; len(e) != 2 || e["max"] != "2025-12-31T23:59:59.500Z" || e["watermark"] != "2025-12-31T23:59:50.000Z" {
		t.Errorf("event time is %v", e)
	}
	defer w.opened(keyedStats)()
	p.batch(keyedBatch())
	want := "[{" + operator +
		`"backlogBatches":1,"backlogBytes":333,"cacheHits":10,"cacheMisses":3,"storeBytes":56789,"storeVersions":1234,"timersFired":4}}]`
	if got := read(); string(got.StateOperators) != want {
		t.Errorf("%s, want\n%s", got.StateOperators, want)
	}
	p.state = nil
	p.batch(measuredBatch(5, 1))
	if text := out.String(); strings.Contains(text, "eventTime") || !strings.Contains(text, `"stateOperators":[]`) {
		t.Errorf("without state and event time: %s", text)
	}
}

// TestProgressLineOfState: the line says what is kept, where anything is.
func TestProgressLineOfState(t *testing.T) {
	_, w := keyedWatch(t)
	now := time.Unix(100, 0)
	p := &lineProgress{w: &bytes.Buffer{}, now: func() time.Time { return now }, began: now, state: w}
	if text := p.text(0); strings.Contains(text, "state") {
		t.Errorf("a store that is not open: %s", text)
	}
	defer w.opened(keyedStats)()
	if text := p.text(0); !strings.HasSuffix(text, "   state of 56,789 bytes on disk") {
		t.Errorf("the line is %s", text)
	}
}
