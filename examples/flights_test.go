package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// flightsJob copies the example's job into a folder of its own, over the same data and module, with batches of so many
// records.
func flightsJob(t *testing.T, module, batch string) (dir, file string) {
	t.Helper()
	text, err := os.ReadFile("flights/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data, err := filepath.Abs("flights/data")
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := filepath.Abs("../transforms/clean/" + module)
	if err != nil {
		t.Fatal(err)
	}
	job := strings.NewReplacer("./data", data, "../../transforms/clean/clean.wasm", wasm).Replace(string(text))
	if batch != "" {
		job = strings.Replace(job, "      eventTime:", "      batch: {maxRecords: "+batch+"}\n      eventTime:", 1)
	}
	dir = t.TempDir()
	file = filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// The oracle's answer, computed once.
var (
	flightsOnce                   sync.Once
	flightsRows, flightsCancelled []string
)

// checkFlights compares all three outputs with the oracle.
func checkFlights(t *testing.T, dir string) {
	t.Helper()
	flightsOnce.Do(func() { flightsRows, flightsCancelled = flightsOracle(t, "flights/data") })
	rows, cancelled := flightsRows, flightsCancelled
	if len(rows)+len(cancelled) != 27004 {
		t.Fatalf("the oracle has %d flights, the data 27,004", len(rows)+len(cancelled))
	}
	sameRows(t, "flights", flightsTable(t, filepath.Join(dir, "out/flights")), rows)
	sameRows(t, "cancelled", lines(t, filepath.Join(dir, "out/cancelled")), cancelled)
	sameRows(t, "dead", lines(t, filepath.Join(dir, "out/dead")), nil)
}

func TestFlights(t *testing.T) {
	for _, module := range []string{"clean.wasm", "clean-go.wasm"} {
		for _, batch := range []string{"", "1111"} {
			t.Run(module+" "+batch, func(t *testing.T) {
				dir, file := flightsJob(t, module, batch)
				mustRun(t, "run", file)
				checkFlights(t, dir)
				again := mustRun(t, "run", file)
				if !strings.Contains(again.stderr, "nothing new") {
					t.Errorf("the second run said:\n%s", again.stderr)
				}
				checkFlights(t, dir)
			})
		}
	}
}

// TestFlightsReplay proves every batch again: twenty times, on one and on two cores, with one lane at a time and with four.
func TestFlightsReplay(t *testing.T) {
	_, file := flightsJob(t, "clean.wasm", "9000")
	mustRun(t, "run", file)
	for batch := range 4 {
		for _, how := range []struct{ cores, workers, times string }{{"1", "1", "5"}, {"2", "2", "5"}, {"2", "4", "10"}} {
			r := run(t, []string{"GOMAXPROCS=" + how.cores}, "replay", fmt.Sprint(batch), file, "--times", how.times, "--workers", how.workers)
			if r.code != 0 {
				t.Errorf("batch %d on %s cores with %s workers: exit %d\n%s%s", batch, how.cores, how.workers, r.code, r.stdout, r.stderr)
			}
		}
	}
}
