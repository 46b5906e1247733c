package delta_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/rows"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink"
	target "github.com/wasmill/wasmill/host/sink/delta"
)

// TestTableUnderARunningJob changes the table where nobody should.
func TestTableUnderARunningJob(t *testing.T) {
	schema := rowstest.SchemaOf(t, "id", "int64", "name", "string")
	remove := func(t *testing.T, dir string) {
		t.Helper()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name    string
		change  func(t *testing.T, dir string)
		stage   string // the code that staging ends with
		publish string // and publishing what was staged before; "lost" for sink.ErrLost
	}{
		{"gone", remove, target.CodeRecreated, target.CodeRecreated},
		{"made anew", func(t *testing.T, dir string) {
			remove(t, dir)
			log := makeTable(t, osFiles, dir, schema, nil, nil)
			for range 5 {
				s, err := log.Snapshot(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				commitAs(t, log, s)
			}
		}, target.CodeRecreated, target.CodeRecreated},
		{"a column dropped", func(t *testing.T, dir string) {
			alter(t, osFiles, dir, func(m *delta.Metadata) { m.SchemaString = delta.SchemaString(rowstest.SchemaOf(t, "id", "int64")) })
		}, target.CodeSchema, "lost"},
		{"a column of another type", func(t *testing.T, dir string) {
			alter(t, osFiles, dir, func(m *delta.Metadata) {
				m.SchemaString = delta.SchemaString(rowstest.SchemaOf(t, "id", "string", "name", "string"))
			})
		}, target.CodeSchema, "lost"},
		{"a feature", func(t *testing.T, dir string) {
			alter(t, osFiles, dir, func(m *delta.Metadata) {
				m.SchemaString = strings.Replace(m.SchemaString, `"metadata":{}`, `"metadata":{"delta.invariants":"id > 0"}`, 1)
			})
		}, delta.CodeFeature, "lost"},
		{"the partitions", func(t *testing.T, dir string) {
			alter(t, osFiles, dir, func(m *delta.Metadata) { m.PartitionColumns = []string{"name"} })
		}, "", "lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "t")
			tt := opened(t, target.Config{Dir: dir, Schema: schema})
			mustBatch(t, tt, 0, `{"id":1,"name":"a"}`)
			s, err := stageRecords(tt, 1, "0a0b0c0d", valuesOf([]string{`{"id":2,"name":"b"}`}))
			if err != nil {
				t.Fatal(err)
			}
			c.change(t, dir)
			err = publishStaged(tt, 1, s)
			if lost := errors.Is(err, sink.ErrLost); lost != (c.publish == "lost") {
				t.Fatalf("publish: %v", err)
			} else if !lost {
				wantFault(t, err, c.publish)
			}
			_, err = stageRecords(tt, 1, "0b0b0c0d", valuesOf([]string{`{"id":2,"name":"b"}`}))
			if c.stage != "" {
				wantFault(t, err, c.stage)
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestExpiredTxn: a table that forgets is warned of, and what it has forgotten stops the job instead of coming twice.
func TestExpiredTxn(t *testing.T) {
	files, c := faulty.New().Process(), &clock{start}
	schema := rowstest.SchemaOf(t, "id", "int64")
	makeTable(t, files, "/t", schema, nil, map[string]string{"delta.setTransactionRetentionDuration": "interval 1 hour"})
	var warned []error
	cfg := target.Config{Dir: "/t", Schema: schema, Files: files, Clock: c.now, Warn: func(err error) { warned = append(warned, err) }}
	tt := opened(t, cfg)
	if len(warned) != 1 {
		t.Fatalf("warnings are %v", warned)
	}
	wantFault(t, warned[0], target.CodeExpired)
	mustBatch(t, tt, 0, `{"id":1}`)
	c.t = c.t.Add(2 * time.Hour)
	p, err := opened(t, cfg).Open(context.Background(), owner(1))
	if err != nil || p.Batch != 0 || p.Digest != digestOf(0) {
		t.Fatalf("what has expired and is still there says %+v, %v", p, err)
	}
	mustBatch(t, tt, 1, `{"id":2}`)
	c.t = c.t.Add(2 * time.Hour)
	forget(t, files, schema, snapshot(t, files, "/t"))
	fresh := opened(t, cfg)
	p, err = fresh.Open(context.Background(), owner(2))
	if err != nil || p.Batch != checkpoint.NoBatch {
		t.Fatalf("published is %+v, %v, want nothing: the checkpoint of the job knows better and stops", p, err)
	}
	said := fresh.Forgot(1)
	wantFault(t, said, target.CodeExpired)
	if !strings.Contains(said.Error(), "delta.setTransactionRetentionDuration") || !strings.Contains(said.Error(), "batch 1") {
		t.Errorf("it says %v", said)
	}
	staged, err := stageRecords(tt, 2, "0a0b0c0d", valuesOf([]string{`{"id":3}`}))
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, publishStaged(tt, 2, staged), target.CodeExpired)

	plain := newTarget(t, target.Config{Dir: "/p", Schema: schema, Files: files, Clock: c.now})
	if _, err := plain.Open(context.Background(), owner(2)); err != nil || plain.Forgot(1) != nil {
		t.Errorf("a table that forgets nothing: %v, %v", err, plain.Forgot(1))
	}
}

// TestForgottenFirstBatch: a table that has forgotten the txn of the first batch gets the batch no second time from a process
// that cannot know that it was published: the files tell, also where they were compacted and vacuumed away.
func TestForgottenFirstBatch(t *testing.T) {
	for name, vacuum := range map[string]bool{"live": false, "compacted": false, "vacuumed": true} {
		t.Run(name, func(t *testing.T) {
			files, c := faulty.New().Process(), &clock{start}
			schema := rowstest.SchemaOf(t, "id", "int64")
			log := makeTable(t, files, "/t", schema, nil, map[string]string{"delta.setTransactionRetentionDuration": "interval 1 hour"})
			cfg := target.Config{Dir: "/t", Schema: schema, Files: files, Clock: c.now}
			tt := opened(t, cfg)
			staged, err := stageRecords(tt, 0, "0a0b0c0d", valuesOf([]string{`{"id":1}`}))
			if err != nil {
				t.Fatal(err)
			}
			if err := publishStaged(tt, 0, staged); err != nil {
				t.Fatal(err)
			}
			c.t = c.t.Add(2 * time.Hour)
			s := snapshot(t, files, "/t")
			var add *delta.Add
			for a := range s.Files() {
				add = a
			}
			if name != "live" {
				commitAs(t, log, s, delta.Action{Remove: add.Remove(c.t.UnixMilli(), false)})
			}
			if vacuum {
				name, err := add.File()
				if err == nil {
					err = files.Remove("/t/" + name)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			fresh, o := newTarget(t, cfg), owner(0)
			o.Query = "99999999-2222-4333-8444-555555555555" // of whom the table knows as little as of one that it has forgotten
			if p, err := fresh.Open(context.Background(), o); err != nil || p.Batch != checkpoint.NoBatch {
				t.Fatalf("published is %+v, %v", p, err)
			}
			wantFault(t, publishStaged(fresh, 0, staged), target.CodeExpired)
		})
	}
}

// forget makes the log what another engine makes of it in time: a checkpoint without the expired txns, and no entries before.
func forget(tb testing.TB, files durable.Files, schema *rows.Schema, s *delta.Snapshot) {
	tb.Helper()
	log := makeTable(tb, files, "/u", schema, nil, s.Metadata.Configuration)
	var base *delta.Snapshot
	var err error
	for base == nil || base.Version < s.Version && err == nil {
		if base != nil {
			commitAs(tb, log, base)
		}
		base, err = log.Snapshot(context.Background())
	}
	if err == nil {
		err = log.WriteCheckpoint(context.Background(), base)
	}
	for v := int64(0); v <= s.Version && err == nil; v++ {
		err = files.Remove(fmt.Sprintf("/t/_delta_log/%020d.json", v))
	}
	for _, name := range []string{fmt.Sprintf("%020d.json", s.Version), fmt.Sprintf("%020d.checkpoint.parquet", s.Version), "_last_checkpoint"} {
		if err == nil {
			err = files.Rename("/u/_delta_log/"+name, "/t/_delta_log/"+name)
		}
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// TestClockSetBack: neither the time of the txn nor the in-commit timestamp goes back with the clock.
func TestClockSetBack(t *testing.T) {
	files, c := faulty.New().Process(), &clock{start}
	schema := rowstest.SchemaOf(t, "id", "int64")
	log := delta.OpenLog(files, "/t", c.now)
	commitAs(t, log, nil, delta.Action{Protocol: &delta.Protocol{MinReader: 1, MinWriter: 7, WriterFeatures: []string{"inCommitTimestamp"}}},
		delta.Action{Metadata: &delta.Metadata{
			ID: "11111111-2222-4333-8444-555555555555", Format: delta.Format{Provider: "parquet", Options: map[string]string{}},
			SchemaString: delta.SchemaString(schema), PartitionColumns: []string{}, Configuration: map[string]string{"delta.enableInCommitTimestamps": "true"},
		}})
	tt := opened(t, target.Config{Dir: "/t", Schema: schema, Files: files, Clock: c.now})
	before := snapshot(t, files, "/t").TimestampMS
	for n := range checkpoint.BatchID(3) {
		mustBatch(t, tt, n, `{"id":1}`)
		c.t = c.t.Add(-time.Hour)
		s := snapshot(t, files, "/t")
		if s.TimestampMS <= before {
			t.Errorf("batch %d has time %d after %d", n, s.TimestampMS, before)
		}
		before = s.TimestampMS
		if txn, ok := s.Txn(query + "/lake"); !ok || *txn.LastUpdated != start.UnixMilli() {
			t.Errorf("batch %d was last updated at %v, want %d", n, txn.LastUpdated, start.UnixMilli())
		}
	}
}

// TestDiskTroubles: what the disk refuses has a code and a way out, leaves nothing half-visible, and passes.
func TestDiskTroubles(t *testing.T) {
	for _, c := range []struct {
		name, code string
		err        error
	}{
		{"read-only", target.CodePermission, syscall.EROFS},
		{"not allowed", target.CodePermission, fs.ErrPermission},
		{"a long name", target.CodeTooLong, syscall.ENAMETOOLONG},
		{"broken", target.CodeDisk, syscall.EIO},
		{"full", target.CodeNoSpace, syscall.ENOSPC},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := faulty.New()
			tt := opened(t, target.Config{Dir: "/t", Schema: rowstest.SchemaOf(t, "id", "int64"), Files: disk.Process()})
			mustBatch(t, tt, 0, `{"id":1}`)
			disk.FailNth(1, func(o faulty.Op) bool { return o.Kind == "create" }, faulty.Fault{Err: c.err, When: faulty.Before}, true)
			_, err := stageRecords(tt, 1, "0a0b0c0d", valuesOf([]string{`{"id":2}`}))
			wantFault(t, err, c.code)
			disk.SetFaults(nil)
			mustBatch(t, tt, 1, `{"id":2}`)
			if got := rowsOf(t, disk.Process(), "/t"); len(got) != 2 {
				t.Errorf("rows are %v", got)
			}
		})
	}
}

// TestFullDisk fills the disk in the middle of a file: what was written goes, and the batch comes once there is room.
func TestFullDisk(t *testing.T) {
	disk := faulty.New()
	tt := opened(t, target.Config{Dir: "/t", Schema: rowstest.SchemaOf(t, "id", "int64"), Files: disk.Process(), Codec: "none", MaxPartRows: 50})
	mustBatch(t, tt, 0, `{"id":1}`)
	var values []string
	for i := range 200 {
		values = append(values, fmt.Sprintf(`{"id":%d}`, i))
	}
	for _, space := range []int64{100, 700, 1500} {
		disk.SetSpace(space)
		_, err := stageRecords(tt, 1, "0a0b0c0d", valuesOf(values))
		wantFault(t, err, target.CodeNoSpace)
		if got := dataFiles(t, disk.Process(), "/t", ""); len(got) != 1 {
			t.Fatalf("with %d bytes %v are left", space, got)
		}
	}
	disk.SetSpace(1 << 20)
	mustBatch(t, tt, 1, values...)
	if got := rowsOf(t, disk.Process(), "/t"); len(got) != 201 {
		t.Errorf("%d rows", len(got))
	}
}

// TestRefusedPlaces opens what is no table, or none that can be written to.
func TestRefusedPlaces(t *testing.T) {
	schema := rowstest.SchemaOf(t, "id", "int64", "v", "string")
	for _, c := range []struct {
		name, code string
		prepare    func(t *testing.T, disk *faulty.FS)
		key        []string
	}{
		{"files of something else", target.CodeForeign, func(t *testing.T, disk *faulty.FS) {
			put(t, disk, "/t/report.csv", "a,b\n")
		}, nil},
		{"an append-only table to upsert into", delta.CodeFeature, func(t *testing.T, disk *faulty.FS) {
			makeTable(t, disk.Process(), "/t", schema, nil, map[string]string{"delta.appendOnly": "true"})
		}, []string{"id"}},
		{"a change feed to upsert into", delta.CodeFeature, func(t *testing.T, disk *faulty.FS) {
			makeTable(t, disk.Process(), "/t", schema, nil, map[string]string{"delta.enableChangeDataFeed": "true"})
			alterProtocol(t, disk, &delta.Protocol{MinReader: 1, MinWriter: 4})
		}, []string{"id"}},
		{"an unknown feature", delta.CodeFeature, func(t *testing.T, disk *faulty.FS) {
			makeTable(t, disk.Process(), "/t", schema, nil, nil)
			alterProtocol(t, disk, &delta.Protocol{MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"catalogManaged"}, WriterFeatures: []string{"catalogManaged"}})
		}, nil},
		{"a log that cannot be read", delta.CodeDamaged, func(t *testing.T, disk *faulty.FS) {
			put(t, disk, "/t/_delta_log/00000000000000000000.json", "{\"proto")
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := faulty.New()
			c.prepare(t, disk)
			tt := newTarget(t, target.Config{Dir: "/t", Schema: schema, Files: disk.Process(), Key: c.key})
			_, err := tt.Inspect(context.Background(), owner(0))
			wantFault(t, err, c.code)
			_, err = tt.Open(context.Background(), owner(0))
			wantFault(t, err, c.code)
		})
	}
}

func put(tb testing.TB, disk *faulty.FS, name, content string) {
	tb.Helper()
	files := disk.Process()
	err := files.MkdirAll(name[:strings.LastIndex(name, "/")])
	if err == nil {
		err = writeFile(files, name, content)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func alterProtocol(tb testing.TB, disk *faulty.FS, p *delta.Protocol) {
	tb.Helper()
	log := delta.OpenLog(disk.Process(), "/t", (&clock{start}).now)
	base, err := log.Snapshot(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	commitAs(tb, log, base, delta.Action{Protocol: p})
}

// TestStagedRecords refuses records that are not its own, before anything is touched.
func TestStagedRecords(t *testing.T) {
	tt := opened(t, target.Config{Dir: "/t", Schema: rowstest.SchemaOf(t, "id", "int64"), Files: faulty.New().Process()})
	good, err := stageRecords(tt, 0, "0a0b0c0d", valuesOf([]string{`{"id":1}`}))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", "{", `{"version":2}`, `{"version":1}`,
		strings.Replace(string(good), `"path":"`, `"path":"../`, 1),
		strings.Replace(string(good), `"path":"`, `"path":"/`, 1),
		strings.Replace(string(good), `"attempt":"0a0b0c0d"`, `"attempt":"../../.."`, 1),
		strings.Replace(string(good), `"read":-1`, `"read":7`, 1),
		strings.Replace(string(good), `"parts":[`, `"removed":["/etc/passwd"],"parts":[`, 1),
	} {
		if bad == string(good) {
			t.Fatal("a record was not changed")
		}
		wantFault(t, publishStaged(tt, 0, sink.Staged(bad)), target.CodeDamaged)
	}
	if err := publishStaged(tt, 0, good); err != nil {
		t.Fatal(err)
	}
}

// TestOtherContent: a staged file that was changed is lost, not published.
func TestOtherContent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	cfg := target.Config{Dir: dir, Schema: rowstest.SchemaOf(t, "id", "int64")}
	tt := opened(t, cfg)
	s, err := stageRecords(tt, 0, "0a0b0c0d", valuesOf([]string{`{"id":1}`}))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, dataFiles(t, osFiles, dir, "")[0])
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := publishStaged(opened(t, cfg), 0, s); !errors.Is(err, sink.ErrLost) {
		t.Errorf("publish: %v, want ErrLost", err)
	}
}
