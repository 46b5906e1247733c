package examples

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/abi"
)

// ledgerEntry is a record for the ledger; it is number i of the input.
type ledgerEntry struct {
	key string
	at  int64 // event time, milliseconds
	n   int64
}

// What the ledger does with times, in milliseconds.
const (
	ledgerWindow = 10_000
	ledgerSeen   = 40
	ledgerAlarm  = 25
	ledgerLanes  = 4
)

// ledgerTimer is a timer of the ledger.
type ledgerTimer struct {
	domain int
	at     int64
	key    string
}

func compareTimers(a, b ledgerTimer) int {
	return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.at, b.at), cmp.Compare(a.key, b.key))
}

type ledgerKey struct {
	key    string
	window int64
}

// ledgerOracle is what the ledger must do, in plain maps: the same as ledger.c, from the plans and nothing else.
type ledgerOracle struct {
	entries []ledgerEntry
	sums    map[string]int64
	windows map[ledgerKey][]int // numbers of entries
	seen    map[string]seenEntry
	timers  map[ledgerTimer]bool

	highest int64 // newest event time
	newest  int64 // time of the last batch with entries
	late    int64 // the watermark of the batch before
	lateN   int   // entries that were late
	fired   int
}

type seenEntry struct {
	i      int
	expiry int64
}

func newOracle(entries []ledgerEntry) *ledgerOracle {
	return &ledgerOracle{
		entries: entries, sums: map[string]int64{}, windows: map[ledgerKey][]int{}, seen: map[string]seenEntry{}, timers: map[ledgerTimer]bool{},
	}
}

// ledgerPlan is what a plan says of a batch, in milliseconds.
type ledgerPlan struct {
	batch           int
	time, watermark int64
}

func laneOf(key string) int { return abi.LaneOfGroup(abi.KeyGroup([]byte(key)), ledgerLanes) }

// batch is what comes out of a batch that has these entries, line by line.
func (o *ledgerOracle) batch(p ledgerPlan, numbers []int) []string {
	due := slices.SortedFunc(maps.Keys(o.timers), compareTimers)
	due = slices.DeleteFunc(due, func(t ledgerTimer) bool {
		return t.at > []int64{p.watermark, p.time}[t.domain] || t.domain == 0 && p.watermark == 0
	})
	var lanes [ledgerLanes][]string
	for _, i := range numbers {
		lane := laneOf(o.entries[i].key)
		lanes[lane] = append(lanes[lane], o.record(p, i))
	}
	for _, t := range due {
		delete(o.timers, t)
		o.fired++
		lane := laneOf(t.key)
		lanes[lane] = append(lanes[lane], o.fire(p, t))
	}
	o.late = p.watermark
	return slices.Concat(lanes[:]...)
}

func (o *ledgerOracle) record(p ledgerPlan, i int) string {
	e := o.entries[i]
	o.highest = max(o.highest, e.at)
	window := e.at - e.at%ledgerWindow
	head := fmt.Sprintf(`{"batch":%d,"key":%q,"i":%d,`, p.batch, e.key, i)
	if window+ledgerWindow <= o.late {
		o.lateN++
		return head + `"late":true}`
	}
	o.sums[e.key] += e.n
	seen := "null"
	if s, ok := o.seen[e.key]; ok && s.expiry > p.time {
		seen = strconv.Itoa(s.i)
	}
	k := ledgerKey{e.key, window}
	o.windows[k] = append(o.windows[k], i)
	o.seen[e.key] = seenEntry{i, p.time + ledgerSeen}
	o.timers[ledgerTimer{0, window + ledgerWindow, e.key}] = true
	if e.n%3 == 0 {
		o.timers[ledgerTimer{1, p.time + ledgerAlarm, e.key}] = true
	}
	return head + fmt.Sprintf(`"sum":%d,"seen":%s}`, o.sums[e.key], seen)
}

func (o *ledgerOracle) fire(p ledgerPlan, t ledgerTimer) string {
	head := fmt.Sprintf(`{"batch":%d,"key":%q,`, p.batch, t.key)
	if t.domain == 1 {
		return head + fmt.Sprintf(`"alarm":%d}`, t.at)
	}
	k := ledgerKey{t.key, t.at - ledgerWindow}
	items := strings.ReplaceAll(strings.Trim(fmt.Sprint(o.windows[k]), "[]"), " ", ",")
	count := len(o.windows[k])
	delete(o.windows, k)
	return head + fmt.Sprintf(`"window":%d,"count":%d,"items":[%s]}`, k.window, count, items)
}

