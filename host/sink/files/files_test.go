package files_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

// dump lists a whole directory on a disk, with the content of text files.
func dump(t *testing.T, disk durable.Files, dir string) string {
	t.Helper()
	var b strings.Builder
	infos, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		name := dir + "/" + i.Name
		if i.Dir {
			fmt.Fprintf(&b, "%s/\n%s", name, dump(t, disk, name))
			continue
		}
		data, err := durable.ReadFile(disk, name, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".parquet") || strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".zst") {
			fmt.Fprintf(&b, "%s\n", name)
			continue
		}
		fmt.Fprintf(&b, "%s\n    %s\n", name, strings.ReplaceAll(strings.TrimSuffix(string(data), "\n"), "\n", "\n    "))
	}
	return b.String()
}

// TestLayout pins every name and byte that outlives a version.
func TestLayout(t *testing.T) {
	disk := faulty.New().Process()
	target := newTarget(t, files.Config{
		Dir: "/data/my out", Format: files.CSV, Files: disk, PartitionBy: []string{"place", "at"},
		Schema: rowstest.SchemaOf(t, "id", "int64", "place", "string", "at", "timestamp", "price", "decimal(9,2)", "note", "string", "raw", "binary"),
	})
	open(t, target, 0)
	publish(t, target, 2,
		`{"id":1,"place":"a b/ü%","at":"2026-01-02T03:04:05+01:00","price":-1.5,"note":"say \"hi\",\nbye","raw":"AAE="}`,
		`{"id":2,"place":null,"at":"2026-01-02T03:04:05.25Z","note":""}`,
		`{"id":3,"place":"a b/ü%","at":"2026-01-02T02:04:05Z","price":1e2}`)
	for n := checkpoint.BatchID(3); n < 10; n++ {
		publish(t, target, n)
	}
	golden(t, "layout.txt", dump(t, disk, "/data/my out"))
}

func TestTextFormats(t *testing.T) {
	const row = `{"s":"a,\"b\"\u0001","b":true,"i":-7,"f":1.5,"d":1e21,"n":"NaN","dec":"0.5","t":"1969-12-31T23:59:59.999999Z","day":"0001-01-01","x":"/w=="}`
	schema := rowstest.SchemaOf(t, "s", "string", "b", "boolean", "i", "int32", "f", "float", "d", "double", "n", "double", "dec", "decimal(20,3)",
		"t", "timestamp", "day", "date", "x", "binary")
	for _, c := range []struct {
		name string
		cfg  files.Config
		want string
	}{
		{
			"csv",
			files.Config{Format: files.CSV, Schema: schema},
			"s,b,i,f,d,n,dec,t,day,x\n\"a,\"\"b\"\"\x01\",true,-7,1.5,1e+21,NaN,0.500,1969-12-31T23:59:59.999999Z,0001-01-01,/w==\n,,,,,,,,,\n",
		},
		{
			"tabs without a header",
			files.Config{Format: files.CSV, Schema: schema, NoHeader: true, Delimiter: '\t'},
			"\"a,\"\"b\"\"\x01\"\ttrue\t-7\t1.5\t1e+21\tNaN\t0.500\t1969-12-31T23:59:59.999999Z\t0001-01-01\t/w==\n\t\t\t\t\t\t\t\t\t\n",
		},
		{
			"typed jsonl",
			files.Config{Format: files.JSONL, Schema: schema},
			`{"s":"a,\"b\"\u0001","b":true,"i":-7,"f":1.5,"d":1e+21,"n":"NaN","dec":0.500,"t":"1969-12-31T23:59:59.999999Z","day":"0001-01-01","x":"/w=="}` + "\n" +
				`{"s":null,"b":null,"i":null,"f":null,"d":null,"n":null,"dec":null,"t":null,"day":null,"x":null}` + "\n",
		},
		{"raw jsonl", files.Config{Format: files.JSONL}, row + "\n{ }\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := faulty.New().Process()
			c.cfg.Dir, c.cfg.Files = "/out", disk
			target := newTarget(t, c.cfg)
			open(t, target, 0)
			publish(t, target, 0, row, "{\n }")
			entries := sparkEntries(t, disk, "/out")
			data, err := durable.ReadFile(disk, strings.TrimPrefix(entries[0].Path, "file://"), 1<<20)
			if err != nil || len(entries) != 1 {
				t.Fatal(err, len(entries))
			}
			if string(data) != c.want {
				t.Errorf("got\n%s\nwant\n%s", data, c.want)
			}
		})
	}
}

