package demo

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write golden files")

func testPicture() *picture {
	return &picture{
		elapsed: 12345 * time.Millisecond, total: 200_000, rate: 2000, broker: "127.0.0.1:4711", dir: "/somewhere/wasmill-demo-1", kills: 2,
		rows: []row{
			{job: "orders", path: "generator -> topic", records: 24_400, perSecond: 1999.7, lag: -1, batches: 122, last: 4200 * time.Microsecond, kills: 1, state: "pid 101"},
			{job: "convert", path: "topic -> wasm -> topic", records: 21_951, perSecond: 1801, lag: 12, batches: 240, last: 5100 * time.Microsecond, kills: 2, state: "killed", down: true},
			{job: "lake", path: "topic -> Parquet", records: 20_030, perSecond: 0, lag: 1_921, batches: 24, last: 28 * time.Millisecond, kills: 1, state: "pid 103"},
		},
		history: []float64{0, 500, 1000, 1500, 2000, 0, 0, 2000, 1800},
		first:   []time.Duration{310 * time.Millisecond, 180 * time.Millisecond, 420 * time.Millisecond},
		phase:   "running", note: "kill -9 convert", keys: true,
	}
}

// TestPictures pins what is seen on screens of several sizes.
func TestPictures(t *testing.T) {
	var b bytes.Buffer
	for _, tc := range []struct {
		name          string
		width, height int
		style         style
	}{
		{"wide", 120, 40, style{unicode: true}},
		{"80 x 24, without UTF-8", 80, 24, style{}},
		{"narrow", 34, 24, style{unicode: true}},
		{"low", 80, 9, style{}},
		{"in colour", 100, 40, style{colour: true}},
	} {
		fmt.Fprintf(&b, "== %s\n", tc.name)
		for _, l := range draw(testPicture(), tc.width, tc.height, tc.style) {
			fmt.Fprintf(&b, "%s|\n", strings.ReplaceAll(l, "\x1b", "^"))
		}
	}
	fmt.Fprintf(&b, "== a line of a log\n%s\n", plainLine(testPicture()))
	const name = "testdata/pictures.golden"
	if *update {
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got:\n%swant:\n%s", b.Bytes(), want)
	}
}

// TestPicturesFit draws on screens of any size: no line may wrap, or the next picture would not cover this one.
func TestPicturesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(leastWidth, 300).Draw(t, "width"), rapid.IntRange(2, 60).Draw(t, "height")
		p := testPicture()
		p.note = rapid.StringMatching(`[a-z ]{0,200}`).Draw(t, "note")
		p.rows = p.rows[:rapid.IntRange(0, 3).Draw(t, "rows")]
		lines := draw(p, width, height, style{unicode: true})
		if len(lines) >= height {
			t.Fatalf("%d lines on a screen of %d", len(lines), height)
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n >= width {
				t.Fatalf("a line of %d on a screen of %d: %q", n, width, l)
			}
		}
	})
}

func TestSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kills, seed := rapid.IntRange(0, 50).Draw(t, "kills"), rapid.Uint64().Draw(t, "seed")
		s := newSchedule(kills, seed)
		done := 0
		for i := range kills {
			if s.due(float64(i) / float64(kills)) {
				t.Fatalf("kill %d falls into the part before its own", i)
			}
			if !s.due(float64(i+1) / float64(kills)) {
				t.Fatalf("kill %d is not due at the end of its part", i)
			}
			done++
			if v := s.victims(); len(v) != 1 && len(v) != len(jobs) || v[0] < 0 || v[len(v)-1] >= len(jobs) {
				t.Fatalf("victims %v", v)
			}
		}
		if s.due(1) || done != kills {
			t.Fatalf("%d kills of %d, and more", done, kills)
		}
	})
}

func TestShareOfARun(t *testing.T) {
	for _, tc := range []struct {
		orders, total  int64
		elapsed, limit time.Duration
		want           float64
	}{
		{50, 100, time.Hour, 0, 0.5},
		{50, 100, time.Second, 4 * time.Second, 0.5},
		{50, 100, 3 * time.Second, 4 * time.Second, 0.75},
		{100, 100, time.Second, 4 * time.Second, 1},
		{5, 100, 8 * time.Second, 4 * time.Second, 1},
	} {
		if got := done(tc.orders, tc.total, tc.elapsed, tc.limit); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

func TestMeter(t *testing.T) {
	m, at := &meter{}, time.Unix(1000, 0)
	if m.rate(0) != 0 || m.sample(at, 0, 0, 0) {
		t.Error("a rate of nothing")
	}
	for i := range int64(40) {
		at = at.Add(sampleEvery)
		if m.sample(at.Add(-sampleEvery/2), 0, 0, 0) {
			t.Fatal("a sample too soon")
		}
		if !m.sample(at, 100*(i+1), 50*(i+1), 0) {
			t.Fatal("growth is not seen")
		}
	}
	if m.rate(0) != 400 || m.rate(1) != 200 || m.rate(2) != 0 || m.history[39] != 200 || len(m.samples) > 10 {
		t.Errorf("rates %v %v %v of %d samples, history %v", m.rate(0), m.rate(1), m.rate(2), len(m.samples), m.history)
	}
	if m.sample(at.Add(sampleEvery), 4000, 2000, 0) {
		t.Error("growth where there is none")
	}
	if at = at.Add(time.Minute); m.sample(at, 4000, 2000, 0) || m.rate(0) != 0 {
		t.Errorf("rate %v after a minute of nothing", m.rate(0))
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1: "-1", -1000: "-1,000", -100000: "-100,000"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s", n, got)
		}
	}
}
