package delta_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	logs "github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/delta"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

var zero checkpoint.Position

// A snapshot is read by modification time, whatever the order of commits, and then what versions add in the order of the log.
func TestOrder(t *testing.T) {
	b := numbers(t)
	late, early := b.ids(0, 3), b.ids(10, 3)
	late.Add.ModificationTime, early.Add.ModificationTime = 2000, 1000
	b.commit(late)
	b.commit(early)
	s := b.source()
	got, at := drain(t, s, zero, 2)
	wantIDs(t, got, 10, 3, 0, 3)
	first, second := b.ids(20, 2), b.ids(30, 2)
	first.Add.ModificationTime, second.Add.ModificationTime = 9, 8
	b.commit(first, second)
	b.commit(b.ids(40, 2))
	got, _ = drain(t, s, at, 0)
	wantIDs(t, got, 20, 2, 30, 2, 40, 2)
}

// Where a source without progress begins is kept from its first plan on.
func TestStart(t *testing.T) {
	b := numbers(t)
	b.commit(b.ids(0, 5))
	b.commit(b.ids(10, 5))
	got, _ := drain(t, b.source(from(2)), zero, 0)
	wantIDs(t, got, 10, 5)
	_, err := b.source(from(4)).Latest(ctx, zero, source.Limit{})
	wantFault(t, err, delta.CodeStart, "begins at version 4", "newest version of the table is 2", "version 3 at most")

	var at [2]checkpoint.Position
	sources := [2]*delta.Source{b.source(atLatest), b.source(from(3))}
	for i, s := range sources {
		at[i] = latest(t, s, zero, 0)
		if at[i] == zero {
			t.Fatal("the start is not kept")
		}
		if got := read(t, s, source.Range{To: at[i]}); len(got) > 0 {
			t.Fatalf("read %v before anything came", got)
		}
		if again := latest(t, s, at[i], 0); again != at[i] {
			t.Fatalf("planned %+v, and nothing is new", again)
		}
	}
	b.commit(b.ids(20, 2))
	for i, s := range sources {
		got, _ := drain(t, s, at[i], 0)
		wantIDs(t, got, 20, 2)
	}
	empty := numbers(t)
	s := empty.source()
	got, end := drain(t, s, zero, 0)
	wantIDs(t, got)
	empty.commit(empty.ids(0, 1))
	got, _ = drain(t, s, end, 0)
	wantIDs(t, got, 0, 1)

	none := &table{t: t, files: b.files, dir: "/nothing"}
	_, err = none.source().Latest(ctx, zero, source.Limit{})
	wantFault(t, err, logs.CodeNoTable, "name the directory")
	wantFault(t, none.source().Freeze(ctx), logs.CodeNoTable, "name the directory")
}

// Files that were only rearranged are not delivered, and no batch is planned for them, until many such versions have come.
func TestRearranged(t *testing.T) {
	b := numbers(t)
	one, two := b.ids(0, 3), b.ids(3, 3)
	b.commit(one, two)
	s := b.source()
	got, at := drain(t, s, zero, 0)
	wantIDs(t, got, 0, 6)
	whole := b.ids(0, 6)
	b.commit(removeOf(one, false), removeOf(two, false), rearranged(whole))
	if next := latest(t, s, at, 0); next != at {
		t.Fatalf("a batch of nothing is planned: %+v", next)
	}
	b.commit(b.ids(6, 1))
	got, at = drain(t, s, at, 0)
	wantIDs(t, got, 6, 1)
	for range 101 {
		b.commit(logs.Action{Txn: &logs.Txn{AppID: "other", Version: 1}})
	}
	next := latest(t, s, at, 0)
	if next == at || len(read(t, s, source.Range{From: at, To: next})) > 0 {
		t.Fatalf("position %+v after many versions without a row", next)
	}
	got, _ = drain(t, b.source(), zero, 0)
	wantIDs(t, got, 0, 6, 6, 1)
}

