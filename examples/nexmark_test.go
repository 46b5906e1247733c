package examples

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// nexmarkQuery says how a query's output is made comparable with the rows of its SQL in nexmark/oracle/queries.sql.
type nexmarkQuery struct {
	name    string
	columns string // of a row, in SQL's order
	// final: the output is a changelog, and what it comes to in the end counts. key are the columns that a row replaces an
	// earlier one by.
	final bool
	key   string
	// sum: rows of one key are added up, since how they are cut hangs on the clock.
	sum string
}

var nexmarkQueries = []nexmarkQuery{
	{name: "q0", columns: "auction bidder price dateTime extra"},
	{name: "q1", columns: "auction bidder price dateTime extra"},
	{name: "q2", columns: "auction price"},
	{name: "q3", columns: "name city state id"},
	{name: "q4", columns: "category price", final: true, key: "category"},
	{name: "q5", columns: "auction num start"},
	{name: "q7", columns: "auction price bidder dateTime extra"},
	{name: "q8", columns: "id name start"},
	{name: "q11", columns: "bidder num start till"},
	{name: "q12", columns: "bidder num", key: "bidder", sum: "num"},
	{name: "q14", columns: "auction bidder price bidTimeType dateTime extra c_counts"},
	{name: "q18", columns: "auction bidder price channel url dateTime extra", final: true, key: "auction bidder"},
	{name: "q19", columns: "auction bidder price channel url dateTime extra place", final: true, key: "auction place"},
	{name: "q20", columns: "auction bidder price channel url dateTime extra itemName description initialBid reserve auctionDateTime " +
		"expires seller category auctionExtra"},
}

// nexmarkGolden is what SQL gives: see nexmark/oracle/oracle.py. Short results are there as a whole.
type nexmarkGolden struct {
	Rows   int      `json:"rows"`
	SHA256 string   `json:"sha256"`
	Lines  []string `json:"lines"`
}

// nexmarkRun is one way to run a query.
type nexmarkRun struct {
	events, lanes int
	batch         int // records of a source in a batch, in hundredths of what the job says
	kills         int
}

func (r nexmarkRun) String() string {
	return fmt.Sprintf("%d events, %d lanes, batches of %d%%, %d kills", r.events, r.lanes, r.batch, r.kills)
}

// TestNexmark runs each query over 100,000 events, and compares what it gives with what DuckDB and SQLite give. Lanes, batches
// and kills are spread over the queries; TestNexmarkLong has all of them.
func TestNexmark(t *testing.T) {
	ways := []nexmarkRun{{lanes: 4, batch: 100}, {lanes: 1, batch: 37, kills: 2}, {lanes: 4, batch: 37}, {lanes: 1, batch: 100}, {lanes: 4, batch: 37, kills: 2}}
	for i, q := range nexmarkQueries {
		way := ways[i%len(ways)]
		way.events = 100_000
		t.Run(q.name, func(t *testing.T) { nexmark(t, q, way) })
	}
}

// TestNexmarkLong runs each query over WASMILL_NEXMARK events, which golden.json must have results of: with one and four lanes,
// two sizes of batches, with and without kills.
func TestNexmarkLong(t *testing.T) {
	events, err := strconv.Atoi(os.Getenv("WASMILL_NEXMARK"))
	if err != nil {
		t.Skip("WASMILL_NEXMARK is not set: 1000000 is what it is for")
	}
	for _, q := range nexmarkQueries {
		for _, lanes := range []int{1, 4} {
			for _, batch := range []int{37, 250} {
				for _, kills := range []int{0, 5} {
					way := nexmarkRun{events: events, lanes: lanes, batch: batch, kills: kills}
					t.Run(q.name+", "+way.String(), func(t *testing.T) { nexmark(t, q, way) })
				}
			}
		}
	}
}

