package examples

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// flightsOracle computes what the flights job must put out, straight from the data, with none of the program's code. Rows
// are canonical texts; cancelled flights are the lines as they lie.
func flightsOracle(t *testing.T, dir string) (rows, cancelled []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no data in %s: %v", dir, err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		zr, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(zr)
		for lines.Scan() {
			row, ok := flightRow(t, lines.Text())
			if ok {
				rows = append(rows, row)
			} else {
				cancelled = append(cancelled, lines.Text())
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	return rows, cancelled
}

type flight struct {
	Carrier  string `json:"carrier"`
	Flight   int64  `json:"flight"`
	Tailnum  *string
	Origin   string
	Dest     string
	TimeHour string `json:"time_hour"`
	DepTime  *int64 `json:"dep_time"`
	DepDelay *int64 `json:"dep_delay"`
	ArrDelay *int64 `json:"arr_delay"`
	AirTime  *int64 `json:"air_time"`
	Distance int64
}

// flightRow is the row of a flight that left, by the words of the example's README; ok is false when it did not.
func flightRow(t *testing.T, line string) (row string, ok bool) {
	t.Helper()
	var f flight
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		t.Fatal(err)
	}
	if f.DepTime == nil {
		return "", false
	}
	gain, mph, late := "null", "null", "null"
	if f.DepDelay != nil && f.ArrDelay != nil {
		gain = fmt.Sprint(*f.DepDelay - *f.ArrDelay)
	}
	if f.AirTime != nil && *f.AirTime != 0 {
		tenths := (2*600*f.Distance + *f.AirTime) / (2 * *f.AirTime)
		mph = fmt.Sprintf("%d.%d", tenths/10, tenths%10)
	}
	if f.ArrDelay != nil {
		late = fmt.Sprint(*f.ArrDelay >= 15)
	}
	return strings.Join([]string{
		f.Carrier, fmt.Sprint(f.Flight), text(f.Tailnum), f.Origin, f.Dest, f.TimeHour, number(f.DepDelay), number(f.ArrDelay), gain, mph, late,
	}, "|"), true
}

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func number(n *int64) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}
