package delta_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	logs "github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/delta"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

// clean cleans the log of entries before a version, behind a checkpoint of it.
func (b *table) clean(before int64) {
	b.t.Helper()
	s := must(b.log.SnapshotAt(ctx, before))(b.t)
	if err := b.log.WriteCheckpoint(ctx, s); err != nil {
		b.t.Fatal(err)
	}
	for v := range before {
		b.lose(v)
	}
}

// A log that was cleaned before it was read stops the source, or costs what was cleaned, with a warning.
func TestCleanedLog(t *testing.T) {
	b := numbers(t)
	b.commit(b.ids(0, 3))
	s := b.source()
	_, at := drain(t, s, zero, 0)
	for i := range 4 { // versions 2 to 5
		b.commit(b.ids(10*(i+1), 3))
	}
	b.clean(4)
	for _, src := range []*delta.Source{s, b.source()} {
		_, err := src.Latest(ctx, at, source.Limit{})
		wantFault(t, err, logs.CodeNoVersion, "cleaned", "onDataLoss: skip")
	}
	_, err := b.source(from(1)).Latest(ctx, zero, source.Limit{})
	wantFault(t, err, logs.CodeNoVersion, "onDataLoss: skip")

	for _, limit := range []int64{0, 1, 4} {
		warnings := 0
		got, end := drain(t, b.source(skipping(&warnings)), at, limit)
		wantIDs(t, got, 30, 3, 40, 3)
		if warnings == 0 {
			t.Error("no warning")
		}
		b.again(t, at, end, limit, got)
	}
	var left []*source.LeftOutError
	got, _ := drain(t, b.source(from(1), skipping(new(int)), leaving(&left)), zero, 0)
	wantIDs(t, got, 30, 3, 40, 3)
	if len(left) != 1 || !strings.Contains(left[0].Error(), "it goes on at version 4, as what comes before it is lost") {
		t.Errorf("left out %v", left)
	}
}

// Where a log has a hole, only a checkpoint after it lets a source go on.
func TestHole(t *testing.T) {
	b := numbers(t)
	b.commit(b.ids(0, 3))
	_, at := drain(t, b.source(), zero, 0)
	for i := range 3 { // versions 2 to 4
		b.commit(b.ids(10*(i+1), 3))
	}
	warnings := 0
	s := must(b.log.SnapshotAt(ctx, 3))(t)
	b.lose(2)
	_, err := b.source(skipping(&warnings)).Latest(ctx, at, source.Limit{})
	wantFault(t, err, logs.CodeDamaged, "the entry is missing")
	if err := b.log.WriteCheckpoint(ctx, s); err != nil {
		t.Fatal(err)
	}
	got, _ := drain(t, b.source(skipping(&warnings)), at, 0)
	wantIDs(t, got, 20, 3, 30, 3)
}

// again plans and reads with fresh sources, and wants the same.
func (b *table) again(t *testing.T, at, end checkpoint.Position, limit int64, want []string) {
	t.Helper()
	warnings := 0
	var got []string
	for at != end {
		to := latest(t, b.source(skipping(&warnings)), at, limit)
		got = append(got, read(t, b.source(skipping(&warnings)), source.Range{From: at, To: to})...)
		at = to
	}
	sameValues(t, got, want)
}

func sameValues(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("read %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("read %v, want %v", got, want)
		}
	}
}

// A log whose last entries are missing, or one in the middle, is never taken for one that has ended.
func TestMissingEntries(t *testing.T) {
	for _, c := range []struct {
		name string
		lost []int64
		code string
	}{
		{"the last that was read", []int64{2, 1}, logs.CodeNoVersion},
		{"the next, with another after it", []int64{3}, logs.CodeDamaged},
		{"the tail, and more", []int64{2, 3, 4}, logs.CodeNoVersion},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := numbers(t)
			for i := range 2 {
				b.commit(b.ids(i*10, 3))
			}
			s := b.source()
			_, at := drain(t, s, zero, 0)
			if len(c.lost) > 1 && c.lost[1] == 1 {
				b.lose(1)
				b.lose(2)
			} else {
				b.commit(b.ids(20, 3))
				b.commit(b.ids(30, 3))
				for _, v := range c.lost {
					b.lose(v)
				}
			}
			for _, src := range []*delta.Source{s, b.source()} {
				_, err := src.Latest(ctx, at, source.Limit{})
				wantFault(t, err, c.code)
				if !errors.Is(err, logs.ErrNoVersion) {
					t.Errorf("%v", err)
				}
			}
		})
	}
	b := numbers(t)
	b.commit(b.ids(0, 3))
	s := b.source()
	_, at := drain(t, s, zero, 0)
	b.tear(2)
	_, err := s.Latest(ctx, at, source.Limit{})
	wantFault(t, err, logs.CodeDamaged, "line 1")
}