// TestNestedTextFormats: lists, maps and structs are JSON, in csv as one text.
func TestNestedTextFormats(t *testing.T) {
	const row = `{"l":["a,b",null],"m":{"1":true},"s":{"x":"\"q\"","y":[]},"n":-1}`
	schema := rowstest.SchemaOf(t, "l", "list<string>", "m", "map<int32, boolean>", "s", "struct<x: string, y: list<int8>>", "n", "int8")
	for format, want := range map[files.Format]string{
		files.CSV:   "l,m,s,n\n\"[\"\"a,b\"\",null]\",\"{\"\"1\"\":true}\",\"{\"\"x\"\":\"\"\\\"\"q\\\"\"\"\",\"\"y\"\":[]}\",-1\n,,,\n[],{},\"{\"\"x\"\":null,\"\"y\"\":null}\",\n",
		files.JSONL: row + "\n" + `{"l":null,"m":null,"s":null,"n":null}` + "\n" + `{"l":[],"m":{},"s":{"x":null,"y":null},"n":null}` + "\n",
	} {
		disk := faulty.New().Process()
		target := newTarget(t, files.Config{Dir: "/out", Files: disk, Format: format, Schema: schema})
		open(t, target, 0)
		publish(t, target, 0, row, `{}`, `{"l":[],"m":{},"s":{}}`)
		entries := sparkEntries(t, disk, "/out")
		data, err := durable.ReadFile(disk, strings.TrimPrefix(entries[0].Path, "file://"), 1<<20)
		if err != nil || string(data) != want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", format, err, data, want)
		}
	}
}

// TestFsyncs pins what a small batch costs: one sync to stage it, and three to publish it.
func TestFsyncs(t *testing.T) {
	disk := durable.Count(faulty.New().Process())
	target := newTarget(t, files.Config{Dir: "/out", Format: files.JSONL, Files: disk})
	open(t, target, 0)
	publish(t, target, 0, "1")
	f0, d0 := disk.Syncs()
	s := stage(t, target, 1, "0a0b0c0d", "1")
	f1, d1 := disk.Syncs()
	if f1-f0 != 1 || d1 != d0 {
		t.Errorf("staging costs %d file and %d directory syncs, want 1 and 0", f1-f0, d1-d0)
	}
	if err := target.Publish(context.Background(), &checkpoint.Decision{Batch: 1, Digest: digestOf(1)}, s); err != nil {
		t.Fatal(err)
	}
	f2, d2 := disk.Syncs()
	if f2-f1 != 1 || d2-d1 != 2 {
		t.Errorf("publishing costs %d file and %d directory syncs, want 1 and 2", f2-f1, d2-d1)
	}
}

// TestStagedFilesAreVerified damages what a new process finds staged.
func TestStagedFilesAreVerified(t *testing.T) {
	for _, damage := range []string{"changed", "cut", "longer", "missing"} {
		t.Run(damage, func(t *testing.T) {
			dir := t.TempDir()
			target := newTarget(t, files.Config{Dir: dir, Format: files.JSONL})
			open(t, target, 0)
			s := stage(t, target, 0, "0a0b0c0d", "1", "2")
			if err := target.Close(); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(dir, "_wasmill", "0-0a0b0c0d", "part-00000")
			content := map[string]string{"changed": "1\n3\n", "cut": "1\n", "longer": "1\n2\n\n"}
			err := os.WriteFile(name, []byte(content[damage]), 0o600)
			if damage == "missing" {
				err = os.Remove(name)
			}
			if err != nil {
				t.Fatal(err)
			}
			target = newTarget(t, files.Config{Dir: dir, Format: files.JSONL})
			open(t, target, 0)
			err = target.Publish(t.Context(), &checkpoint.Decision{Batch: 0, Digest: digestOf(0)}, s)
			if !errors.Is(err, sink.ErrLost) {
				t.Fatalf("got %v, want ErrLost", err)
			}
			if n := len(sparkEntries(t, durable.OS(), dir)); n != 0 {
				t.Fatalf("%d entries are visible", n)
			}
		})
	}
}

