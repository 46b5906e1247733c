package wasmilltest_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	wasmill "github.com/wasmill/wasmill/abi/sdk/go"
	"github.com/wasmill/wasmill/abi/sdk/go/wasmilltest"
)

const stateManifest = `{"abi": 1, "name": "s", "version": "1", "inputs": [{"name": "in", "fields": ["/n"]}], "outputs": [{"name": "out"}],
 "tables": [{"name": "cell"}, {"name": "counter", "type": "i64"}, {"name": "map"}, {"name": "counters", "type": "i64"}, {"name": "list"}]}`

var (
	sm       = wasmill.Manifest(stateManifest)
	cell     = sm.Table("cell").Cell()
	counter  = sm.Table("counter").Counter()
	entries  = sm.Table("map").Map()
	counters = sm.Table("counters").Counters()
	list     = sm.Table("list").List()
)

// keyedInputs are records with these keys and values, separated by a colon.
func keyedInputs(records ...string) []wasmilltest.Input {
	in := make([]wasmilltest.Input, len(records))
	for i, r := range records {
		key, value, _ := strings.Cut(r, ":")
		in[i] = wasmilltest.Input{Key: []byte(key), Value: []byte(value)}
	}
	return in
}

func TestTables(t *testing.T) {
	h := wasmilltest.Host{Manifest: stateManifest}
	counting := wasmill.Transform{Record: func(r *wasmill.Record, _ *wasmill.Out) error {
		was := cell.Get()
		cell.Set(append(bytes.Clone(was), r.Value()...))
		counter.Add(2)
		entries.Set(r.Value(), r.Key())
		counters.Add(r.Value(), 1)
		list.Append(r.Value())
		return nil
	}}
	for range 2 {
		if _, err := h.Run(counting, keyedInputs("a:x", "b:y", "a:z", "a:x")); err != nil {
			t.Fatal(err)
		}
	}
	s := &h.State
	if got := string(s.Get("cell", "a", "")); got != "xzxxzx" {
		t.Errorf("cell: %q", got)
	}
	if s.Int("counter", "a", "") != 12 || s.Int("counter", "b", "") != 4 {
		t.Errorf("counters: %d and %d", s.Int("counter", "a", ""), s.Int("counter", "b", ""))
	}
	if string(s.Get("map", "a", "z")) != "a" || s.Int("counters", "a", "x") != 4 {
		t.Errorf("map %q, counter %d", s.Get("map", "a", "z"), s.Int("counters", "a", "x"))
	}
	if string(s.Get("list", "a", "")) != "6" || string(s.Get("list", "a", "\x00\x00\x00\x00\x00\x00\x00\x05")) != "x" {
		t.Errorf("list: %v", s.Entries)
	}
	// Two batches: the cells, counters and lists of a frame in one read; maps were only set; counters of sub-keys one by one.
	if s.Reads != 2*(1+3) || s.Writes != 2 {
		t.Errorf("%d reads and %d writes", s.Reads, s.Writes)
	}
	read := wasmill.Transform{
		Prefetch: func(r *wasmill.Record, want *wasmill.Want) {
			want.Cell(cell)
			want.Counters(counters, []byte("x"))
			want.Map(entries, []byte("x"))
			want.List(list)
			want.Counter(counter)
		},
		Record: func(r *wasmill.Record, out *wasmill.Out) error {
			var text []string
			for v := range list.All() {
				text = append(text, string(v))
			}
			for sub, n := range counters.All(nil) {
				text = append(text, string(sub)+strconv.FormatInt(n, 10))
			}
			for sub, v := range entries.Backward(nil) {
				text = append(text, string(sub)+"="+string(v))
			}
			for sub := range entries.After(nil, []byte("x")) {
				text = append(text, string(sub))
			}
			text = append(text, string(cell.Get()), fmt.Sprint(counter.Get(), counters.Get([]byte("x")), list.Len(), string(entries.Get([]byte("x")))))
			return out.From(r).Value([]byte(strings.Join(text, " ")), 0)
		},
	}
	s.Reads = 0
	out, err := h.Run(read, keyedInputs("a:"))
	if err != nil || len(out) != 1 {
		t.Fatal(out, err)
	}
	if want := "x z x x z x x4 z2 z=a x=a z xzxxzx 12 4 6a"; string(out[0].Value) != want {
		t.Errorf("got  %s\nwant %s", out[0].Value, want)
	}
	if s.Reads != 1+4 {
		t.Errorf("%d reads", s.Reads)
	}
}

