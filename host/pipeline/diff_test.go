package pipeline

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
)

// sumsOf makes a record's digest of each byte; lanes are split by "|".
func sumsOf(text string) []item {
	lanes := make([][]sum, 0, 4)
	for part := range strings.SplitSeq(text, "|") {
		var lane []sum
		for _, c := range []byte(part) {
			lane = append(lane, sum{c})
		}
		lanes = append(lanes, lane)
	}
	return flatten(lanes)
}

// shown is a diff's lines as places: "-0.2" is the third record of lane 0, only before.
func shownLines(d *SinkDiff) string {
	var out []string
	for _, l := range d.Lines {
		sign := "-"
		if l.Added {
			sign = "+"
		}
		out = append(out, sign+string(rune('0'+l.Lane)))
	}
	return strings.Join(out, " ")
}

func TestCompareSums(t *testing.T) {
	for _, tt := range []struct {
		name, before, after   string
		removed, added, moved int64
		lines                 string
	}{
		{"the same", "abc", "abc", 0, 0, 0, ""},
		{"one gone", "abc", "ac", 1, 0, 0, "-0"},
		{"one new", "ac", "abc", 0, 1, 0, "+0"},
		{"each changed, shown in pairs", "abc", "xyz", 3, 3, 0, "-0 +0 -0 +0 -0 +0"},
		{"another order", "abc", "cab", 0, 0, 3, ""},
		{"equal ones are counted", "aab", "ab", 1, 0, 0, "-0"},
		{"more of the same", "a", "aaa", 0, 2, 0, "+0 +0"},
		{"in another lane", "ab|c", "ab|d", 1, 1, 0, "-1 +1"},
		{"nothing before", "", "ab", 0, 2, 0, "+0 +0"},
		{"nothing after", "|ab", "", 2, 0, 0, "-1 -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &SinkDiff{Sink: "out"}
			compareSums(d, sumsOf(tt.before), sumsOf(tt.after), 10, newPick(), newPick())
			if d.Removed != tt.removed || d.Added != tt.added || d.Moved != tt.moved || shownLines(d) != tt.lines {
				t.Errorf("removed %d, added %d, moved %d, lines %q", d.Removed, d.Added, d.Moved, shownLines(d))
			}
		})
	}
}

// TestCompareSumsCounts: whatever the order, what is removed and added are the differences of the multisets.
func TestCompareSumsCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-d|]{0,12}`)
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		limit := rapid.IntRange(0, 8).Draw(t, "limit")
		var removed, added int64
		for _, c := range "abcd" {
			diff := int64(strings.Count(before, string(c)) - strings.Count(after, string(c)))
			removed += max(diff, 0)
			added += max(-diff, 0)
		}
		d := &SinkDiff{Sink: "out"}
		pickA, pickB := newPick(), newPick()
		compareSums(d, sumsOf(before), sumsOf(after), limit, pickA, pickB)
		if d.Removed != removed || d.Added != added {
			t.Fatalf("removed %d and added %d, want %d and %d", d.Removed, d.Added, removed, added)
		}
		if want := min(int64(limit), removed+added); int64(len(d.Lines)) != want || int64(len(pickA.order)+len(pickB.order)) != want {
			t.Fatalf("%d lines, want %d", len(d.Lines), want)
		}
		if removed+added == 0 && strings.ReplaceAll(before, "|", "") == strings.ReplaceAll(after, "|", "") && d.Moved != 0 {
			t.Fatalf("%d moved in equal outputs", d.Moved)
		}
	})
}

// TestPickTakesTheLinesItWasAskedFor, also where a lane starts again.
func TestPickTakesTheLinesItWasAskedFor(t *testing.T) {
	d := &SinkDiff{Sink: "out"}
	pickA, pickB := newPick(), newPick()
	compareSums(d, sumsOf("ab|c"), sumsOf("xb|c"), 10, pickA, pickB)
	pickA.slots(d, false)
	pickB.slots(d, true)
	feed := func(p *pick, sink string, lane int, values ...string) {
		for _, v := range values {
			if err := p.Record(sink, lane, &abi.Record{Value: []byte(v)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	feed(pickA, "other", 0, `"no"`)
	feed(pickA, "out", 0, `"half"`)
	pickA.Again("out", 0)
	feed(pickA, "out", 0, `"a"`, `"b"`)
	feed(pickB, "out", 0, `"x"`, `"b"`)
	if got := d.Lines[0].Record + d.Lines[1].Record; got != `{"value":"a"}{"value":"x"}` {
		t.Errorf("lines are %s", got)
	}
}

func TestDigestTeeForgetsALaneThatStartsAgain(t *testing.T) {
	tee := &digestTee{sinks: map[string][][]sum{}}
	for _, lane := range []int{1, 1, 2} {
		if err := tee.Record("out", lane, &abi.Record{Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}
	tee.Again("out", 1)
	tee.Again("out", 7)
	tee.Again("nothing yet", 0)
	if got := flatten(tee.sinks["out"]); len(got) != 1 || got[0].lane != 2 {
		t.Errorf("kept are %v", got)
	}
}

func TestRecordJSON(t *testing.T) {
	for want, r := range map[string]abi.Record{
		`{"value":{"a":1}}`:       {Value: []byte("{\"a\":\n 1}")},
		`{"value":null}`:          {},
		`{"value":"","key":""}`:   {Value: []byte{}, Key: []byte{}},
		`{"value":"text \ufffd"}`: {Value: []byte("text \xff")},
		`{"value":1,"eventTime":"2026-01-01T00:00:00.5Z","headers":[["h",null],["i","x"]]}`: {
			Value: []byte("1"), Flags: abi.FlagEventTime, EventTime: 1_767_225_600_500_000,
			Headers: []abi.Header{{Name: []byte("h")}, {Name: []byte("i"), Value: []byte("x")}},
		},
	} {
		got, err := recordJSON(&r)
		if err != nil || !json.Valid([]byte(got)) || strings.ReplaceAll(got, "\ufffd", `\ufffd`) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestSameDigests(t *testing.T) {
	a := map[string]checkpoint.Digest{"x": {Records: 1, XXH3: "aa"}}
	for _, b := range []map[string]checkpoint.Digest{nil, {"x": {Records: 2, XXH3: "aa"}}, {"y": {Records: 1, XXH3: "aa"}}} {
		if sameDigests(a, b) {
			t.Errorf("%v and %v are taken for the same", a, b)
		}
	}
	if !sameDigests(a, map[string]checkpoint.Digest{"x": {Records: 1, XXH3: "aa"}}) {
		t.Error("equal ones are taken for different")
	}
}
