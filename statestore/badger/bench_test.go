package badger

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmill/wasmill/statestore"
)

// Sizes of the benchmarks. The figures for 1 GB of state are those of -bench.keys=5000000 -bench.value=200.
var (
	benchKeys  = flag.Int("bench.keys", 200_000, "keys in the benchmarks' state")
	benchValue = flag.Int("bench.value", 100, "bytes of a value in the benchmarks")
	benchBatch = flag.Int("bench.batch", 10_000, "keys of a batch in the benchmarks")
)

// number spreads keys evenly over the key groups, as hashed keys are.
func number(n uint64) []byte {
	key := []byte{0x10, 0, 1, 0, 0, 1, 8}
	n *= 0x9e3779b97f4a7c15
	key[3] = byte(n >> 58)
	return binary.BigEndian.AppendUint64(key, n)
}

// numbers yields pairs for some numbers, in key order.
func numbers(list []uint64, value []byte) iter.Seq2[statestore.Change, error] {
	keys := make([][]byte, len(list))
	for i, n := range list {
		keys[i] = number(n)
	}
	slices.SortFunc(keys, func(a, b []byte) int { return strings.Compare(string(a), string(b)) })
	keys = slices.CompactFunc(keys, func(a, b []byte) bool { return string(a) == string(b) })
	return func(yield func(statestore.Change, error) bool) {
		for _, k := range keys {
			if !yield(statestore.Change{Key: k, Value: value}, nil) {
				return
			}
		}
	}
}

// process measures this process: seconds of CPU, and resident bytes, anonymous ones and those of mapped files.
type process struct {
	cpu        float64
	anon, file int64
}

func measure(t testing.TB) (p process) {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	p.cpu = time.Duration(use.Utime.Nano() + use.Stime.Nano()).Seconds()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return p
	}
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "RssAnon:":
			p.anon = kb << 10
		case "RssFile:":
			p.file = kb << 10
		}
	}
	return p
}

// filled is a folder with benchKeys keys, written in batches as a job would, and the next batch.
func filled(b *testing.B, dir string) (*backend, int64) {
	b.Helper()
	s := mustOpen(b, dir)
	value := make([]byte, *benchValue)
	batch := int64(0)
	for from := 0; from < *benchKeys; from += *benchBatch {
		list := make([]uint64, 0, *benchBatch)
		for n := from; n < min(from+*benchBatch, *benchKeys); n++ {
			list = append(list, uint64(n))
		}
		applyNumbers(b, s, batch, list, value)
		batch++
	}
	return s, batch
}

func applyNumbers(b *testing.B, s *backend, batch int64, list []uint64, value []byte) {
	b.Helper()
	if err := s.Apply(context.Background(), statestore.Marker{Batch: batch}, numbers(list, value)); err != nil {
		b.Fatal(err)
	}
	if batch > 2 {
		if err := s.Discard(batch - 2); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkState fills a state, then times what a job does with it, in CPU of the whole process.
func BenchmarkState(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "badger")
	start := measure(b)
	began := time.Now()
	s, batch := filled(b, dir)
	full := measure(b)
	b.Logf("fill: %d keys, %.2f us CPU a key, %.0f keys a second; anon %d MB, file %d MB; %+v", *benchKeys,
		1e6*(full.cpu-start.cpu)/float64(*benchKeys), float64(*benchKeys)/time.Since(began).Seconds(), full.anon>>20, full.file>>20, s.Stats())
	random := rand.New(rand.NewPCG(1, 2))
	pick := func() uint64 { return random.Uint64N(uint64(*benchKeys)) }
	b.Run("get hit", func(b *testing.B) {
		var dst []byte
		for b.Loop() {
			v, found, err := s.Get(batch, number(pick()), dst[:0])
			if err != nil || !found {
				b.Fatal(found, err)
			}
			dst = v
		}
		rss(b)
	})
	b.Run("get miss", func(b *testing.B) {
		for b.Loop() {
			if _, found, err := s.Get(batch, number(pick()+1<<40), nil); err != nil || found {
				b.Fatal(found, err)
			}
		}
	})
	b.Run("cursor new", func(b *testing.B) {
		for b.Loop() {
			c, err := s.Cursor(batch, statestore.Range{Lower: []byte{0x10}, Upper: []byte{0x11}}, false)
			if err != nil {
				b.Fatal(err)
			}
			c.Seek(number(pick()))
			if !c.Valid() && c.Err() != nil {
				b.Fatal(c.Err())
			}
			c.Close()
		}
	})
	for _, down := range []bool{false, true} {
		b.Run("cursor seek, down "+strconv.FormatBool(down), func(b *testing.B) {
			c, err := s.Cursor(batch, statestore.Range{Lower: []byte{0x10}, Upper: []byte{0x11}}, down)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			for b.Loop() {
				c.Seek(number(pick()))
			}
		})
	}
	b.Run("cursor next", func(b *testing.B) {
		c, err := s.Cursor(batch, statestore.Range{Lower: []byte{0x10}}, false)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		c.Seek(nil)
		for b.Loop() {
			if c.Next(); !c.Valid() {
				c.Seek(nil)
			}
			if _, err := c.Value(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("apply", func(b *testing.B) {
		value := make([]byte, *benchValue)
		before, n := measure(b), 0
		for b.Loop() {
			list := make([]uint64, *benchBatch)
			for i := range list {
				list[i] = pick()
			}
			applyNumbers(b, s, batch, list, value)
			batch++
			n += len(list)
		}
		b.ReportMetric(1e6*(measure(b).cpu-before.cpu)/float64(n), "cpu-us/key")
		rss(b)
	})
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

func rss(b *testing.B) {
	m := measure(b)
	b.ReportMetric(float64(m.anon>>20), "anon-MB")
	b.ReportMetric(float64(m.file>>20), "file-MB")
}

// fillEnv makes the test binary a process that fills the folder it names, and is killed.
const fillEnv = "WASMILL_STATE_FILL"

// BenchmarkOpenAfterKill opens what a process leaves that was killed as soon as it had filled the state. A job starts as
// soon as that, and loads and applies what was lost, lag, while it runs.
func BenchmarkOpenAfterKill(b *testing.B) {
	if dir := os.Getenv(fillEnv); dir != "" {
		s, batch := filled(b, dir)
		if err := os.WriteFile(dir+".lag", strconv.AppendInt(nil, batch-1-s.Durable(), 10), 0o644); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		select {}
	}
	dir := filepath.Join(b.TempDir(), "badger")
	cmd := exec.Command(os.Args[0], "-test.run=XXX", "-test.bench=OpenAfterKill", "-test.benchtime=1x",
		fmt.Sprint("-bench.keys=", *benchKeys), fmt.Sprint("-bench.value=", *benchValue), fmt.Sprint("-bench.batch=", *benchBatch))
	cmd.Env = append(os.Environ(), fillEnv+"="+dir)
	_ = cmd.Run() // it is killed
	lag, err := os.ReadFile(dir + ".lag")
	if err != nil {
		b.Fatal(err)
	}
	before, n := measure(b), 0
	for b.Loop() {
		s, err := Open(context.Background(), config(b, dir))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		n++
	}
	after := measure(b)
	b.Logf("%s batches lost, %.0f ms CPU to open and close", lag, 1e3*(after.cpu-before.cpu)/float64(n))
	rss(b)
}