// A version that removes rows stops the source, or is passed over, by OnChange.
func TestRemoves(t *testing.T) {
	for _, c := range []struct {
		on    delta.OnChange
		adds  bool
		want  []int
		fails string
	}{
		{delta.Stop, false, []int{0, 3}, "version 3 removes rows"},
		{delta.Stop, true, []int{0, 3}, "onChange: skip"},
		{delta.Skip, false, []int{0, 3, 20, 3}, ""},
		{delta.Skip, true, []int{0, 3, 20, 3}, ""},
		{delta.IgnoreDeletes, false, []int{0, 3, 20, 3}, ""},
		{delta.IgnoreDeletes, true, []int{0, 3}, "adds others"},
	} {
		t.Run(fmt.Sprint(c.on, c.adds), func(t *testing.T) {
			b := numbers(t)
			old := b.ids(0, 3)
			b.commit(old)
			b.commit(logs.Action{Txn: &logs.Txn{AppID: "other", Version: 1}})
			change := []logs.Action{removeOf(old, true)}
			if c.adds {
				change = append(change, b.ids(10, 3))
			}
			b.commit(change...)
			b.commit(b.ids(20, 3))
			var left []*source.LeftOutError
			s := b.source(from(0), onChange(c.on), leaving(&left))
			at := latest(t, s, zero, 0)
			got := read(t, s, source.Range{To: at})
			if c.fails == "" {
				wantIDs(t, got, c.want...)
				latest(t, s, zero, 0) // as a batch that is planned again
				if c.adds {
					wantLeft(t, left, b.dir+" version 3: it removes rows (those of "+old.Add.Path+") and is passed over with what it adds: left out: 3 rows")
				} else {
					wantLeft(t, left)
				}
				return
			}
			wantIDs(t, got, c.want...) // what comes before is delivered first
			_, err := s.Latest(ctx, at, source.Limit{})
			wantFault(t, err, delta.CodeRemoved, c.fails, "part")
		})
	}
}

// Columns may come under a running job; after another change of the schema the job must be started again.
func TestSchemaChanges(t *testing.T) {
	for _, c := range []struct {
		name     string
		was, is  []string
		row      string
		stops    string // what the fault speaks of
		refused  string // the code of a fault that a new start does not mend
		repartit bool
	}{
		{name: "a column more", was: []string{"id int64"}, is: []string{"id int64", "note string"}, row: `{"id":1,"note":"x"}`},
		{name: "another order", was: []string{"id int64", "note string"}, is: []string{"note string", "id int64"}, row: `{"note":"x","id":1}`},
		{name: "not null from now on", was: []string{"id int64"}, is: []string{"id int64 not null"}, row: `{"id":1}`},
		{name: "a field more", was: []string{"s struct<a: int64>"}, is: []string{"s struct<a: int64, b: list<string>>"}, row: `{"s":{"a":1,"b":["x"]}}`},
		{name: "a column less", was: []string{"id int64", "note string"}, is: []string{"id int64"}, row: `{"id":1}`, stops: "column note is gone"},
		{name: "another type", was: []string{"id int64"}, is: []string{"id string"}, row: `{"id":"1"}`, stops: "column id is string and was int64"},
		{name: "null from now on", was: []string{"id int64 not null"}, is: []string{"id int64"}, row: `{"id":null}`, stops: "column id may be null"},
		{name: "a required column more", was: []string{"id int64"}, is: []string{"id int64", "n int32 not null"}, row: `{"id":1,"n":2}`, stops: "column n has come"},
		{name: "inside", was: []string{"m map<string, list<struct<a: decimal(9,2)>>>"}, is: []string{"m map<string, list<struct<a: decimal(10,2)>>>"}, row: `{"m":{"k":[{"a":1.00}]}}`, stops: "column m.value.element.a"},
		{name: "other partitions", was: []string{"id int64", "p string"}, is: []string{"id int64", "p string"}, row: `{"id":1,"p":"x"}`, stops: "partition columns are (p) and were ()", repartit: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTable(t, parseSchema(t, c.was...))
			s := b.source()
			_, at := drain(t, s, zero, 0)
			b.schema = parseSchema(t, c.is...)
			if c.repartit {
				b.parts = []string{"p"}
			}
			b.commit(b.metadata("table-1"), b.file(c.row))
			want := fmt.Sprintf("%q", c.row)
			if c.stops != "" {
				for range 2 {
					_, err := s.Latest(ctx, at, source.Limit{})
					wantFault(t, err, delta.CodeSchema, c.stops, "version 1", "start it again")
				}
				s = b.source() // the job is started again
			}
			got, _ := drain(t, s, at, 0)
			if strings.Join(got, " ") != want {
				t.Fatalf("read %v, want %s", got, want)
			}
			// Whoever reads the range again has the same, also after the schema has changed once more.
			b.schema, b.parts = parseSchema(t, "other date"), nil
			b.commit(b.metadata("table-1"))
			to := latest(t, b.source(), at, 1)
			if got := read(t, b.source(), source.Range{From: at, To: to}); strings.Join(got, " ") != want {
				t.Fatalf("read again %v, want %s", got, want)
			}
		})
	}
}