func nexmark(t *testing.T, q nexmarkQuery, way nexmarkRun) {
	t.Helper()
	want := goldenNexmark(t, strconv.Itoa(way.events), q.name)
	dir, file := nexmarkJob(t, q.name, way)
	killOnTheWay(t, file, way.kills)
	mustRun(t, "run", file)
	rows := q.rows(t, changes(t, filepath.Join(dir, "out", q.name)))
	sha := sha256.New()
	for _, row := range rows {
		fmt.Fprintln(sha, row)
	}
	if got := hex.EncodeToString(sha.Sum(nil)); len(rows) != want.Rows || got != want.SHA256 {
		t.Errorf("%v: %d rows with digest %s, SQL gives %d with %s", way, len(rows), got, want.Rows, want.SHA256)
		if want.Lines != nil {
			sameRows(t, q.name, rows, want.Lines)
		}
		if keep := os.Getenv("WASMILL_NEXMARK_KEEP"); keep != "" { // to be compared with what oracle.py --out keeps
			if err := os.WriteFile(filepath.Join(keep, q.name+".txt"), []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func goldenNexmark(t *testing.T, events, query string) nexmarkGolden {
	t.Helper()
	content, err := os.ReadFile("nexmark/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]nexmarkGolden
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	g, ok := all[events][query]
	if !ok {
		t.Fatalf("golden.json has no result of %s over %s events", query, events)
	}
	return g
}

var maxRecords = regexp.MustCompile(`maxRecords: (\d+)`)

// nexmarkJob copies a query's job into a folder of its own, for so many events, lanes and records in a batch. A million
// events come at the benchmark's own rate.
func nexmarkJob(t *testing.T, query string, way nexmarkRun) (dir, file string) {
	t.Helper()
	content, err := os.ReadFile("nexmark/" + query + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("nexmark/modules")
	if err != nil {
		t.Fatal(err)
	}
	job := maxRecords.ReplaceAllStringFunc(string(content), func(s string) string {
		n, _ := strconv.Atoi(maxRecords.FindStringSubmatch(s)[1])
		return fmt.Sprintf("maxRecords: %d", n*way.batch/100)
	})
	edits := []string{"./modules", modules, "  sources:\n", fmt.Sprintf("  lanes: %d\n  sources:\n", way.lanes)}
	if way.events != 100_000 {
		edits = append(edits, "records: 100000", fmt.Sprintf("records: %d", way.events), "eventRate: 2000", "eventRate: 10000")
	}
	dir = t.TempDir()
	file = filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(edits...).Replace(job)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

var partName = regexp.MustCompile(`part-(\d{5})-[0-9a-f]{8}-(\d+)-`)

// changes reads the lines of a jsonl sink in the order in which they were written, batch by batch.
func changes(t *testing.T, dir string) []string {
	t.Helper()
	files := manifest(t, dir)
	place := func(name string) int {
		m := partName.FindStringSubmatch(filepath.Base(name))
		if m == nil {
			t.Fatalf("%s is no part of a batch", name)
		}
		part, _ := strconv.Atoi(m[1])
		batch, _ := strconv.Atoi(m[2])
		return batch*100_000 + part
	}
	slices.SortFunc(files, func(a, b string) int { return place(a) - place(b) })
	var out []string
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")...)
	}
	return out
}

// rows makes SQL's rows of the lines of an output, sorted.
func (q *nexmarkQuery) rows(t *testing.T, lines []string) []string {
	t.Helper()
	columns, key := strings.Fields(q.columns), strings.Fields(q.key)
	var out []string
	final, sums := map[string]string{}, map[string]int64{}
	for _, line := range lines {
		row := nexmarkRow(t, line)
		switch {
		case q.final && string(row["deleted"]) == "true":
			delete(final, cell(row["key"]))
		case q.final:
			final[q.recordKey(row, key)] = join(row, columns)
		case q.sum != "":
			n, err := strconv.ParseInt(string(row[q.sum]), 10, 64)
			if err != nil {
				t.Fatalf("%s: %s: %v", q.name, line, err)
			}
			sums[join(row, key)] += n
		default:
			out = append(out, join(row, columns))
		}
	}
	for _, row := range final {
		out = append(out, row)
	}
	for key, n := range sums {
		out = append(out, fmt.Sprintf("%s|%d", key, n))
	}
	slices.Sort(out)
	return out
}

// recordKey is the key of the record that a row was, as keyBy writes it: of one column its text, of several a JSON array.
func (q *nexmarkQuery) recordKey(row map[string]json.RawMessage, key []string) string {
	if len(key) == 1 {
		return cell(row[key[0]])
	}
	var parts []string
	for _, k := range key {
		parts = append(parts, string(row[k]))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func nexmarkRow(t *testing.T, line string) map[string]json.RawMessage {
	t.Helper()
	var row map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &row); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return row
}

func join(row map[string]json.RawMessage, columns []string) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = cell(row[c])
	}
	return strings.Join(cells, "|")
}

// cell is a value as SQL prints it: a string's characters, anything else as it stands.
func cell(value json.RawMessage) string {
	var text string
	if bytes.HasPrefix(value, []byte(`"`)) && json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
