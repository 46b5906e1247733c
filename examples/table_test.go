package examples

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// entry is one line of a sink's manifest.
type entry struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Action string `json:"action"`
}

// manifest reads `_spark_metadata` by Spark's rules: ids without gaps from the newest .compact on, which must stand at 9,
// 19 and so on; every file there, once, with its exact size. It returns the files' paths.
func manifest(t *testing.T, dir string) []string {
	t.Helper()
	meta := filepath.Join(dir, "_spark_metadata")
	names, err := os.ReadDir(meta)
	if os.IsNotExist(err) {
		return nil // never called
	}
	if err != nil {
		t.Fatal(err)
	}
	latest := -1
	for _, n := range names {
		if id, err := strconv.Atoi(strings.TrimSuffix(n.Name(), ".compact")); err == nil {
			latest = max(latest, id)
		}
	}
	var files []string
	for id := max(0, (latest+1)/10*10-1); id <= latest; id++ {
		name := strconv.Itoa(id)
		if (id+1)%10 == 0 {
			name += ".compact"
		}
		files = append(files, entries(t, filepath.Join(meta, name))...)
	}
	slices.Sort(files)
	if n := len(files); n != len(slices.Compact(slices.Clone(files))) {
		t.Errorf("%s: a file is listed twice", dir)
	}
	return files
}

func entries(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatalf("the manifest has a gap: %v", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	if !lines.Scan() || lines.Text() != "v1" {
		t.Fatalf("%s begins with %q", name, lines.Text())
	}
	var files []string
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(e.Path)
		if err != nil || e.Action != "add" {
			t.Fatalf("%s: entry %s: %v", name, lines.Text(), err)
		}
		info, err := os.Stat(u.Path)
		if err != nil || info.Size() != e.Size {
			t.Fatalf("%s: %s is listed with %d bytes: %v", name, u.Path, e.Size, err)
		}
		files = append(files, u.Path)
	}
	return files
}

type parquetFlight struct {
	Carrier  *string `parquet:"carrier,optional"`
	Flight   *int32  `parquet:"flight,optional"`
	Tailnum  *string `parquet:"tailnum,optional"`
	Dest     *string `parquet:"dest,optional"`
	TimeHour *int64  `parquet:"time_hour,optional"`
	DepDelay *int32  `parquet:"dep_delay,optional"`
	ArrDelay *int32  `parquet:"arr_delay,optional"`
	Gain     *int32  `parquet:"gain,optional"`
	MPH      *int32  `parquet:"mph,optional"`
	Late     *bool   `parquet:"late,optional"`
}

// flightsTable reads the rows of the flights table through its manifest, as canonical texts.
func flightsTable(t *testing.T, dir string) []string {
	t.Helper()
	var rows []string
	for _, name := range manifest(t, dir) {
		origin := strings.TrimPrefix(filepath.Base(filepath.Dir(name)), "origin=")
		read, err := parquet.ReadFile[parquetFlight](name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range read {
			mph, late := "null", "null"
			if f.MPH != nil {
				mph = fmt.Sprintf("%d.%d", *f.MPH/10, *f.MPH%10)
			}
			if f.Late != nil {
				late = fmt.Sprint(*f.Late)
			}
			rows = append(rows, strings.Join([]string{
				text(f.Carrier), small(f.Flight), text(f.Tailnum), origin, text(f.Dest), time.UnixMicro(*f.TimeHour).UTC().Format(time.RFC3339),
				small(f.DepDelay), small(f.ArrDelay), small(f.Gain), mph, late,
			}, "|"))
		}
	}
	return rows
}

func small(n *int32) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}

// lines reads the lines of a jsonl sink through its manifest.
func lines(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	for _, name := range manifest(t, dir) {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")...)
	}
	return out
}

// sameRows compares multisets and prints the first differences.
func sameRows(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if slices.Equal(got, want) {
		return
	}
	count := map[string]int{}
	for _, w := range want {
		count[w]++
	}
	for _, g := range got {
		count[g]--
	}
	shown := 0
	for row, n := range count {
		if n != 0 && shown < 5 {
			t.Errorf("%s: %+d of %s", what, -n, row)
			shown++
		}
	}
	t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
}
