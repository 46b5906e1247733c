package delta

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// TestPositionRoundTrip: a position that is written is read back, and written again alike.
func TestPositionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, maxNumber)
		p := &position{
			table: rapid.StringN(1, 40, -1).Draw(t, "table"),
			at:    place{number.Draw(t, "version"), rapid.Bool().Draw(t, "snapshot"), number.Draw(t, "index"), number.Draw(t, "rows")},
		}
		if rapid.Bool().Draw(t, "begins elsewhere") {
			p.begin = &place{version: number.Draw(t, "begin"), snapshot: rapid.Bool().Draw(t, "begins with a snapshot")}
		}
		for range rapid.IntRange(0, 3).Draw(t, "lost") {
			p.lost = append(p.lost, fileID{number.Draw(t, "version of a file"), number.Draw(t, "index of a file")})
		}
		text, err := p.format()
		if err != nil {
			t.Fatal(err)
		}
		got, err := parsePosition(text)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v became %+v, %v", p, got, err)
		}
	})
}

// FuzzPosition: whatever stands in a checkpoint is a position or an error.
func FuzzPosition(f *testing.F) {
	f.Add(`{"sourceVersion":1,"reservoirId":"t","reservoirVersion":3,"index":-1,"isStartingVersion":false}`, `{"v":1,"rows":2,"begin":{"version":0},"lost":[[1,2]]}`)
	f.Add(`{"sourceVersion":3,"reservoirId":"t","reservoirVersion":9223372036854775807,"index":9223372036854775807}`, "")
	f.Fuzz(func(t *testing.T, line, extra string) {
		p, err := parsePosition(checkpoint.Position{Line: line, Extra: extra})
		if err != nil {
			return
		}
		if p.at.index < 0 || p.at.rows < 0 || p.at.version < none || after(p.at.version).version < p.at.version {
			t.Fatalf("%+v", p.at)
		}
	})
}

// TestPlaces: places are in the order of the stream.
func TestPlaces(t *testing.T) {
	ordered := []place{
		{version: none},
		{version: 3, snapshot: true},
		{version: 3, snapshot: true, rows: 2},
		{version: 3, snapshot: true, index: 1},
		{version: 3},
		{version: 3, index: 1},
		{version: 3, index: 1, rows: 1},
		{version: 3, index: 2},
		after(3),
	}
	for i, a := range ordered {
		for k, b := range ordered {
			if got := a.compare(b); got != min(1, max(-1, i-k)) {
				t.Errorf("%+v to %+v is %d", a, b, got)
			}
		}
	}
}

// TestCut: pieces are a part's rows, in order, none empty and none left out.
func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(0, 1000).Draw(t, "from")
		p := part{Rows: 1 << 40, From: from, To: from + rapid.Int64Range(1, 100_000).Draw(t, "rows")}
		at := p.From
		for _, q := range p.cut(rapid.Int64Range(1, 200_000).Draw(t, "piece")) {
			if q.From != at || q.To <= q.From {
				t.Fatalf("piece %d to %d after %d", q.From, q.To, at)
			}
			at = q.To
		}
		if at != p.To {
			t.Fatalf("ends at %d, not %d", at, p.To)
		}
	})
}

// TestBudget: a batch takes no more than its limit, but one row at least.
func TestBudget(t *testing.T) {
	b := newBudget(source.Limit{Records: 5, Bytes: 100})
	for _, c := range []struct{ rows, each, want int64 }{{0, 10, 0}, {3, 1000, 1}, {3, 10, 0}} {
		if got := b.take(c.rows, c.each); got != c.want {
			t.Errorf("took %d of %d rows of %d bytes, want %d", got, c.rows, c.each, c.want)
		}
	}
	if !b.spent() {
		t.Error("not spent")
	}
}
