package files_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	"github.com/wasmill/wasmill/host/sink/files"
)

// deep returns a target with 16 partition columns, and a function for a row with values of given lengths in them.
func deep(t *testing.T, dir string) (*files.Target, func(lengths ...int) string) {
	t.Helper()
	columns := []string{"i", "int32"}
	var partition []string
	for k := range 16 {
		partition = append(partition, fmt.Sprintf("p%02d", k))
		columns = append(columns, partition[k], "string")
	}
	target := newTarget(t, files.Config{
		Dir: dir, Format: files.Parquet, Codec: parquetfile.Snappy, Schema: rowstest.SchemaOf(t, columns...), PartitionBy: partition, MaxPartRows: 1,
	})
	return target, func(lengths ...int) string {
		row := map[string]any{"i": 1}
		for k, n := range lengths {
			row[partition[k]] = strings.Repeat("x", n)
		}
		b, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// TestLongPartitionPaths: what no file system takes never becomes a row, and the longest path that does can be published.
func TestLongPartitionPaths(t *testing.T) {
	dir := t.TempDir()
	target, row := deep(t, dir)
	open(t, target, 0)
	lane, err := target.NewLane("lake")
	if err != nil {
		t.Fatal(err)
	}
	fits := func(last int) bool {
		err := lane.Append(&abi.Record{Value: []byte(row(append(slices.Repeat([]int{246}, 15), last)...))})
		var m *sink.Misfit
		if err != nil && (!errors.As(err, &m) || m.Code != "length" || !strings.Contains(m.Reason, "4095")) {
			t.Fatalf("%d bytes: %v", last, err)
		}
		return err == nil
	}
	longest := 0
	for n := 1; n <= 240; n++ {
		if fits(n) {
			longest = n
		}
	}
	if longest == 0 || longest == 240 || int64(longest) != lane.Rows() {
		t.Fatalf("the longest last value is %d, with %d rows taken", longest, lane.Rows())
	}
	publish(t, target, 0, row(append(slices.Repeat([]int{246}, 15), longest)...))
	if n := len(sparkEntries(t, durable.OS(), dir)); n != 1 {
		t.Errorf("%d files are published, want 1", n)
	}
	if err := lane.Append(&abi.Record{Value: []byte(row(slices.Repeat([]int{250}, 16)...))}); err == nil {
		t.Error("16 values of 250 bytes are taken")
	}
}

// TestLongNamesOfPartitionColumns are refused before anything runs, as is a directory that leaves no room.
func TestLongNamesOfPartitionColumns(t *testing.T) {
	cfg := files.Config{Sink: "lake", Dir: "/out", Format: files.JSONL, Files: faulty.New().Process(), Clock: (&clock{}).now}
	for name, ok := range map[string]bool{
		strings.Repeat("x", 206): true, strings.Repeat("x", 207): false, strings.Repeat("/", 68): true, strings.Repeat("/", 69): false,
	} {
		for _, kind := range []string{"string", "int64", "decimal(38,38)", "timestamp"} {
			cfg.Schema, cfg.PartitionBy = rowstest.SchemaOf(t, "a", "string", name, kind), []string{name}
			_, err := files.New(cfg)
			if (err == nil) != ok {
				t.Errorf("%s column of %d bytes: %v", kind, len(name), err)
			}
		}
	}
	cfg.Schema, cfg.PartitionBy = rowstest.SchemaOf(t, "a", "string"), nil
	cfg.Dir = strings.Repeat("/"+strings.Repeat("d", 99), 41)
	_, err := files.New(cfg)
	wantFault(t, err, files.CodeConfig)
}

// TestLongestTexts: no value but a text makes a directory's name of more than 48 bytes beside its column's.
func TestLongestTexts(t *testing.T) {
	for kind, value := range map[string]string{
		"int64": "-9223372036854775808", "decimal(38,38)": "-0." + strings.Repeat("9", 38), "date": `"9999-12-31"`,
		"timestamp": `"9999-12-31T23:59:59.999999Z"`, "boolean": "false", "string": "null",
	} {
		dir := t.TempDir()
		column := strings.Repeat("x", 206)
		target := newTarget(t, files.Config{Dir: dir, Format: files.JSONL, Schema: rowstest.SchemaOf(t, "a", "int32", column, kind), PartitionBy: []string{column}})
		open(t, target, 0)
		publish(t, target, 0, fmt.Sprintf(`{"a":1,%q:%s}`, column, value))
		if n := len(sparkEntries(t, durable.OS(), dir)); n != 1 {
			t.Errorf("%s: %d files are published", kind, n)
		}
	}
	if _, err := rows.ParseType("decimal(39,38)"); err == nil {
		t.Error("there are longer decimals than this test knows")
	}
}

// TestPublishTrouble: what the file system says is a fault with a way out, and publishing goes on when it is over.
func TestPublishTrouble(t *testing.T) {
	for errno, code := range map[error]string{
		syscall.ENAMETOOLONG: files.CodeTooLong, syscall.EIO: files.CodeDisk, syscall.ENOTDIR: files.CodeDisk, syscall.EMLINK: files.CodeDisk,
	} {
		disk := faulty.New()
		target := newTarget(t, files.Config{Dir: "/out", Format: files.JSONL, Files: disk.Process()})
		open(t, target, 0)
		s := stage(t, target, 0, "0a0b0c0d", "1")
		d := &checkpoint.Decision{Batch: 0, Digest: digestOf(0)}
		disk.SetFaults(func(o faulty.Op) faulty.Fault {
			if o.Writes() {
				return faulty.Fault{Err: &os.PathError{Op: "link", Path: "/out", Err: errno}}
			}
			return faulty.Fault{}
		})
		wantFault(t, target.Publish(t.Context(), d, s), code)
		disk.SetFaults(nil)
		if err := target.Publish(t.Context(), d, s); err != nil {
			t.Errorf("after %v was over: %v", errno, err)
		}
		wantFault(t, target.Publish(t.Context(), d, sink.Staged(`{"version":7}`)), files.CodeDamaged)
	}
}

// TestLostManifest: the names of parts tell whose they are when the manifest is gone.
func TestLostManifest(t *testing.T) {
	for _, partition := range [][]string{nil, {"p", "q"}} {
		for _, lost := range []string{"_spark_metadata", "_spark_metadata/_wasmill.json"} {
			dir := t.TempDir()
			cfg := files.Config{Dir: dir, Format: files.JSONL, PartitionBy: partition, Schema: rowstest.SchemaOf(t, "p", "string", "q", "string", "i", "int32")}
			target := newTarget(t, cfg)
			open(t, target, 0)
			publish(t, target, 0, `{"p":"a","q":"b","i":1}`)
			if err := target.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(dir, lost)); err != nil {
				t.Fatal(err)
			}
			before := tree(t, dir)
			for id, code := range map[string]string{query: files.CodeDamaged, "1" + query[1:]: files.CodeOtherQuery} {
				_, err := newTarget(t, cfg).Open(t.Context(), sink.Owner{Query: id, Job: "test", Next: 1})
				wantFault(t, err, code)
				if code == files.CodeDamaged && (!strings.Contains(err.Error(), "this very query") || !strings.Contains(err.Error(), "part-00000-0c0ffee0-0-")) {
					t.Errorf("%v does not say whose the files are", err)
				}
			}
			if after := tree(t, dir); after != before {
				t.Errorf("the directory was changed: %s, before %s", after, before)
			}
		}
	}
}
