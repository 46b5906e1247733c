package files

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

// TestSparkCalendars reads what Spark wrote by either calendar as Spark itself does; rows with what cannot be told are
// rejected.
func TestSparkCalendars(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "rows", "parquetfile", "testdata", "calendar")
	rows := testdata(t, filepath.Join(dir, "rows.jsonl"))
	for from, to := range map[string]string{ // as this source writes times without a zone and maps without text as key
		`"n":"([^"]+)"`:               `"n":"${1}Z"`,
		`"m":\{("[^"]+"):("[^"]+")\}`: `"m":[{"key":$1,"value":$2}]`,
	} {
		rows = regexp.MustCompile(from).ReplaceAllString(rows, to)
	}
	lines := strings.Split(strings.TrimSpace(rows), "\n")
	for name, rejected := range map[string]int{
		"corrected": 0, "corrected-int96": 0, "legacy": 0, "legacy-millis": 0, "legacy-int96": 0, "legacy-zone": 8,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Parquet)
			r.put("a.parquet", testdata(t, filepath.Join(dir, name+".parquet")))
			var want []string
			for i, line := range lines {
				if i < rejected {
					want = append(want, fmt.Sprint(i, "!bad_value"))
				} else {
					want = append(want, fmt.Sprint(i, ":", line))
				}
			}
			same(t, "rows", r.read(checkpoint.Position{}, r.latest(checkpoint.Position{}, 0)), want)
		})
	}
}

// TestUnreadCompression: a file with a compression that is not read is not called broken.
func TestUnreadCompression(t *testing.T) {
	found, err := filepath.Glob(filepath.Join("..", "delta", "testdata", "lz4", "*.parquet"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	r := newRig(t, Parquet)
	r.put("a.parquet", testdata(t, filepath.Join("..", found[0])))
	_, err = r.src.Latest(context.Background(), checkpoint.Position{}, source.Limit{})
	f, _ := errors.AsType[*fault.Error](err)
	if f == nil || f.Code() != CodeCorrupt || !strings.Contains(err.Error(), "a.parquet: the parquet file is whole, but it is compressed with LZ4") || !strings.Contains(f.Hint(), "compression.codec") {
		t.Errorf("%v", err)
	}
}
