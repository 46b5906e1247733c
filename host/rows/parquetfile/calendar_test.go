package parquetfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

func calendarFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "calendar", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSparkCalendars reads what Spark wrote by either calendar as Spark itself does, or says which rows it cannot tell.
func TestSparkCalendars(t *testing.T) {
	s := rowstest.SchemaOf(t, "id", "int32", "d", "date", "t", "timestamp", "n", "timestamp_ntz", "l", "list<date>",
		"s", "struct<t: timestamp>", "m", "map<date, timestamp>")
	want := strings.Split(strings.TrimSpace(string(calendarFile(t, "rows.jsonl"))), "\n")
	days := []int{s.Index("id"), s.Index("d"), s.Index("n"), s.Index("l")}
	for _, c := range []struct {
		file    string
		only    []int
		refused int // how many of the first rows
	}{
		{file: "corrected.parquet"},
		{file: "corrected-int96.parquet"},
		{file: "legacy.parquet"},
		{file: "legacy-millis.parquet"},
		{file: "legacy-int96.parquet"},
		{file: "legacy-zone.parquet", refused: 8},
		{file: "legacy-zone.parquet", only: days},
	} {
		t.Run(fmt.Sprint(c.file, c.only), func(t *testing.T) {
			told := map[int]int{}
			opts := parquetfile.ReadOptions{Only: c.only, Refuse: func(row int, column string, why *parquetfile.UnsupportedError) {
				if !slices.Contains([]string{"t", "s", "m"}, column) || !strings.Contains(why.Error(), "America/Los_Angeles") || why.Hint() == "" {
					t.Errorf("row %d, column %s: %v", row, column, why)
				}
				told[row]++
			}}
			got := readAll(t, calendarFile(t, c.file), s, opts, 100)
			for row := range got.Len() {
				if row < c.refused {
					if told[row] != 3 {
						t.Errorf("row %d was refused %d times, want once a column", row, told[row])
					}
					continue
				}
				w := want[row]
				if c.only != nil {
					before, _, _ := strings.Cut(w, `,"t":`)
					_, after, _ := strings.Cut(w, `,"n":`)
					after, _, _ = strings.Cut(after, `,"s":`)
					w = before + `,"t":null,"n":` + after + `,"s":null,"m":null}`
				}
				if json := string(rowstest.JSON(got, row)); json != w {
					t.Errorf("row %d: %s, want %s", row, json, w)
				}
			}
			if got.Len() != len(want) || len(told) != c.refused {
				t.Errorf("%d rows, %d refused", got.Len(), len(told))
			}
		})
	}
	t.Run("without refusals", func(t *testing.T) {
		b := calendarFile(t, "legacy-zone.parquet")
		r, err := parquetfile.OpenReader(bytes.NewReader(b), int64(len(b)), s, parquetfile.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(rows.NewTable(s), 1); !isUnsupportedError(err) {
			t.Errorf("read: %v", err)
		}
	})
}

func isUnsupportedError(err error) bool {
	_, ok := errors.AsType[*parquetfile.UnsupportedError](err)
	return ok
}

// TestCalendarOfFooter decides by the keys of a footer as Spark's DataSourceUtils does. The days in the file
// are those of the Julian 1582-10-04 and of the last in 1899.
func TestCalendarOfFooter(t *testing.T) {
	const version, zone, dateTime, int96 = "org.apache.spark.version", "org.apache.spark.timeZone", "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"
	const julian, proleptic, last = "1582-10-04", "1582-10-14", "1899-12-31"
	clock := func(day string) string { return day + "T00:00:00.000000Z" }
	same := [4]string{proleptic, clock(proleptic), clock(proleptic), clock(last)}
	legacy := [4]string{julian, clock(julian), clock(julian), clock(last)}
	unsure := [4]string{julian, "!", "!", "!"} // times whose zone is not known
	for _, c := range []struct {
		keys []string
		want [4]string // a date, a time, an INT96, and a time of 1899
	}{
		{nil, same},
		{[]string{"writer", "other"}, same},
		{[]string{version, "3.5.1"}, same},
		{[]string{version, "4.0.0", zone, "UTC"}, same},
		{[]string{version, "10.0.0"}, same},
		{[]string{version, "unknown"}, same},
		{[]string{version, "3.5.1", dateTime, "", int96, "", zone, "UTC"}, legacy},
		{[]string{version, "3.5.1", dateTime, "", int96, "", zone, "Etc/UTC"}, legacy},
		{[]string{version, "3.5.1", dateTime, "", zone, "UTC"}, [4]string{julian, clock(julian), clock(proleptic), clock(last)}},
		{[]string{version, "3.5.1", int96, "", zone, "UTC"}, [4]string{proleptic, clock(proleptic), clock(julian), clock(last)}},
		{[]string{version, "3.5.1", dateTime, "", int96, "", zone, "Europe/Paris"}, unsure},
		{[]string{version, "3.5.1", dateTime, "", int96, ""}, unsure},
		{[]string{version, "2.4.8"}, unsure},
		{[]string{version, "3.0.3"}, [4]string{proleptic, clock(proleptic), "!", clock(last)}},
		{[]string{"org.apache.spark.sql.parquet.row.metadata", "{}"}, [4]string{"!", "!", "!", "!"}},
		{[]string{dateTime, ""}, [4]string{"!", "!", "!", "!"}},
	} {
		t.Run(strings.Join(c.keys, " "), func(t *testing.T) {
			file := aged(t, c.keys)
			for i, want := range c.want {
				name := string("dtiu"[i])
				typ := "timestamp"
				if name == "d" {
					typ = "date"
				}
				tab, err := tryRead(file, rowstest.SchemaOf(t, name, typ))
				if want == "!" {
					if !isUnsupportedError(err) {
						t.Errorf("%s: %v, want a refusal", name, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got := string(rowstest.JSON(tab, 0)); got != fmt.Sprintf(`{%q:%q}`, name, want) {
					t.Errorf("%s, want %s", got, want)
				}
			}
		})
	}
}

// aged writes a file of one row with keys and values in its footer.
func aged(t *testing.T, keys []string) []byte {
	t.Helper()
	const day, last, perDay = -141_428, -25_568, 86_400_000
	root := parquet.Group{
		"d": parquet.Date(), "i": parquet.Leaf(parquet.Int96Type), "t": parquet.Timestamp(parquet.Millisecond), "u": parquet.Timestamp(parquet.Millisecond),
	}
	opts := []parquet.WriterOption{parquet.NewSchema("other", root)}
	for i := 0; i < len(keys); i += 2 {
		opts = append(opts, parquet.KeyValueMetadata(keys[i], keys[i+1]))
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[any](&out, opts...)
	_, err := w.WriteRows([]parquet.Row{{
		parquet.Int32Value(day).Level(0, 0, 0), parquet.Int96Value(deprecated.Int96{0, 0, 2_440_588 + day}).Level(0, 0, 1),
		parquet.Int64Value(day*perDay).Level(0, 0, 2), parquet.Int64Value(last*perDay).Level(0, 0, 3),
	}})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