// state is what is kept at the end of a batch at that time, in the words of exported.
func (o *ledgerOracle) state(now int64) map[string]bool {
	all := map[string]bool{}
	for k, v := range o.sums {
		all[fmt.Sprintf("sums %s  %d", k, v)] = true
	}
	for k, items := range o.windows {
		all[fmt.Sprintf("windows %s %x %d", k.key, ordered(k.window), len(items))] = true
		for i, item := range items {
			all[fmt.Sprintf("items %s %x%x \"%d\"", k.key, ordered(k.window), ordered1(int64(i+1)), item)] = true
		}
	}
	for k, s := range o.seen {
		if s.expiry > now {
			all[fmt.Sprintf("seen %s  \"%d\" until %d", k, s.i, s.expiry)] = true
		}
	}
	for t := range o.timers {
		sub := ""
		if t.domain == 1 {
			sub = "616c61726d" // alarm
		}
		all[fmt.Sprintf("timer %s %s %d %s", []string{"event", "processing"}[t.domain], t.key, t.at, sub)] = true
	}
	return all
}

// ordered is what wm_ordered makes of a time in milliseconds, ordered1 of any number.
func ordered(ms int64) []byte { return ordered1(ms * 1000) }
func ordered1(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63) }

// exported is what `wasmill state export` shows of a batch, less what has expired at that time; -1 is the newest batch.
func exported(t *testing.T, file string, batch int, now int64) map[string]bool {
	t.Helper()
	args := []string{"state", "export", file}
	if batch >= 0 {
		args = []string{"state", "export", "--batch", strconv.Itoa(batch), file}
	}
	all := map[string]bool{}
	for line := range strings.Lines(mustRun(t, args...).stdout) {
		var e struct {
			Table, Timer, Key, Sub, SubBase64, Expiry string
			At                                        time.Time
			Value                                     json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		sub := []byte(e.Sub)
		if e.SubBase64 != "" {
			sub, _ = base64.StdEncoding.DecodeString(e.SubBase64)
		}
		switch {
		case e.Timer != "":
			all[fmt.Sprintf("timer %s %s %d %x", e.Timer, e.Key, e.At.UnixMilli(), sub)] = true
			continue
		case e.Expiry == "":
			all[fmt.Sprintf("%s %s %x %s", e.Table, e.Key, sub, e.Value)] = true
			continue
		}
		expiry, err := time.Parse(time.RFC3339Nano, e.Expiry)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if expiry.UnixMilli() > now {
			all[fmt.Sprintf("%s %s %x %s until %d", e.Table, e.Key, sub, e.Value, expiry.UnixMilli())] = true
		}
	}
	return all
}

// keptPlans is the folder beside a checkpoint that gets the plans that retention removes, and in folders of their own the
// changelogs and snapshots that are removed.
const keptPlans = "kept"

// checkpointPlans are the plans of a checkpoint, by batch. A batch of which there are several records has superseded ones
// under other names.
func checkpointPlans(t *testing.T, dir string) []ledgerPlan {
	t.Helper()
	var plans []ledgerPlan
	for n := 0; ; n++ {
		text, err := os.ReadFile(filepath.Join(dir, "checkpoint", "offsets", strconv.Itoa(n)))
		if os.IsNotExist(err) {
			text, err = os.ReadFile(filepath.Join(dir, keptPlans, strconv.Itoa(n)))
		}
		if os.IsNotExist(err) {
			return plans
		}
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ BatchWatermarkMs, BatchTimestampMs int64 }
		lines := bytes.SplitN(text, []byte("\n"), 3)
		if err := json.Unmarshal(lines[1], &p); err != nil {
			t.Fatalf("plan %d: %v", n, err)
		}
		plans = append(plans, ledgerPlan{n, p.BatchTimestampMs, p.BatchWatermarkMs})
	}
}

// ledgerRows are the rows of a table in order, by the batch that they name.
func ledgerRows(t *testing.T, dir string) map[int][]string {
	t.Helper()
	rows := map[int][]string{}
	for _, line := range lines(t, filepath.Join(dir, "out")) {
		var r struct{ Batch int }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rows[r.Batch] = append(rows[r.Batch], line)
	}
	return rows
}

