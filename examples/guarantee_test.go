package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// guaranteeKills are points of the first start under exactly once, KIND for the kind of the database.
var guaranteeKills = []string{
	"epoch-insert:after KIND", "epoch-claim:after KIND", "begin:after KIND", "epoch-advance:before KIND", "epoch-advance:after KIND",
	"commit:before KIND", "commit:after KIND", "rows:half KIND append", "commit:after KIND@2", "decide:after",
}

// TestDatabaseGuarantee: a job without an epoch row is killed, goes on with one, and is killed at each step of the switch.
// Nothing is lost; twice is at most the batch that was committed and not noted when the row was not there yet.
func TestDatabaseGuarantee(t *testing.T) {
	points := guaranteeKills
	if os.Getenv("WASMILL_POSTGRES") == "" {
		points = points[4:7] // the lane with a server takes its time
	}
	want, _ := flightsOracle(t, "flights/data")
	slices.Sort(want)
	for _, kind := range []string{"sqlite", "postgres"} {
		url := os.Getenv("WASMILL_POSTGRES")
		if kind == "sqlite" {
			url = ""
		} else if url == "" {
			continue
		}
		for i, point := range points {
			point = strings.ReplaceAll(point, "KIND", kind)
			before := []string{"decide:after@8", committed + "@8", "plan:after@8"}[i%3]
			table := fmt.Sprintf("flights_to_%d_%d", os.Getpid(), i)
			dir, file := databaseJob(t, "plain", "flights/data", url, table)
			if r := run(t, []string{"WASMILL_FAILPOINT=" + before}, "run", file); !r.killed {
				t.Fatalf("not killed at %s: %d\n%s", before, r.code, r.stderr)
			}
			exact := exactly(t, file)
			if r := run(t, nil, "run", exact); r.code == 0 || !strings.Contains(r.stderr, "at-least-once becomes exactly-once") {
				t.Fatalf("the switch needs no word: %d\n%s", r.code, r.stderr)
			}
			if r := run(t, []string{"WASMILL_FAILPOINT=" + point}, "run", "--allow-changes", exact); !r.killed {
				t.Fatalf("not killed at %s: %d\n%s", point, r.code, r.stderr)
			}
			mustRun(t, "run", "--allow-changes", exact)
			mustRun(t, "run", exact)
			lost, doubled := compareRows(databaseRows(t, filepath.Join(dir, "plain.db"), url, table), want)
			if twice := strings.HasPrefix(before, committed); lost > 0 || !twice && doubled > 0 || twice && (doubled == 0 || doubled > 1000) {
				t.Errorf("%s, killed at %s and at %s: %d rows are lost, %d doubled", kind, before, point, lost, doubled)
			}
		}
	}
}

// exactly writes the job of a file beside it, with an epoch row.
func exactly(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	exact := filepath.Join(filepath.Dir(file), "exactly.yaml")
	if err := os.WriteFile(exact, []byte(strings.ReplaceAll(string(text), "idempotence: none", "idempotence: epoch")), 0o600); err != nil {
		t.Fatal(err)
	}
	return exact
}
