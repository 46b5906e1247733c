package examples

import (
	"context"
	dbsql "database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite"
)

// databaseJob copies one of the example's jobs into a folder of its own, over the flights in data and the same module. With a
// URL it writes to PostgreSQL, into a table of its own.
func databaseJob(t *testing.T, name, data, url, table string) (dir, file string) {
	t.Helper()
	text, err := os.ReadFile("database/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	data, err = filepath.Abs(data)
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := filepath.Abs("../transforms/clean/clean.wasm")
	if err != nil {
		t.Fatal(err)
	}
	job := strings.NewReplacer("../flights/data", data, "../../transforms/clean/clean.wasm", wasm).Replace(string(text))
	if url != "" {
		job = strings.NewReplacer(
			"sqlite: {path: ./"+name+".db}", "postgres: {url: "+strconv.Quote(url)+"}", "sqlite:", "postgres:", "table: flights", "table: "+table,
		).Replace(job)
	}
	dir = t.TempDir()
	file = filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// committed is the point after the commit and before it is noted, in a job that notes each batch, as one without epoch does.
const committed = "create:before plain/.published.H.tmp"

// databaseKills is at which points a job is killed, the more often the more kills are asked for; "" is a random instant.
func databaseKills(t *testing.T) []string {
	var plan []string
	points := []string{committed, "stage:after", "decide:after", "", "publish:before", committed, "seal:before", "run:after", "", ""}
	for i := range max(len(points), min(kills(t), 120)/2) {
		point := points[i%len(points)]
		if point != "" {
			point = fmt.Sprintf("%s@%d", point, 1+i%2)
		}
		plan = append(plan, point)
	}
	return plan
}

// TestDatabase kills the job with the epoch row and the one without it at the same points, and counts.
func TestDatabase(t *testing.T) {
	want, _ := flightsOracle(t, "flights/data")
	slices.Sort(want)
	seed := uint64(time.Now().UnixNano())
	lines := []string{fmt.Sprintf("%-30s %6s %8s %6s %8s", "", "kills", "rows", "lost", "doubled")}
	for _, kind := range []string{"sqlite", "postgres"} {
		url := os.Getenv("WASMILL_POSTGRES")
		if kind == "sqlite" {
			url = ""
		} else if url == "" {
			continue
		}
		for _, job := range []struct{ name, says string }{{"exact", "epoch"}, {"plain", "none"}} {
			table := fmt.Sprintf("flights_%s_%d", job.name, os.Getpid())
			data := &days{from: "flights/data", to: t.TempDir()}
			dir, file := databaseJob(t, job.name, data.to, url, table)
			smallBatches(t, file)
			killed := killDatabaseJob(t, file, data, job.name == "exact", rand.New(rand.NewPCG(seed, 1)))
			rows := databaseRows(t, filepath.Join(dir, job.name+".db"), url, table)
			lost, doubled := compareRows(rows, want)
			lines = append(lines, fmt.Sprintf("%-30s %6d %8d %6d %8d", kind+", idempotence: "+job.says, killed, len(rows), lost, doubled))
			switch {
			case lost > 0:
				t.Errorf("%s %s: %d rows are lost", kind, job.name, lost)
			case job.name == "exact" && doubled > 0:
				t.Errorf("%s: %d rows are doubled", kind, doubled)
			case job.name == "plain" && doubled == 0:
				t.Errorf("%s: no row is doubled: the counter-example shows nothing", kind)
			}
		}
	}
	t.Logf("random instants from seed %d\n%s", seed, strings.Join(lines, "\n"))
}

// days are the files of a folder, handed over one by one: a job that has ended, because an instant came too late on a fast
// machine, has something to be killed at again.
type days struct{ from, to string }

// more hands over the next n files, as far as there are any.
func (d *days) more(t *testing.T, n int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(d.from, "*.gz"))
	if err != nil {
		t.Fatal(err)
	}
	given, err := os.ReadDir(d.to)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names[len(given):min(len(given)+n, len(names))] {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.to, filepath.Base(name)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// smallBatches lets a job make about 17 batches of a day.
func smallBatches(t *testing.T, file string) {
	t.Helper()
	job := strings.Replace(mustRead(t, file), "maxRecords: 1000", "maxRecords: 50", 1)
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
}

// killDatabaseJob runs a job over more and more days, killed as planned, to its end.
func killDatabaseJob(t *testing.T, file string, data *days, exact bool, rng *rand.Rand) (killed int) {
	t.Helper()
	const aDay = 7 // as many kills at named points, each of which lets two batches pass at most, use up less than a day
	left := 0
	for _, point := range databaseKills(t) {
		if left == 0 {
			data.more(t, 1)
			left = aDay
		}
		if point == "" {
			left = 0 // it may have come to the end of the day
			r := runFor(t, time.Duration(1+rng.IntN(400))*time.Millisecond, nil, "run", file)
			if !r.killed && r.code != 0 {
				t.Fatalf("neither killed nor well:\n%s", r.stderr)
			}
			if r.killed {
				killed++
			}
			continue
		}
		if exact {
			point = strings.Replace(point, committed, "publish:after", 1)
		}
		if r := run(t, []string{"WASMILL_FAILPOINT=" + point}, "run", file); !r.killed {
			t.Fatalf("not killed at %q: %d\n%s", point, r.code, r.stderr)
		}
		left--
		killed++
	}
	data.more(t, 31)
	mustRun(t, "run", file)
	return killed
}

// databaseRows reads the table with none of the program's code, as the oracle writes rows.
func databaseRows(t *testing.T, path, url, table string) []string {
	t.Helper()
	const columns = "carrier, flight, tailnum, origin, dest, time_hour, dep_delay, arr_delay, gain, mph, late"
	var rows []string
	add := func(values []*string) {
		var texts []string
		for i, v := range values {
			switch {
			case v == nil:
				texts = append(texts, "null")
			case i == 5:
				texts = append(texts, strings.Replace((*v)[:19], " ", "T", 1)+"Z")
			case i == 10:
				texts = append(texts, strconv.FormatBool(*v == "1" || *v == "true"))
			default:
				texts = append(texts, *v)
			}
		}
		rows = append(rows, strings.Join(texts, "|"))
	}
	if url != "" {
		postgresRows(t, url, table, columns, add)
	} else {
		sqliteRows(t, path, columns, add)
	}
	slices.Sort(rows)
	return rows
}

// targets are places for the texts of a row.
func targets() (texts []*string, to []any) {
	texts = make([]*string, 11)
	for i := range texts {
		to = append(to, &texts[i])
	}
	return texts, to
}

func castAll(columns string) string {
	parts := strings.Split(columns, ", ")
	for i, c := range parts {
		parts[i] = "CAST(" + c + " AS text)"
	}
	return strings.Join(parts, ", ")
}

func sqliteRows(t *testing.T, path, columns string, add func([]*string)) {
	t.Helper()
	db, err := dbsql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got, err := db.Query("SELECT " + castAll(columns) + " FROM flights")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	for got.Next() {
		texts, to := targets()
		if err := got.Scan(to...); err != nil {
			t.Fatal(err)
		}
		add(texts)
	}
	if err := got.Err(); err != nil {
		t.Fatal(err)
	}
}

func postgresRows(t *testing.T, url, table, columns string, add func([]*string)) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET TimeZone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	got, err := conn.Query(ctx, "SELECT "+castAll(columns)+" FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	for got.Next() {
		texts, to := targets()
		if err := got.Scan(to...); err != nil {
			t.Fatal(err)
		}
		add(texts)
	}
	if err := got.Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "DROP TABLE "+table); err != nil {
		t.Fatal(err)
	}
}

// compareRows counts wanted rows that are missing, and rows beyond the wanted ones. Both are sorted.
func compareRows(got, want []string) (lost, doubled int) {
	for len(got) > 0 || len(want) > 0 {
		switch {
		case len(got) == 0 || len(want) > 0 && want[0] < got[0]:
			lost, want = lost+1, want[1:]
		case len(want) == 0 || got[0] < want[0]:
			doubled, got = doubled+1, got[1:]
		default:
			got, want = got[1:], want[1:]
		}
	}
	return lost, doubled
}
