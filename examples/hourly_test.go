package examples

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const hourlyColumns = "carrier airline origin hour flights delay worst temp wind_speed precip visib"

// hourlyGolden is DuckDB's answer: see hourly/oracle.py.
type hourlyGolden struct {
	Rows   int      `json:"rows"`
	SHA256 string   `json:"sha256"`
	Lines  []string `json:"lines"` // some of them, in order
}

// TestHourly compares the delays by hour, with weather and names of airlines, with DuckDB's answer: in batches of several
// sizes, with one lane and with four, and killed on the way.
func TestHourly(t *testing.T) {
	for _, way := range []struct{ lanes, flights, weather, kills int }{{4, 5000, 500, 0}, {1, 1900, 130, 0}, {4, 700, 300, 4}} {
		t.Run(fmt.Sprintf("%d lanes, batches of %d flights, %d kills", way.lanes, way.flights, way.kills), func(t *testing.T) {
			dir, file := hourlyJob(t, way.lanes, way.flights, way.weather)
			killOnTheWay(t, file, way.kills)
			mustRun(t, "run", file)
			checkHourly(t, filepath.Join(dir, "out/hourly"))
		})
	}
}

func hourlyJob(t *testing.T, lanes, flights, weather int) (dir, file string) {
	t.Helper()
	content, err := os.ReadFile("hourly/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	job := strings.NewReplacer(
		"../flights/data", here+"/flights/data", "./data/", here+"/hourly/data/", "maxRecords: 5000}", fmt.Sprintf("maxRecords: %d}", flights),
		"maxRecords: 500}", fmt.Sprintf("maxRecords: %d}", weather), "  sources:\n", fmt.Sprintf("  lanes: %d\n  sources:\n", lanes),
	).Replace(string(content))
	dir = t.TempDir()
	file = filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

func checkHourly(t *testing.T, out string) {
	t.Helper()
	content, err := os.ReadFile("hourly/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var want hourlyGolden
	if err := json.Unmarshal(content, &want); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, line := range lines(t, out) {
		rows = append(rows, join(nexmarkRow(t, line), strings.Fields(hourlyColumns)))
	}
	slices.Sort(rows)
	sha := sha256.New()
	for _, row := range rows {
		fmt.Fprintln(sha, row)
	}
	if got := hex.EncodeToString(sha.Sum(nil)); len(rows) != want.Rows || got != want.SHA256 {
		t.Errorf("%d rows with digest %s, DuckDB gives %d with %s", len(rows), got, want.Rows, want.SHA256)
		for _, line := range want.Lines {
			if _, found := slices.BinarySearch(rows, line); !found {
				t.Errorf("missing: %s", line)
			}
		}
	}
}