// A row has the columns of the version that is read: of a snapshot all there are, null in files from before they came.
func TestOldFiles(t *testing.T) {
	b := numbers(t)
	b.commit(b.ids(0, 1))
	b.schema = parseSchema(t, "note string", "id int64", "l list<int32>")
	b.commit(b.metadata("table-1"))
	b.commit(b.file(`{"id":1,"note":"x","l":[1]}`))
	for _, c := range []struct {
		opts []func(*delta.Config)
		want string
	}{
		{nil, `{"note":null,"id":0,"l":null} {"note":"x","id":1,"l":[1]}`},
		{[]func(*delta.Config){from(0)}, `{"id":0} {"note":"x","id":1,"l":[1]}`},
	} {
		got, _ := drain(t, b.source(c.opts...), zero, 0)
		for i := range got {
			got[i] = unquote(t, got[i])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("read %v, want %s", got, c.want)
		}
	}
}

// A table that is no longer one that can be read stops the source before the version that makes it so.
func TestGate(t *testing.T) {
	b := numbers(t)
	s := b.source()
	b.commit(b.ids(0, 3))
	_, at := drain(t, s, zero, 0)
	b.commit(logs.Action{Protocol: &logs.Protocol{MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"variantType"}, WriterFeatures: []string{"variantType"}}})
	for _, src := range []*delta.Source{s, b.source()} {
		_, err := src.Latest(ctx, at, source.Limit{})
		wantFault(t, err, logs.CodeFeature, "variantType")
	}
	b = numbers(t)
	b.commit(b.ids(0, 3))
	_, at = drain(t, b.source(), zero, 0)
	dv := b.ids(3, 3)
	dv.Add.DeletionVector = &logs.DeletionVector{StorageType: "i", PathOrInlineDV: "x", SizeInBytes: 1, Cardinality: 1}
	b.commit(dv)
	_, err := b.source().Latest(ctx, at, source.Limit{})
	wantFault(t, err, logs.CodeFeature, "deletionVectors")
	_, err = b.source().Latest(ctx, zero, source.Limit{Records: 1})
	wantFault(t, err, logs.CodeFeature, "deletionVectors")
}

// A table that is made anew is not taken for the one that was read, whether the job runs or not.
func TestMadeAnew(t *testing.T) {
	for _, versions := range []int{1, 2, 3, 6} {
		for _, id := range []string{"table-1", "table-2"} {
			b := numbers(t)
			b.commit(b.ids(0, 3))
			s := b.source()
			_, at := drain(t, s, zero, 0)
			if next := latest(t, s, at, 0); next != at {
				t.Fatal("something is new")
			}
			infos := must(b.files.List(b.dir + "/_delta_log"))(t)
			for _, i := range infos {
				if err := b.files.Remove(b.dir + "/_delta_log/" + i.Name); err != nil {
					t.Fatal(err)
				}
			}
			b.make(id)
			for range versions - 1 {
				b.commit(b.ids(50, 3))
			}
			for _, src := range []*delta.Source{s, b.source()} {
				_, err := src.Latest(ctx, at, source.Limit{})
				switch {
				case err == nil && src != s && id == "table-1" && versions > 1:
					continue // nothing tells it from the first, not even its id
				case err == nil && versions == 2:
					continue // as long as the old one: nothing is read yet
				case err == nil:
					t.Fatalf("%d versions of %s are taken for the table that was read", versions, id)
				case errors.Is(err, logs.ErrNoVersion) && versions == 1:
				default:
					wantFault(t, err, delta.CodeTable, "table")
				}
			}
		}
	}
}

// A frozen source ends at the version that was newest.
func TestEnded(t *testing.T) {
	b := numbers(t)
	b.commit(b.ids(0, 5))
	b.commit(logs.Action{Txn: &logs.Txn{AppID: "other", Version: 1}})
	s := b.source()
	if s.Ended(zero) {
		t.Error("nothing is planned and it ended")
	}
	restarted := b.source()
	if err := errors.Join(s.Freeze(ctx), restarted.Freeze(ctx)); err != nil {
		t.Fatal(err)
	}
	b.commit(b.ids(10, 5))
	half := latest(t, s, zero, 3)
	if s.Ended(half) {
		t.Error("ended in the middle")
	}
	end := latest(t, s, half, 10)
	if !s.Ended(end) || s.Ended(half) {
		t.Error("not ended at its end")
	}
	if latest(t, s, end, 0) != end || !s.Ended(end) {
		t.Error("goes on after its end")
	}
	if !restarted.Ended(end) || restarted.Ended(half) {
		t.Error("another process, frozen at the same version, does not know the end without a plan")
	}
	fresh := b.source()
	if latest(t, fresh, end, 0) == end || fresh.Ended(end) {
		t.Error("what is not frozen has no end")
	}
}