// check holds a finished table against the oracle: every row of every batch, in order; the watermark of every plan;
// the state at the end of some batches and of the last one. It returns the oracle as of the end.
func (l *ledgerSpec) check(t *testing.T, dir string, at func(batch, batches int) bool) *ledgerOracle {
	t.Helper()
	plans, rows := checkpointPlans(t, dir), ledgerRows(t, dir)
	o := newOracle(l.entries)
	next := 0
	var before ledgerPlan
	for _, p := range plans {
		// An idle source's watermark goes on with the clock, but no faster.
		least := max(0, o.highest-l.lateness)
		most := least
		if l.idle != "" && least > 0 {
			most += p.time - o.newest
		}
		if p.watermark < least || p.watermark > most || p.watermark < before.watermark || p.time < before.time {
			t.Fatalf("%s: batch %d has the watermark %d and time %d, want %d to %d; before it %d and %d", dir, p.batch, p.watermark, p.time, least, most, before.watermark, before.time)
		}
		var numbers []int
		for _, r := range rows[p.batch] {
			var e struct{ I *int }
			if err := json.Unmarshal([]byte(r), &e); err != nil {
				t.Fatal(err)
			}
			if e.I != nil {
				numbers = append(numbers, *e.I)
			}
		}
		slices.Sort(numbers)
		if len(numbers) > 0 {
			o.newest = p.time
		}
		for _, i := range numbers {
			if i != next {
				t.Fatalf("%s: batch %d has entry %d, the next is %d", dir, p.batch, i, next)
			}
			next++
		}
		want := o.batch(p, numbers)
		if l.anyOrder {
			slices.Sort(want)
			slices.Sort(rows[p.batch])
		}
		sameOrder(t, fmt.Sprintf("%s: batch %d", dir, p.batch), rows[p.batch], want)
		delete(rows, p.batch)
		before = p
		if at(p.batch, len(plans)) {
			sameState(t, filepath.Join(dir, "job.yaml"), p, o)
		}
	}
	if next != len(l.entries) || len(rows) != 0 {
		t.Fatalf("%s: %d entries of %d, %d batches without a plan", dir, next, len(l.entries), len(rows))
	}
	return o
}

func sameOrder(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s, row %d:\n got %.300s\nwant %.300s", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
}

func sameState(t *testing.T, file string, p ledgerPlan, o *ledgerOracle) {
	t.Helper()
	got, want := exported(t, file, p.batch, p.time), o.state(p.time)
	for k := range want {
		if !got[k] {
			t.Errorf("%s: at the end of batch %d there is no %s", file, p.batch, k)
		}
	}
	for k := range got {
		if !want[k] {
			t.Errorf("%s: at the end of batch %d there is %s", file, p.batch, k)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// ledgerSpec is a job of the ledger. Zero values stand for what most tests want.
type ledgerSpec struct {
	entries      []ledgerEntry
	files, batch int    // how many files, and entries of a batch
	lateness     int64  // milliseconds
	trigger      string // of the job
	idle         string // more of eventTime
	limits       string // more of the transform
	retention    string // of the job
	anyOrder     bool   // of rows within a batch, since the number of lanes changes
}

// write writes the entries and the job.
func (l *ledgerSpec) write(t *testing.T, dir string) (file string) {
	t.Helper()
	entries, files, trigger := l.entries, max(l.files, 1), l.trigger
	if trigger == "" {
		trigger = "{availableNow: true}"
	}
	for _, name := range []string{"in", keptPlans + "/changelog", keptPlans + "/snapshot"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	retention := l.retention
	if retention == "" {
		retention = "{batches: 10000}"
	}
	size := (len(entries) + files - 1) / files
	for f := range files {
		var b bytes.Buffer
		for i := f * size; i < min((f+1)*size, len(entries)); i++ {
			fmt.Fprintf(&b, "{\"k\":%q,\"t\":%d,\"n\":%d,\"i\":%d}\n", entries[i].key, entries[i].at, entries[i].n, i)
		}
		if err := os.WriteFile(filepath.Join(dir, "in", fmt.Sprintf("%03d.jsonl", f)), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	module, err := filepath.Abs("state/ledger.wasm")
	if err != nil {
		t.Fatal(err)
	}
	job := fmt.Sprintf(`
apiVersion: wasmill/v1
kind: Job
metadata: {name: ledger}
spec:
  checkpoint: ./checkpoint
  trigger: %s
  retention: %s
  sources:
    - name: in
      files: {path: ./in, format: jsonl}
      eventTime: {json: /t, unit: ms, lateness: %dms%s}
      batch: {maxRecords: %d}
  transforms:
    - {name: ledger, from: [{input: in, keyBy: {json: /k}}], module: %s%s}
  sinks:
    - {name: out, from: [ledger], files: {path: ./out, format: jsonl}}
`, trigger, retention, l.lateness, l.idle, l.batch, module, l.limits)
	file = filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
