package examples

import (
	"context"
	dbsql "database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"
)

// check holds every target of a finished job against the oracle, with none of the program's code.
func (j *tablesJob) check(t *testing.T) {
	t.Helper()
	digests := j.decisions(t)
	if want := changeFiles * 2; len(digests) != want {
		t.Errorf("%d batches are decided, want %d", len(digests), want)
	}
	for i, kind := range j.kinds {
		rows, values := oracleRows(t, kind, j.input())
		base, _, _ := strings.Cut(kind, " ")
		switch base {
		case toFiles:
			sameRows(t, kind, lines(t, j.path(j.sink(i))), values)
		case toKafka:
			sameRows(t, kind, j.topicValues(t), values)
		case toDelta:
			sameRows(t, kind, j.deltaRows(t, i, digests), rows)
		case toSQLite:
			j.checkDatabase(t, i, digests, rows, j.sqliteTexts)
		case toPostgres:
			j.checkDatabase(t, i, digests, rows, j.pg.texts)
		}
	}
}

// oracleRows are the rows that a target of a kind has of records, and the records of that.
func oracleRows(t *testing.T, kind string, all []change) (rows, values []string) {
	t.Helper()
	if keeps(kind) {
		all = left(all)
	}
	for k := range all {
		rows, values = append(rows, all[k].row()), append(values, all[k].line(t))
	}
	return rows, values
}

// query is the id of the checkpoint.
func (j *tablesJob) query(t *testing.T) string {
	t.Helper()
	var m struct{ ID string }
	text := strings.TrimPrefix(mustRead(t, filepath.Join(j.checkpoint(), "metadata")), "v1\n")
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.ID == "" {
		t.Fatalf("metadata %s: %v", text, err)
	}
	return m.ID
}

// decisions are the digests of the decided batches, in order.
func (j *tablesJob) decisions(t *testing.T) (digests []string) {
	t.Helper()
	for batch := range decided(j.checkpoint()) + 1 {
		text := mustRead(t, filepath.Join(j.checkpoint(), "commits", strconv.Itoa(batch)))
		var d struct{ Wasmill struct{ Digest string } }
		if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "v1\n")), &d); err != nil || d.Wasmill.Digest == "" {
			t.Fatalf("decision %d: %v", batch, err)
		}
		digests = append(digests, d.Wasmill.Digest)
	}
	return digests
}

// logged is a line of a Delta log.
type logged struct {
	Add *struct {
		Path            string
		Size            int64
		PartitionValues map[string]*string
	}
	Remove     *struct{ Path string }
	Txn        *struct{ AppID, Version json.RawMessage }
	CommitInfo *struct {
		Tags              map[string]string
		InCommitTimestamp int64
	}
}

type parquetChange struct {
	ID     *int64  `parquet:"id,optional"`
	Key    *string `parquet:"key,optional"`
	Place  *string `parquet:"place,optional"`
	Amount *int32  `parquet:"amount,optional"`
	At     *int64  `parquet:"at,optional"`
}