// model is state as plain maps, by table, key and sub-key.
type model map[string]string

// TestStateModel runs random operations in random frames, over several batches, and compares every answer with plain maps.
func TestStateModel(t *testing.T) {
	for seed := range uint64(60) {
		stateModel(t, seed)
	}
}

func stateModel(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	h := wasmilltest.Host{Manifest: stateManifest, Batch: wasmill.Batch{Time: 1_000_000}}
	m := model{}
	size := 1 + rng.IntN(2000)
	if seed%10 == 0 {
		size = 100_000 // the cache is emptied in between
	}
	for range 3 {
		h.Chunk = 1 + rng.IntN(40)
		h.Batch.Time += 1000
		in := make([]wasmilltest.Input, rng.IntN(200))
		for i := range in {
			in[i].Key = []byte(strconv.Itoa(rng.IntN(4)))
			in[i].Value = []byte(strconv.FormatUint(rng.Uint64(), 10))
		}
		transform := wasmill.Transform{Record: func(r *wasmill.Record, _ *wasmill.Out) error { return m.step(r, size, h.Batch.Time) }}
		if seed%2 == 0 {
			transform.Prefetch = func(r *wasmill.Record, want *wasmill.Want) {
				ops := rand.New(rand.NewPCG(number(r.Value()), 1))
				want.Map(entries, sub(ops))
				want.Counters(counters, sub(ops))
			}
		}
		if _, err := h.Run(transform, in); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		left := model{}
		for _, e := range h.State.Entries {
			left[e.Table+"/"+string(e.Key)+"/"+string(e.Sub)] = string(e.Value)
		}
		for k, v := range m {
			if left[k] != v {
				t.Fatalf("seed %d: %q is %.40q, want %.40q", seed, k, left[k], v)
			}
		}
		if len(left) != len(m) {
			t.Fatalf("seed %d: %d entries, want %d", seed, len(left), len(m))
		}
	}
}

func number(b []byte) uint64 {
	n, _ := strconv.ParseUint(string(b), 10, 64)
	return n
}

func sub(rng *rand.Rand) []byte {
	return []byte([]string{"", "a", "ab", "abc", "b", "a longer sub-key"}[rng.IntN(6)])
}

// step does some operations on the key of a record.
func (m model) step(r *wasmill.Record, size int, now int64) error {
	rng := rand.New(rand.NewPCG(number(r.Value()), 1))
	key := string(r.Key())
	for range 1 + rng.IntN(6) {
		sub := sub(rng)
		at := "map/" + key + "/" + string(sub)
		switch rng.IntN(9) {
		case 0:
			old := entries.Get(sub)
			was := string(old)
			value := []byte(strings.Repeat(string(r.Value()), 1+rng.IntN(size)/20))
			entries.Set(sub, value)
			entries.Set(sub, value[:len(value)/2])
			m[at] = string(value[:len(value)/2])
			if string(old) != was {
				return fmt.Errorf("a value that was given out changed from %q to %q", was, old)
			}
		case 1:
			entries.Delete(sub)
			delete(m, at)
		case 2:
			entries.Clear(sub)
			for k := range m {
				if strings.HasPrefix(k, at) {
					delete(m, k)
				}
			}
		case 3:
			entries.SetUntil(sub, sub, now-int64(rng.IntN(2))*1000+1999)
			delete(m, at)
			if got := entries.Get(sub); got != nil {
				m[at] = string(sub)
				entries.Set(sub, got)
			}
		case 4, 5:
			if got, ok := m[at]; ok != (entries.Get(sub) != nil) || got != string(entries.Get(sub)) {
				return wasmill.Fail(1, fmt.Sprintf("%q is %.40q, want %.40q", at, entries.Get(sub), got))
			}
		case 6:
			if err := m.scan(key, string(sub), rng.IntN(2) == 0); err != nil {
				panic(err)
			}
		case 7:
			at = "counters/" + key + "/" + string(sub)
			var was int64
			if v, ok := m[at]; ok {
				was = int64(binary.LittleEndian.Uint64([]byte(v)))
			}
			if got := counters.Add(sub, 3); got != was+3 {
				panic(fmt.Sprintf("%q is %d, want %d", at, got, was+3))
			}
			m[at] = string(binary.LittleEndian.AppendUint64(nil, uint64(was+3)))
		case 8:
			counters.Clear(sub)
			for k := range m {
				if strings.HasPrefix(k, "counters/"+key+"/"+string(sub)) {
					delete(m, k)
				}
			}
		}
	}
	return nil
}