// TestManifestWithoutItsDigest is what a crash may leave: the entries then decide.
func TestManifestWithoutItsDigest(t *testing.T) {
	for _, n := range []checkpoint.BatchID{3, 9} {
		disk := faulty.New().Process()
		target := newTarget(t, files.Config{Dir: "/out", Format: files.JSONL, Files: disk})
		open(t, target, 0)
		publish(t, target, 1, "1")
		s := stage(t, target, n, "0a0b0c0d", "2", "3")
		other := stage(t, target, n, "0a0b0c0e", "2", "4")
		d := &checkpoint.Decision{Batch: n, Digest: digestOf(n)}
		if err := target.Publish(t.Context(), d, s); err != nil {
			t.Fatal(err)
		}
		note := fmt.Sprintf("/out/_spark_metadata/_wasmill.%d.%s", n, digestOf(n))
		if err := disk.Remove(note); err != nil {
			t.Fatal(err)
		}
		if p := open(t, target, n); p.Batch != 1 || p.Digest != digestOf(1) {
			t.Fatalf("published is %+v, want batch 1", p)
		}
		wantFault(t, target.Publish(t.Context(), d, other), files.CodeConflict)
		if err := target.Publish(t.Context(), d, s); err != nil {
			t.Fatal(err)
		}
		if p := open(t, target, n+1); p.Batch != n || p.Digest != digestOf(n) {
			t.Fatalf("published is %+v, want batch %d", p, n)
		}
	}
}

func TestForgedRecordsOfStaging(t *testing.T) {
	target := newTarget(t, files.Config{Dir: "/out", Format: files.JSONL, Files: faulty.New().Process()})
	open(t, target, 0)
	good := string(stage(t, target, 0, "0a0b0c0d", "1"))
	for _, forged := range []string{
		"", "null", "[]", `{"version":2}`, `{"version":1,"dir":"../x","parts":[]}`,
		strings.Replace(good, `"path":"`, `"path":"../`, 1), strings.Replace(good, `"path":"`, `"path":"/`, 1),
		strings.Replace(good, `"path":"part`, `"path":"_spark_metadata/../../part`, 1), strings.Replace(good, `"file":"part`, `"file":"../part`, 1),
		strings.Replace(good, `"path":"part-`, `"path":"x`, 1),
	} {
		err := target.Publish(t.Context(), &checkpoint.Decision{Batch: 0, Digest: digestOf(0)}, sink.Staged(forged))
		if err == nil || errors.Is(err, sink.ErrLost) {
			t.Errorf("%s: %v, want a refusal", forged, err)
		}
	}
}

func TestParts(t *testing.T) {
	schema := rowstest.SchemaOf(t, "p", "string", "i", "int32")
	for _, c := range []struct {
		name string
		cfg  files.Config
		want int
	}{
		{"rows", files.Config{Format: files.Parquet, Schema: schema, MaxPartRows: 4}, 3},
		{"rows of a partition", files.Config{Format: files.Parquet, Schema: schema, MaxPartRows: 4, PartitionBy: []string{"p"}}, 4},
		{"bytes", files.Config{Format: files.CSV, Schema: schema, MaxPartBytes: 30}, 5},
		{"a byte", files.Config{Format: files.CSV, Schema: schema, MaxPartBytes: 1}, 10},
		{"raw rows", files.Config{Format: files.JSONL, MaxPartRows: 3}, 4},
		{"raw bytes", files.Config{Format: files.JSONL, MaxPartBytes: 36}, 5},
		{"one", files.Config{Format: files.Parquet, Schema: schema}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := faulty.New().Process()
			c.cfg.Dir, c.cfg.Files = "/out", disk
			target := newTarget(t, c.cfg)
			open(t, target, 0)
			var values []string
			for i := range 10 {
				values = append(values, fmt.Sprintf(`{"p":"%c","i":%d}`, 'a'+i%2, i))
			}
			publish(t, target, 0, values...)
			entries := sparkEntries(t, disk, "/out")
			if len(entries) != c.want {
				t.Errorf("%d parts, want %d", len(entries), c.want)
			}
			if c.cfg.Format == files.JSONL {
				if got := visible(t, disk, "/out"); strings.Join(got, "") != strings.Join(values, "") {
					t.Errorf("the rows are %v", got)
				}
			}
		})
	}
}