// deltaRows are the rows of a Delta table. Each entry of its log must be that of one batch, with the digest of its decision in the
// tags and in the txn actions.
func (j *tablesJob) deltaRows(t *testing.T, sink int, digests []string) (rows []string) {
	t.Helper()
	dir := j.path(j.sink(sink))
	live := map[string]*string{} // the place of each file, nil where it is a column
	for batch := range digests {
		text := mustRead(t, filepath.Join(dir, "_delta_log", fmt.Sprintf("%020d.json", batch)))
		txn := map[string]string{}
		for l := range strings.Lines(text) {
			var a logged
			if err := json.Unmarshal([]byte(l), &a); err != nil {
				t.Fatalf("%s: entry %d: %v", dir, batch, err)
			}
			switch {
			case a.CommitInfo != nil:
				if tags := a.CommitInfo.Tags; tags["wasmill.batch"] != strconv.Itoa(batch) || tags["wasmill.digest"] != digests[batch] {
					t.Errorf("%s: entry %d says %v, decided was %s", dir, batch, tags, digests[batch])
				}
			case a.Txn != nil:
				txn[strings.Trim(string(a.Txn.AppID), `"`)] = string(a.Txn.Version)
			case a.Remove != nil:
				if _, there := live[a.Remove.Path]; !there {
					t.Errorf("%s: entry %d removes %s, which is not there", dir, batch, a.Remove.Path)
				}
				delete(live, a.Remove.Path)
			case a.Add != nil:
				if _, there := live[a.Add.Path]; there {
					t.Errorf("%s: entry %d adds %s again", dir, batch, a.Add.Path)
				}
				if info, err := os.Stat(filepath.Join(dir, a.Add.Path)); err != nil || info.Size() != a.Add.Size {
					t.Errorf("%s: entry %d adds %s with %d bytes: %v", dir, batch, a.Add.Path, a.Add.Size, err)
				}
				live[a.Add.Path] = a.Add.PartitionValues["place"]
			}
		}
		checkTxn(t, txn, j.query(t)+"/"+j.sink(sink), batch, digests[batch])
	}
	if _, err := os.Stat(filepath.Join(dir, "_delta_log", fmt.Sprintf("%020d.json", len(digests)))); err == nil {
		t.Errorf("%s: more entries than batches", dir)
	}
	return fileRows(t, dir, live)
}

// fileRows are the rows of a Delta table's files.
func fileRows(t *testing.T, dir string, live map[string]*string) (rows []string) {
	t.Helper()
	for path, place := range live {
		read, err := parquet.ReadFile[parquetChange](filepath.Join(dir, path))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, r := range read {
			if place != nil {
				r.Place = place
			}
			rows = append(rows, fmt.Sprintf("%d|%s|%s|%d.%02d|%s", *r.ID, *r.Key, *r.Place, *r.Amount/100, *r.Amount%100,
				time.UnixMicro(*r.At).UTC().Format("2006-01-02T15:04:05")))
		}
	}
	return rows
}

// checkTxn demands the batch and the halves of its digest.
func checkTxn(t *testing.T, txn map[string]string, app string, batch int, digest string) {
	t.Helper()
	raw, err := hex.DecodeString(digest)
	if err != nil || len(raw) != 16 {
		t.Fatalf("digest %q: %v", digest, err)
	}
	for name, want := range map[string]int64{
		app: int64(batch), app + "/digest.0": int64(binary.BigEndian.Uint64(raw)), app + "/digest.1": int64(binary.BigEndian.Uint64(raw[8:])),
	} {
		if txn[name] != strconv.FormatInt(want, 10) {
			t.Errorf("txn %s is %q, want %d", name, txn[name], want)
		}
	}
}

// checkDatabase compares a table with what it must hold, and the epoch row with the last decision.
func (j *tablesJob) checkDatabase(t *testing.T, sink int, digests, want []string, texts func(t *testing.T, query string) []string) {
	t.Helper()
	sameRows(t, j.kinds[sink], texts(t, selectRows+j.table(sink)), want)
	epochs := texts(t, "SELECT target || '|' || CAST(batch AS text) || '|' || digest FROM wasmill_epoch WHERE query_id = '"+j.query(t)+"'")
	last := len(digests) - 1
	sameRows(t, j.kinds[sink]+", epoch row", epochs, []string{fmt.Sprintf("%s|%d|%s", j.target(sink), last, digests[last])})
}

// selectRows gives the canonical texts of the rows of the table that follows.
const selectRows = "SELECT CAST(id AS text) || '|' || key || '|' || place || '|' || CAST(amount AS text) || '|' || " +
	"substr(replace(CAST(at AS text), ' ', 'T'), 1, 19) FROM "

func (j *tablesJob) sqliteTexts(t *testing.T, query string) (out []string) {
	t.Helper()
	db, err := dbsql.Open("sqlite", j.path("sqlite.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// texts runs a query of one column of text on the server itself.
func (s *pgServer) texts(t *testing.T, query string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET TimeZone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (j *tablesJob) topicValues(t *testing.T) (out []string) {
	t.Helper()
	for _, records := range j.bus.committed(t, j.topic) {
		for _, r := range records {
			out = append(out, string(r.Value))
		}
	}
	return out
}