// tear writes the first half of an entry.
func (b *table) tear(version int64) {
	b.t.Helper()
	b.commit(b.ids(900, 1))
	name := b.dir + "/_delta_log/0000000000000000000" + string(rune('0'+version)) + ".json"
	content := must(durable.ReadFile(b.files, name, 1<<20))(b.t)
	b.rewrite(name, content[:20])
}

func (b *table) rewrite(name string, content []byte) {
	b.t.Helper()
	if err := errors.Join(b.files.Remove(name), durable.WriteFile(b.files, name, content)); err != nil {
		b.t.Fatal(err)
	}
}

// A data file that is gone, cut, overwritten or of other rows stops the source, or is left out with a warning; the same when
// that happens after it was planned.
func TestDamagedFiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(b *table, a logs.Action)
		code   string
	}{
		{"gone", func(b *table, a logs.Action) {
			if err := b.files.Remove(b.path(a)); err != nil {
				b.t.Fatal(err)
			}
		}, delta.CodeChanged},
		{"cut", func(b *table, a logs.Action) {
			content := must(durable.ReadFile(b.files, b.path(a), 1<<20))(b.t)
			b.rewrite(b.path(a), content[:len(content)-1])
		}, delta.CodeChanged},
		{"no parquet", func(b *table, a logs.Action) { b.rewrite(b.path(a), make([]byte, a.Add.Size)) }, delta.CodeCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := numbers(t)
			files := []logs.Action{b.ids(0, 40), b.ids(100, 40), b.ids(200, 40)}
			b.commit(files...)
			half := latest(t, b.source(), zero, 60)
			whole := latest(t, b.source(), zero, 0)
			c.damage(b, files[1])

			// Before anything is planned: what comes before it is.
			first := latest(t, b.source(), zero, 0)
			wantIDs(t, read(t, b.source(), source.Range{To: first}), 0, 40)
			_, err := b.source().Latest(ctx, first, source.Limit{})
			wantFault(t, err, c.code, "part")

			// In the middle, and after it was planned.
			_, err = b.source().Latest(ctx, half, source.Limit{})
			wantFault(t, err, c.code)
			b.wantLost(t, source.Range{To: whole}, c.code)
			b.wantLost(t, source.Range{From: half, To: whole}, c.code)

			warnings := 0
			got, _ := drain(t, b.source(skipping(&warnings)), zero, 50)
			wantIDs(t, got, 0, 40, 200, 40)
			if warnings == 0 {
				t.Error("no warning")
			}
			var left []*source.LeftOutError
			got, _ = drain(t, b.source(skipping(&warnings), leaving(&left)), half, 7)
			wantIDs(t, got, 200, 40)
			if len(left) != 1 || left[0].Split != b.path(files[1]) || left[0].Amount() != "20 rows" {
				t.Errorf("left out %v, want 20 rows of %s", left, b.path(files[1]))
			}
		})
	}
	b := numbers(t)
	lies := b.ids(0, 3)
	lies.Add.Stats = `{"numRecords":4}`
	b.commit(lies)
	_, err := b.source().Latest(ctx, zero, source.Limit{})
	wantFault(t, err, delta.CodeChanged, "3 rows", "the log says 4")
}

// wantLost wants a range to fail as lost when it is read; a file that is gone or cut so that the plan is amended.
func (b *table) wantLost(t *testing.T, r source.Range, code string) {
	t.Helper()
	s := b.source()
	var err error
	for _, sp := range must(s.Splits(ctx, r))(t) {
		if err = s.Read(ctx, sp, &sourcetest.Collector{}); err != nil {
			break
		}
	}
	wantFault(t, err, code)
	if _, ok := errors.AsType[*source.ChangedError](err); ok != (code == delta.CodeChanged) {
		t.Errorf("%v is a change: %v", err, ok)
	}
}

