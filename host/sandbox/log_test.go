package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/abi"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

func TestLogIsRationed(t *testing.T) {
	// 200 lines of 5 bytes, the last one with an escape in it.
	flood := w.Const(200) + "\x21\x02" + w.Loop + w.Const(7) + w.Const(8) + w.Const(5) + w.Call(1) +
		w.Get(2) + w.Const(-1) + w.Add + "\x22\x02\x0d\x00" + w.End + w.Const(0)
	m := w.Transform(w.Const(0), flood)
	m.Funcs[2].Locals = "\x7f"
	m.Data = "a\x1b\nbc"
	onEach(t, func(t *testing.T, e Engine) {
		var lines []string
		log := func(level int, text string) { lines = append(lines, fmt.Sprint(level, text)) }
		in := lane(t, started(t, e, m.Bytes(), Options{Log: log, Limits: Limits{Log: 6400}}))
		for range 2 {
			if err := call(t, in, discard); err != nil {
				t.Fatal(err)
			}
		}
		if err := in.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if len(lines) != 101 {
			t.Fatalf("%d lines", len(lines))
		}
		if lines[0] != `3 a\u{1b}\nbc` && lines[0] != `3a\u{1b}\nbc` {
			t.Errorf("first line %q", lines[0])
		}
		if last := lines[100]; !strings.Contains(last, "300 more lines") {
			t.Errorf("last line %q", last)
		}
	})
}

// TestLinesFollowBytes gives a line for each 64 bytes that may be logged, and one at least.
func TestLinesFollowBytes(t *testing.T) {
	for most, want := range map[int]int{1: 1, 64: 1, 65: 2, 1 << 10: 16, DefaultLog: 1024, 1 << 20: 16384} {
		lines := 0
		g := guestLog{most: most, sink: func(int, string) { lines++ }}
		for range 20_000 {
			g.line(levelInfo, nil)
		}
		if lines != want || g.dropped != 20_000-want {
			t.Errorf("%d bytes: %d lines, %d dropped, not %d", most, lines, g.dropped, want)
		}
	}
}

func TestGuestLogOutput(t *testing.T) {
	var got []string
	g := guestLog{most: DefaultLog, sink: func(level int, text string) { got = append(got, fmt.Sprintf("%d:%s", level, text)) }}
	for _, part := range []string{"one\ntw", "o\n\nthr", strings.Repeat("e", 5000), "\nlast"} {
		g.output(1, []byte(part))
	}
	g.output(2, []byte("error"))
	g.close()
	want := []string{"1:one", "1:two", "1:", "1:thr" + strings.Repeat("e", abi.MaxLogLine-3), "1:last", "2:error"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestDroppedLinesAreCounted: what is over the ration counts by its lines, however it is written.
func TestDroppedLinesAreCounted(t *testing.T) {
	text := []byte(strings.Repeat("x\n", 100))
	for _, size := range []int{1, 2, 7, 64, len(text)} {
		heard := 0
		g := guestLog{most: 640, sink: func(int, string) { heard++ }}
		for part := range slices.Chunk(text, size) {
			g.output(2, part)
		}
		if g.flush(); heard != 10 || g.dropped != 90 {
			t.Errorf("in parts of %d bytes: %d lines are heard, %d dropped", size, heard, g.dropped)
		}
	}
}
