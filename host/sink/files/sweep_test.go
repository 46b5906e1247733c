package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink/files"
)

// TestSweep removes what a dead attempt left, once it is old and below the sealed batch, and nothing else.
func TestSweep(t *testing.T) {
	c := &clock{time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)}
	fsys := faulty.New()
	fsys.SetClock(c.now)
	disk := fsys.Process()
	target := newTarget(t, files.Config{
		Dir: "/out", Format: files.CSV, Codec: parquetfile.Gzip, Files: disk, Clock: c.now, Grace: time.Hour,
		Schema: rowstest.SchemaOf(t, "p", "string", "i", "int32"), PartitionBy: []string{"p"},
	})
	open(t, target, 0)
	publish(t, target, 0, `{"p":"a","i":1}`)
	publish(t, target, 1, `{"p":"b","i":1}`)
	const hash = "0123456789abcdef"
	for _, dir := range []string{"/out/_wasmill/1-00000001", "/out/_wasmill/9-00000001", "/out/_wasmill/mine", "/out/p=a/sub=x"} {
		if err := disk.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	orphans := []string{
		"/out/part-00000-0c0ffee0-1-" + hash + ".c000.csv", "/out/p=a/part-00007-0c0ffee0-0-" + hash + ".c000.csv.gz",
		"/out/_wasmill/1-00000001/part-00000", "/out/_spark_metadata/.1-00000001.tmp",
	}
	stay := []string{
		"/out/p=a/part-00000-0c0ffee0-9-" + hash + ".c000.csv.gz", // above the sealed batch
		"/out/p=a/part-00000-ffffffff-0-" + hash + ".c000.csv.gz", // another query's
		"/out/p=a/part-00000-0c0ffee0-0-" + hash + ".csv.gz", "/out/p=a/notes.txt", "/out/other.csv",
		"/out/p=a/sub=x/part-00000-0c0ffee0-0-" + hash + ".c000.csv.gz", // deeper than there are partitions
		"/out/_wasmill/9-00000001/part-00000", "/out/_wasmill/mine/part-00000",
		"/out/_spark_metadata/.2-00000001.tmp", "/out/_spark_metadata/_wasmill.json",
	}
	for _, name := range append(append([]string{}, orphans...), stay...) {
		if err := durable.WriteFile(disk, name, []byte("x")); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	listed := len(sparkEntries(t, disk, "/out"))
	seal := func(n checkpoint.BatchID) {
		t.Helper()
		if err := target.Sealed(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	c.t = c.t.Add(59 * time.Minute)
	seal(2)
	for _, name := range orphans {
		if _, err := disk.Stat(name); err != nil {
			t.Errorf("a young file is gone: %v", err)
		}
	}
	c.t = c.t.Add(2 * time.Hour)
	seal(2)
	for _, name := range orphans {
		if _, err := disk.Stat(name); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range stay {
		if _, err := disk.Stat(name); err != nil {
			t.Errorf("gone: %v", err)
		}
	}
	for _, e := range sparkEntries(t, disk, "/out") {
		if _, err := disk.Stat(strings.TrimPrefix(e.Path, "file://")); err != nil {
			t.Errorf("published data is gone: %v", err)
		}
		listed--
	}
	if listed != 0 {
		t.Errorf("%d entries too few are listed", listed)
	}
}

// TestDirectoryWithoutAManifestFile is damage that no crash causes: it is named, not skipped.
func TestDirectoryWithoutAManifestFile(t *testing.T) {
	for _, gone := range []string{"9.compact", "11"} {
		disk := faulty.New().Process()
		target := newTarget(t, files.Config{Dir: "/out", Format: files.JSONL, Files: disk})
		open(t, target, 0)
		for n := range checkpoint.BatchID(14) {
			publish(t, target, n, fmt.Sprint(n))
		}
		if err := disk.Remove("/out/_spark_metadata/" + gone); err != nil {
			t.Fatal(err)
		}
		_, err := target.Open(t.Context(), owner(14))
		wantFault(t, err, files.CodeDamaged)
		if !strings.Contains(err.Error(), gone) {
			t.Errorf("%v does not name %s", err, gone)
		}
	}
}