// A planned range whose versions are cleaned away fails when it is read, so that its plan is amended where losses are skipped.
func TestPlannedAndCleaned(t *testing.T) {
	b := numbers(t)
	b.commit(b.ids(0, 3))
	_, at := drain(t, b.source(), zero, 0)
	b.commit(b.ids(10, 3))
	to := latest(t, b.source(), at, 0)
	b.commit(b.ids(20, 3))
	b.commit(b.ids(30, 3))
	b.clean(4)
	_, err := b.source().Splits(ctx, source.Range{From: at, To: to})
	wantFault(t, err, logs.CodeNoVersion)
	warnings := 0
	s := b.source(skipping(&warnings))
	cut := must(s.Splits(ctx, source.Range{From: at, To: to}))(t)
	if len(cut) != 1 {
		t.Fatalf("%d splits", len(cut))
	}
	err = s.Read(ctx, cut[0], &sourcetest.Collector{})
	if _, ok := errors.AsType[*source.ChangedError](err); !ok {
		t.Fatalf("%v is no change", err)
	}
	got, _ := drain(t, s, at, 0)
	wantIDs(t, got, 30, 3)
}

// Foreign and damaged positions are refused in words, and Spark's own are understood.
func TestPositions(t *testing.T) {
	b := numbers(t)
	b.commit(b.ids(0, 3), b.ids(3, 3))
	for _, c := range []struct{ line, extra, code string }{
		{`{"logOffset":3}`, "", delta.CodePosition},
		{`nonsense`, "", delta.CodePosition},
		{`{"sourceVersion":4,"reservoirId":"table-1","reservoirVersion":1,"index":0}`, "", delta.CodeVersion},
		{`{"sourceVersion":1,"reservoirId":"table-1","reservoirVersion":1,"index":0}`, `{"v":2}`, delta.CodeVersion},
		{`{"sourceVersion":1,"reservoirId":"table-1","reservoirVersion":1,"index":0}`, `{"v":`, delta.CodePosition},
		{`{"sourceVersion":1,"reservoirId":"table-1","reservoirVersion":1,"index":0}`, `{"v":1,"rows":-1}`, delta.CodePosition},
		{`{"sourceVersion":1,"reservoirId":"table-1","reservoirVersion":1,"index":0}`, `{"v":1,"rows":4}`, delta.CodePosition},
		{`{"sourceVersion":1,"reservoirId":"table-1","reservoirVersion":1,"index":7}`, `{"v":1}`, delta.CodePosition},
		{`{"sourceVersion":1,"reservoirId":"table-2","reservoirVersion":1,"index":0}`, `{"v":1}`, delta.CodeTable},
		{`{"sourceVersion":1,"reservoirId":"table-2","reservoirVersion":9,"index":0}`, `{"v":1}`, delta.CodeTable},
		{`{"sourceVersion":1,"reservoirId":"table-1","reservoirVersion":9,"index":0}`, `{"v":1}`, logs.CodeNoVersion},
		{`{"sourceVersion":1,"reservoirId":"table-1","reservoirVersion":-1,"index":0}`, `{"v":1}`, delta.CodePosition},
	} {
		_, err := b.source().Latest(ctx, checkpoint.Position{Line: c.line, Extra: c.extra}, source.Limit{})
		wantFault(t, err, c.code)
	}
	for line, want := range map[string][]int{
		`{"sourceVersion":1,"reservoirId":"table-1","reservoirVersion":1,"index":0,"isStartingVersion":true}`:     {3, 3},
		`{"sourceVersion":3,"reservoirId":"table-1","reservoirVersion":1,"index":-100,"isStartingVersion":false}`: {0, 6},
		`{"sourceVersion":1,"reservoirId":"table-1","reservoirVersion":2,"index":-1,"isStartingVersion":false}`:   {},
	} {
		got, _ := drain(t, b.source(), checkpoint.Position{Line: line}, 4)
		wantIDs(t, got, want...)
	}
	at := latest(t, b.source(), zero, 4)
	if at.Line != `{"sourceVersion":1,"reservoirId":"table-1","reservoirVersion":1,"index":0,"isStartingVersion":true}` ||
		at.Extra != `{"v":1,"rows":1,"begin":{"version":1,"snapshot":true}}` {
		t.Errorf("position %+v", at)
	}
	for _, s := range []source.Split{{Name: "x", Detail: []byte(`{`)}, {Name: "x", Detail: []byte(`{"from":2,"to":1}`)}} {
		if err := b.source().Read(ctx, s, &sourcetest.Collector{}); err == nil {
			t.Errorf("split %s is read", s.Detail)
		}
	}
}