// TestUpdates: among updates a record without a value is a deletion; elsewhere, and where rows have columns, it does not fit.
func TestUpdates(t *testing.T) {
	for name, test := range map[string]struct {
		updates bool
		schema  *rows.Schema
		rows    int64
	}{
		"updates": {updates: true, rows: 2}, "rows": {rows: 1}, "updates in columns": {updates: true, schema: rowstest.SchemaOf(t, "n", "int32"), rows: 1},
	} {
		target := newTarget(t, files.Config{Dir: "/out", Format: files.JSONL, Schema: test.schema, Updates: test.updates, Files: faulty.New().Process()})
		l, err := target.NewLane("lake")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(&abi.Record{Key: []byte("a"), Value: []byte(`{"n":1}`)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var m *sink.Misfit
		if err := l.Append(&abi.Record{Key: []byte("a")}); err != nil && !errors.As(err, &m) || l.Rows() != test.rows {
			t.Errorf("%s: a deletion: %v, %d rows", name, err, l.Rows())
		}
	}
}

func TestPartitionMisfits(t *testing.T) {
	target := newTarget(t, files.Config{
		Dir: "/out", Format: files.JSONL, Schema: rowstest.SchemaOf(t, "p", "string", "i", "int32"), PartitionBy: []string{"p"}, Files: faulty.New().Process(),
	})
	l, err := target.NewLane("lake")
	if err != nil {
		t.Fatal(err)
	}
	for value, code := range map[string]string{
		"": "range", "__HIVE_DEFAULT_PARTITION__": "range", strings.Repeat("x", 254): "length", strings.Repeat("/", 85): "length",
		strings.Repeat("x", 253): "", strings.Repeat("/", 84): "",
	} {
		before := l.Rows()
		err := l.Append(&abi.Record{Value: fmt.Appendf(nil, `{"p":%q,"i":1}`, value)})
		var m *sink.Misfit
		switch {
		case code == "" && (err != nil || l.Rows() != before+1):
			t.Errorf("%q: %v", value, err)
		case code != "" && (!errors.As(err, &m) || m.Code != code || m.Column != "p" || l.Rows() != before):
			t.Errorf("%q: %v with %d rows, want %s", value, err, l.Rows(), code)
		}
	}
}

func TestDiskTrouble(t *testing.T) {
	for _, c := range []struct {
		err  error
		code string
	}{
		{syscall.ENOSPC, files.CodeNoSpace},
		{syscall.EDQUOT, files.CodeNoSpace},
		{fs.ErrPermission, files.CodePermission},
		{syscall.EROFS, files.CodePermission},
	} {
		disk := faulty.New()
		target := newTarget(t, files.Config{Dir: "/out", Format: files.JSONL, Files: disk.Process()})
		open(t, target, 0)
		s := stage(t, target, 0, "0a0b0c0d", "1")
		disk.SetFaults(func(o faulty.Op) faulty.Fault {
			if o.Writes() {
				return faulty.Fault{Err: c.err}
			}
			return faulty.Fault{}
		})
		_, err := target.Stage(t.Context(), sink.Output{Batch: 1, Attempt: "0a0b0c0d"})
		wantFault(t, err, c.code)
		wantFault(t, target.Publish(t.Context(), &checkpoint.Decision{Digest: digestOf(0)}, s), c.code)
		disk.SetFaults(nil)
		if err := target.Publish(t.Context(), &checkpoint.Decision{Digest: digestOf(0)}, s); err != nil {
			t.Errorf("after %v was over: %v", c.err, err)
		}
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	one := newTarget(t, files.Config{Dir: dir, Format: files.JSONL})
	open(t, one, 0)
	two := newTarget(t, files.Config{Dir: dir, Format: files.JSONL})
	_, err := two.Open(t.Context(), sink.Owner{Query: query, Job: "test"})
	wantFault(t, err, files.CodeLocked)
}

// TestRetention drops old data from the manifest first, and deletes it after the grace time.
func TestRetention(t *testing.T) {
	c := &clock{time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)}
	fsys := faulty.New()
	fsys.SetClock(c.now)
	disk := fsys.Process()
	target := newTarget(t, files.Config{
		Dir: "/out", Format: files.JSONL, Files: disk, Clock: c.now, Retention: 5 * time.Hour, Grace: 2 * time.Hour,
	})
	open(t, target, 0)
	count := func() (listed, there int) {
		infos, err := disk.List("/out")
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range infos {
			if strings.HasPrefix(i.Name, "part-") {
				there++
			}
		}
		return len(sparkEntries(t, disk, "/out")), there
	}
	for n := range checkpoint.BatchID(40) {
		publish(t, target, n, fmt.Sprint(n))
		listed, there := count()
		switch {
		case n == 9 && (listed != 6 || there != 10):
			t.Errorf("at the compaction %d are listed and %d there, want 6 and 10", listed, there)
		case n == 12 && there != 9 || n == 30 && there > 20:
			t.Errorf("batch %d: %d files are there", n, there)
		}
		c.t = c.t.Add(time.Hour)
	}
	for _, line := range visible(t, disk, "/out") {
		if len(line) == 1 {
			t.Errorf("%s is still visible", line)
		}
	}
}

// TestManifestStaysSmall: the files of _spark_metadata are bounded, and readers still find what they need.
func TestManifestStaysSmall(t *testing.T) {
	disk := faulty.New().Process()
	target := newTarget(t, files.Config{Dir: "/out", Format: files.JSONL, Files: disk})
	open(t, target, 0)
	for n := range checkpoint.BatchID(345) {
		publish(t, target, n, fmt.Sprint(n))
	}
	infos, err := disk.List("/out/_spark_metadata")
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) > 2*120 {
		t.Errorf("%d files in _spark_metadata", len(infos))
	}
	if got := len(visible(t, disk, "/out")); got != 345 {
		t.Errorf("%d rows are visible, want 345", got)
	}
}

func TestConfigMistakes(t *testing.T) {
	schema := rowstest.SchemaOf(t, "a", "string", "d", "double")
	good := files.Config{Sink: "s", Dir: "/out", Format: files.Parquet, Schema: schema, Files: durable.OS(), Clock: time.Now}
	for name, change := range map[string]func(*files.Config){
		"no sink": func(c *files.Config) { c.Sink = "" }, "no dir": func(c *files.Config) { c.Dir = "" },
		"no files": func(c *files.Config) { c.Files = nil }, "no clock": func(c *files.Config) { c.Clock = nil },
		"format": func(c *files.Config) { c.Format = "orc" }, "no schema": func(c *files.Config) { c.Schema = nil },
		"csv without schema": func(c *files.Config) { c.Format, c.Schema = files.CSV, nil },
		"partition of raw":   func(c *files.Config) { c.Format, c.Schema, c.PartitionBy = files.JSONL, nil, []string{"a"} },
		"snappy csv":         func(c *files.Config) { c.Format, c.Codec = files.CSV, parquetfile.Snappy },
		"codec":              func(c *files.Config) { c.Codec = "lzma" },
		"no such partition":  func(c *files.Config) { c.PartitionBy = []string{"x"} },
		"double partition":   func(c *files.Config) { c.PartitionBy = []string{"d"} },
		"twice":              func(c *files.Config) { c.PartitionBy = []string{"a", "a"} },
		"delimiter":          func(c *files.Config) { c.Delimiter = '"' },
		"all partitions":     func(c *files.Config) { c.Schema, c.PartitionBy = rowstest.SchemaOf(t, "a", "string"), []string{"a"} },
	} {
		cfg := good
		change(&cfg)
		_, err := files.New(cfg)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		wantFault(t, err, files.CodeConfig)
	}
	if _, err := files.New(good); err != nil {
		t.Error(err)
	}
}