func (m model) scan(key, prefix string, down bool) error {
	var want, got []string
	for k, v := range m {
		if rest, ok := strings.CutPrefix(k, "map/"+key+"/"); ok && strings.HasPrefix(rest, prefix) {
			want = append(want, rest+"\x00"+v) // as 0 is before all that sub-keys here are made of
		}
	}
	sort.Strings(want)
	all := entries.All([]byte(prefix))
	if down {
		slices.Reverse(want)
		all = entries.Backward([]byte(prefix))
	}
	for sub, v := range all {
		got = append(got, string(sub)+"\x00"+string(v))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("scan of %q: %.200q, want %.200q", prefix, got, want)
	}
	return nil
}

func TestTimers(t *testing.T) {
	var fired []string
	again := false
	h := wasmilltest.Host{Manifest: stateManifest, Batch: wasmill.Batch{Time: 10_000_000, Watermark: 1}}
	transform := wasmill.Transform{
		Record: func(r *wasmill.Record, _ *wasmill.Out) error {
			for word := range strings.FieldsSeq(string(r.Value())) {
				d := map[byte]wasmill.Domain{'e': wasmill.EventTime, 'p': wasmill.ProcessingTime}[word[1]]
				us, _ := strconv.ParseInt(word[2:], 10, 64)
				if word[0] == '+' {
					r.SetTimer(d, us*1000+7, []byte("sub"))
				} else {
					r.DeleteTimer(d, us*1000, []byte("sub"))
				}
			}
			return nil
		},
		Timer: func(r *wasmill.Record, _ *wasmill.Out) error {
			us, _ := r.EventTime()
			fired = append(fired, fmt.Sprintf("%s%d@%d%s", r.Key(), r.Kind(), us/1000, r.Value()))
			if again {
				r.SetTimer(wasmill.EventTime, us, r.Value())
			}
			return nil
		},
	}
	for i, c := range []struct {
		watermark int64
		again     bool
		in        []string
		want      string
		left      int
	}{
		{5, false, []string{"a:+e5 +e5 +p6 +e4", "a:-e4 +e9", "b:+e4"}, "", 4},
		{4, false, []string{"c:+e1"}, "b1@4sub a2@6sub", 3},
		{5, false, []string{"a:+e5"}, "c1@1sub a1@5sub", 1}, // set again before it fires in the same batch: it fires once
		{9, true, []string{"c:-e1"}, "a1@9sub", 1},
		{9, false, []string{"a:-e9"}, "", 0},
		{9, false, []string{"a:+e7 -e7 +e7", "a:-e7", "b:+e7 -e7"}, "", 0},
		{9, false, []string{"a:+e10 +e11"}, "", 2},
		{11, false, []string{"a:+e10 -e11 +e11"}, "a1@10sub", 1}, // a deleted one is new when it is set again
		{11, false, nil, "a1@11sub", 0},
	} {
		fired, again = nil, c.again
		h.Chunk = 1
		h.Batch.Watermark = c.watermark * 1000
		if _, err := h.Run(transform, keyedInputs(c.in...)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(fired, " "); got != c.want || len(h.State.Timers) != c.left {
			t.Errorf("batch %d: fired %s, want %s; %d timers left: %v", i, got, c.want, len(h.State.Timers), h.State.Timers)
		}
	}
}

func TestStateOfNothing(t *testing.T) {
	use := func(r *wasmill.Record, _ *wasmill.Out) error {
		counter.Add(1)
		return nil
	}
	for name, c := range map[string]struct {
		t    wasmill.Transform
		in   []wasmilltest.Input
		want string
	}{
		"no key":    {wasmill.Transform{Record: use}, wasmilltest.Values("1"), "this record has none"},
		"long key":  {wasmill.Transform{Record: use}, []wasmilltest.Input{{Key: make([]byte, 5000)}}, "at most 4 KiB"},
		"at an end": {wasmill.Transform{Record: use, Finish: func(*wasmill.Out) error { return use(nil, nil) }}, nil, "call UseKey"},
		"long sub": {wasmill.Transform{Record: func(r *wasmill.Record, _ *wasmill.Out) error {
			entries.Set(make([]byte, 4096), nil)
			return nil
		}}, keyedInputs("k:"), "at most 4 KiB"},
		"large value": {wasmill.Transform{Record: func(r *wasmill.Record, _ *wasmill.Out) error {
			cell.Set(make([]byte, 512<<10+1))
			return nil
		}}, keyedInputs("k:"), "at most 512 KiB"},
		"no counter": {wasmill.Transform{Record: func(r *wasmill.Record, _ *wasmill.Out) error {
			entries.Set(nil, []byte("x"))
			counters.Add(nil, int64(entries.Get(nil)[0]))
			return nil
		}, Finish: func(*wasmill.Out) error {
			wasmill.UseKey([]byte("k"))
			for range wasmillCounters().All(nil) {
				return nil
			}
			return nil
		}}, keyedInputs("k:"), "has not 8 bytes"},
		"time": {wasmill.Transform{Record: func(r *wasmill.Record, _ *wasmill.Out) error {
			r.SetTimer(wasmill.EventTime, 1<<62, nil)
			return nil
		}}, keyedInputs("k:"), "outside the years"},
	} {
		h := wasmilltest.Host{Manifest: stateManifest}
		if _, err := h.Run(c.t, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// wasmillCounters takes the table of values for one of numbers.
func wasmillCounters() wasmill.Counters {
	return wasmill.Manifest(stateManifest).Table("map").Counters()
}

func TestFinishWithState(t *testing.T) {
	h := wasmilltest.Host{Manifest: stateManifest}
	var keys []string
	_, err := h.Run(wasmill.Transform{
		Record: func(r *wasmill.Record, _ *wasmill.Out) error {
			if counter.Add(1) == 1 {
				keys = append(keys, string(r.Key()))
			}
			return nil
		},
		Finish: func(out *wasmill.Out) error {
			for _, k := range keys {
				wasmill.UseKey([]byte(k))
				if err := out.New().Key([]byte(k)).Value([]byte(strconv.FormatInt(counter.Get(), 10)), 0); err != nil {
					return err
				}
				counter.Delete()
			}
			return nil
		},
	}, keyedInputs("a:", "b:", "a:"))
	if err != nil || len(h.State.Entries) != 0 || len(keys) != 2 {
		t.Errorf("%v, left %v, keys %v", err, h.State.Entries, keys)
	}
}

// TestRefusedWritesNothing: once a field was not what was wanted, state stays as it is.
func TestRefusedWritesNothing(t *testing.T) {
	n := sm.Field("/n")
	h := wasmilltest.Host{Manifest: stateManifest}
	out, err := h.Run(wasmill.Transform{Record: func(r *wasmill.Record, _ *wasmill.Out) error {
		counter.Add(r.Int(n).N)
		cell.Set(nil)
		list.Clear()
		cell.Delete()
		r.SetTimer(wasmill.EventTime, 5, nil)
		return r.Err()
	}}, keyedInputs(`a:{"n":"x"}`))
	if err != nil || len(out) != 1 || out[0].Reject == nil || len(h.State.Entries)+len(h.State.Timers) != 0 {
		t.Errorf("%v, %v, %v, %v", out, err, h.State.Entries, h.State.Timers)
	}
}

func TestOrdered(t *testing.T) {
	numbers := []int64{-1 << 63, -1000, -1, 0, 1, 255, 256, 1<<63 - 1}
	for i, n := range numbers {
		if got := wasmill.OrderedInt(wasmill.Ordered(n)); got != n {
			t.Errorf("%d becomes %d", n, got)
		}
		if i > 0 && bytes.Compare(wasmill.Ordered(numbers[i-1]), wasmill.Ordered(n)) >= 0 {
			t.Errorf("%d is not before %d", numbers[i-1], n)
		}
	}
	if wasmill.Floor(-1, 10) != -10 || wasmill.Floor(19, 10) != 10 || wasmill.Floor(-20, 10) != -20 {
		t.Error("Floor")
	}
}
