package files

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
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