// A large file is read by several splits, in batches that end inside of it, each row once.
func TestLargeFile(t *testing.T) {
	const n = 100_000
	b := numbers(t)
	b.group = 30_000
	b.commit(b.ids(0, n))
	s := b.source()
	next := 0
	for at, to := zero, latest(t, s, zero, 70_000); to != at; at, to = to, latest(t, s, to, 70_000) {
		r := source.Range{From: at, To: to}
		if cut := must(s.Splits(ctx, r))(t); at == zero && len(cut) != 2 {
			t.Errorf("%d splits of 70000 rows", len(cut))
		}
		for _, value := range read(t, s, r) {
			if want := fmt.Sprintf("%q", fmt.Sprintf(`{"id":%d}`, next)); value != want {
				t.Fatalf("read %s, want %s", value, want)
			}
			next++
		}
	}
	if next != n {
		t.Errorf("read %d rows", next)
	}
}

// Asking for news reads neither the whole log nor a snapshot, however long the log is: waiting looks for two entries, and a
// version that comes is read with the one before it, and its files' footers.
func TestLatestReadsLittle(t *testing.T) {
	b := numbers(t)
	add := b.ids(0, 3)
	for range 150 {
		b.commit(add)
	}
	lists, opens := b.count("list:before"), b.count("open:before")
	s := b.source()
	_, at := drain(t, s, zero, 0)
	for _, c := range []struct {
		commits int
		most    int
	}{{0, 3}, {0, 3}, {1, 12}, {3, 20}} {
		for range c.commits {
			b.commit(add)
		}
		*lists, *opens = 0, 0
		at = latest(t, s, at, 0)
		if *lists > 0 || *opens > c.most {
			t.Errorf("%d lists and %d opens for %d commits", *lists, *opens, c.commits)
		}
	}
	// A commit that is planned piece by piece is read once.
	b.commit(b.ids(0, 16), b.ids(0, 16), b.ids(0, 16))
	at = latest(t, s, at, 5)
	for to := latest(t, s, at, 5); to != at; to = latest(t, s, at, 5) {
		*opens = 0
		if read(t, s, source.Range{From: at, To: to}); *opens > 2 {
			t.Errorf("%d opens to read at most two files", *opens)
		}
		at = to
	}
}

// What a range holds is known without reading it.
func TestMeasure(t *testing.T) {
	for _, stats := range []bool{true, false} {
		b := numbers(t)
		b.stats = stats
		b.commit(b.ids(0, 5), b.ids(5, 0))
		b.commit(b.ids(10, 5))
		s := b.source()
		first := latest(t, s, zero, 3)
		second := latest(t, s, first, 100)
		for _, src := range []*delta.Source{s, b.source()} {
			for _, c := range []struct {
				from, to       checkpoint.Position
				parts, records int64
			}{{zero, first, 1, 3}, {first, second, 2, 7}, {second, second, 0, 0}, {zero, second, 0, 0}} {
				x, err := src.Measure(ctx, source.Range{From: c.from, To: c.to})
				if c.from == zero && c.to == second {
					wantFault(t, err, delta.CodePosition)
					continue
				}
				if err != nil || x != (source.Extent{Parts: c.parts, Records: c.records}) {
					t.Errorf("%+v, %v, want %+v", x, err, c)
				}
			}
		}
	}
}

// Rows that have no JSON form or are too long are rejected at their place.
func TestRejected(t *testing.T) {
	b := newTable(t, parseSchema(t, "s string"))
	b.commit(b.file(`{"s":"a"}`, `{"s":"`+strings.Repeat("x", 16<<20)+`"}`, `{"s":"b"}`))
	s := b.source()
	at := latest(t, s, zero, 0)
	var c sourcetest.Collector
	for _, sp := range must(s.Splits(ctx, source.Range{To: at}))(t) {
		if err := s.Read(ctx, sp, &c); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.Records) != 3 || c.Records[0].Code != "" || c.Records[1].Code != delta.RejectTooLarge || c.Records[1].Offset != 1 || c.Records[2].Code != "" {
		t.Fatalf("%d records", len(c.Records))
	}
}

// A configuration that means nothing is refused.
func TestConfig(t *testing.T) {
	for _, cfg := range []delta.Config{
		{},
		{Dir: "x", OnChange: "sometimes"},
		{Dir: "x", Start: delta.Start{Snapshot: true, Latest: true}},
		{Dir: "x", Start: delta.Start{Latest: true, Version: 3}},
		{Dir: "x", Start: delta.Start{Version: -1}},
		{Dir: "x", Attach: []string{"topic"}},
	} {
		cfg.Name, cfg.Files = "in", durable.OS()
		_, err := delta.New(cfg)
		wantFault(t, err, delta.CodeConfig)
	}
}
