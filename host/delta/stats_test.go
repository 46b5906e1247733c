package delta_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
)

// column makes the statistics of a column from its least and greatest value.
func column(t testing.TB, path, typ string, lo, hi rows.Value) parquetfile.ColumnStats {
	t.Helper()
	parsed, err := rows.ParseType(typ)
	must(t, err)
	return parquetfile.ColumnStats{Path: strings.Split(path, "."), Type: parsed, Nulls: 1, Bounded: true, Min: lo, Max: hi}
}

func integers(lo, hi int64) [2]rows.Value { return [2]rows.Value{{Int: lo}, {Int: hi}} }
func floats(lo, hi float64) [2]rows.Value { return [2]rows.Value{{Float: lo}, {Float: hi}} }
func texts(lo, hi string) [2]rows.Value {
	return [2]rows.Value{{Bytes: []byte(lo)}, {Bytes: []byte(hi)}}
}

func TestStats(t *testing.T) {
	one := func(path, typ string, lo, hi rows.Value) parquetfile.ColumnStats { return column(t, path, typ, lo, hi) }
	of1 := func(typ string, bounds [2]rows.Value) []parquetfile.ColumnStats {
		return []parquetfile.ColumnStats{one("c", typ, bounds[0], bounds[1])}
	}
	a32 := strings.Repeat("a", 32)
	wide := rows.Int128{Hi: -1, Lo: 0} // -2^64
	for _, c := range []struct {
		name    string
		columns []parquetfile.ColumnStats
		min     string
		max     string
	}{
		{"integers", of1("int64", integers(math.MinInt64, math.MaxInt64)), `{"c":-9223372036854775808}`, `{"c":9223372036854775807}`},
		{"dates", of1("date", integers(-719162, 20000)), `{"c":"0001-01-01"}`, `{"c":"2024-10-04"}`},
		{"time stamps", of1("timestamp", integers(-1, 5_678_901)), `{"c":"1969-12-31T23:59:59.999Z"}`, `{"c":"1970-01-01T00:00:05.679Z"}`},
		{"whole milliseconds", of1("timestamp(us)", integers(-2000, 5000)), `{"c":"1969-12-31T23:59:59.998Z"}`, `{"c":"1970-01-01T00:00:00.005Z"}`},
		{"times of a clock", of1("timestamp_ntz", integers(-1, 5_678_901)), `{"c":"1969-12-31T23:59:59.999"}`, `{"c":"1970-01-01T00:00:05.679"}`},
		{"whole milliseconds of a clock", of1("timestamp_ntz", integers(1_686_832_200_000_000, 5_000)), `{"c":"2023-06-15T12:30:00.000"}`, `{"c":"1970-01-01T00:00:00.005"}`},
		{"the last time of a clock", of1("timestamp_ntz", integers(0, 253_402_300_799_999_999)), `{"c":"1970-01-01T00:00:00.000"}`, `{}`},
		{"the last time stamp", of1("timestamp", integers(0, 253_402_300_799_999_999)), `{"c":"1970-01-01T00:00:00.000Z"}`, `{}`},
		{"a float is a double", of1("float", floats(float64(float32(1.3333334)), 1e30)), `{"c":1.3333333730697632}`, `{"c":1e+30}`},
		{"zeros", of1("double", floats(0, math.Copysign(0, -1))), `{"c":-0.0}`, `{"c":0.0}`},
		{"infinities", of1("double", floats(math.Inf(-1), math.Inf(1))), `{}`, `{}`},
		{"one infinity", of1("double", floats(-1, math.Inf(1))), `{"c":-1}`, `{}`},
		{"wide decimals", []parquetfile.ColumnStats{one("c", "decimal(38,12)", rows.Value{Wide: wide}, rows.Value{Wide: rows.Int128{Lo: 1}})}, `{"c":-18446744.073709551616}`, `{"c":0.000000000001}`},
		{"texts", of1("string", texts("", "ü\"\\\n")), `{"c":""}`, `{"c":"ü\"\\\u000a"}`},
		{"a text of just the length", of1("string", texts(a32, a32)), `{"c":"` + a32 + `"}`, `{"c":"` + a32 + `"}`},
		{"long texts", of1("string", texts(a32+"x", a32+"x")), `{"c":"` + a32 + `"}`, `{"c":"` + a32 + "\x7f" + `"}`},
		{"long texts beyond ASCII", of1("string", texts(strings.Repeat("ü", 40), strings.Repeat("ü", 40))), `{"c":"` + strings.Repeat("ü", 32) + `"}`, `{"c":"` + strings.Repeat("ü", 32) + "\U0010ffff" + `"}`},
		{"nothing above", of1("string", texts("a", strings.Repeat("\U0010ffff", 65))), `{"c":"a"}`, `{}`},
		{"no text", of1("string", texts("\xff", "\xff")), `{}`, `{}`},
		{"kinds without bounds", []parquetfile.ColumnStats{
			one("b", "boolean", rows.Value{}, rows.Value{Int: 1}), one("r", "binary", rows.Value{Bytes: []byte("a")}, rows.Value{Bytes: []byte("b")}),
			{Path: []string{"l"}, Type: rows.Type{Kind: rows.List}, Nulls: 1},
		}, `{}`, `{}`},
		{"structs", []parquetfile.ColumnStats{
			one("s.a", "int8", rows.Value{Int: 1}, rows.Value{Int: 2}), one("s.n.b", "boolean", rows.Value{}, rows.Value{}),
			one("s.n.c", "int8", rows.Value{Int: 3}, rows.Value{Int: 4}), one("t.x", "boolean", rows.Value{}, rows.Value{}), one("u", "int8", rows.Value{Int: 5}, rows.Value{Int: 6}),
		}, `{"s":{"a":1,"n":{"c":3}},"u":5}`, `{"s":{"a":2,"n":{"c":4}},"u":6}`},
		{"nothing known", []parquetfile.ColumnStats{{Path: []string{"c"}, Type: rows.Type{Kind: rows.Int8}, Nulls: 1}}, `{}`, `{}`},
		{"no columns", nil, `{}`, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := delta.Stats(&parquetfile.Stats{Rows: 9, Columns: c.columns}, metadata())
			head, tail, ok := strings.Cut(got, `,"nullCount":`)
			if !ok || head != `{"numRecords":9,"minValues":`+c.min+`,"maxValues":`+c.max {
				t.Errorf("got %s", got)
			}
			if !json.Valid([]byte(got)) || strings.Count(tail, "1") != len(c.columns) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// The table says of how many columns, or of which, statistics are kept.
func TestStatsColumns(t *testing.T) {
	var columns []parquetfile.ColumnStats
	for _, name := range strings.Split("a,s.x,s.y,s2.x,"+strings.Repeat("z,", 30)+"end", ",") {
		columns = append(columns, column(t, name, "int8", rows.Value{}, rows.Value{}))
	}
	for _, c := range []struct {
		property, value string
		want            int
	}{
		{"x", "", 32},
		{"delta.dataSkippingNumIndexedCols", "2", 2},
		{"delta.dataSkippingNumIndexedCols", "0", 0},
		{"delta.dataSkippingNumIndexedCols", "-1", 35},
		{"delta.dataSkippingNumIndexedCols", "x", 32},
		{"delta.dataSkippingStatsColumns", "end, s", 3},
		{"delta.dataSkippingStatsColumns", "`s`.`y`,nothing", 1},
	} {
		got := delta.Stats(&parquetfile.Stats{Rows: 1, Columns: columns}, metadata(c.property, c.value))
		_, nulls, _ := strings.Cut(got, "nullCount")
		if n := strings.Count(nulls, ":1"); n != c.want {
			t.Errorf("%s=%s: %d columns: %s", c.property, c.value, n, got)
		}
	}
}

// What a file holds lies within its bounds, as readers compare.
func TestStatsHoldEveryValue(t *testing.T) {
	schema := schemaOf(t, "s", "string", "t", "timestamp", "f", "float")
	rapid.Check(t, func(t *rapid.T) {
		table := rows.NewTable(schema)
		var lo, hi string
		var early, late time.Time
		var least, most float64
		for i := range rapid.IntRange(1, 5).Draw(t, "rows") {
			text := strings.Repeat(rapid.StringOf(rapid.SampledFrom([]rune{'a', '~', '\x7f', 'ü', '\U0010ffff', '\U0010fffe'})).Draw(t, "text"), rapid.IntRange(1, 20).Draw(t, "times"))
			at := time.UnixMicro(rapid.Int64Range(-1e15, 1e15).Draw(t, "at")).UTC()
			f := float64(rapid.Float32Range(-1e30, 1e30).Draw(t, "f"))
			row, err := json.Marshal(map[string]any{"s": text, "t": at.Format(time.RFC3339Nano), "f": f})
			if err == nil {
				err = table.Append(row)
			}
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				lo, hi, early, late, least, most = text, text, at, at, f, f
			}
			lo, hi, least, most = min(lo, text), max(hi, text), min(least, f), max(most, f)
			if at.Before(early) {
				early = at
			}
			if at.After(late) {
				late = at
			}
		}
		w, err := parquetfile.New(schema, parquetfile.Options{Codec: parquetfile.None, CreatedBy: "wasmill version 0"})
		if err != nil {
			t.Fatal(err)
		}
		var out discard
		for _, err := range []error{w.Reset(&out), w.WriteRowGroup([]parquetfile.Rows{{Table: table}}), w.Close()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		var got struct {
			NumRecords           int
			MinValues, MaxValues struct {
				S *string
				T *time.Time
				F *float64
			}
			NullCount map[string]int
		}
		stats := delta.Stats(w.Stats(), metadata())
		if err := json.Unmarshal([]byte(stats), &got); err != nil {
			t.Fatal(err)
		}
		if got.NumRecords != table.Len() || cmp.Diff(map[string]int{"s": 0, "t": 0, "f": 0}, got.NullCount) != "" {
			t.Fatalf("stats %s", stats)
		}
		if s := got.MinValues.S; s == nil || *s > lo || utf8.RuneCountInString(*s) > 32 {
			t.Fatalf("min of texts: %s, %q", stats, lo)
		}
		if s := got.MaxValues.S; s != nil && (*s < hi || utf8.RuneCountInString(*s) > 64) {
			t.Fatalf("max of texts: %s, %q", stats, hi)
		}
		if got.MinValues.T.After(early) || got.MaxValues.T.Before(late) || late.Sub(*got.MaxValues.T) > time.Millisecond {
			t.Fatalf("time stamps: %s, %v, %v", stats, early, late)
		}
		if *got.MinValues.F > least || *got.MaxValues.F < most {
			t.Fatalf("floats: %s, %v, %v", stats, least, most)
		}
	})
}

type discard struct{ n int }

func (d *discard) Write(b []byte) (int, error) { d.n += len(b); return len(b), nil }
