package files_test

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/checkpoint/durable/faulty"
	"github.com/wasmill/wasmill/host/rows/rowstest"
	"github.com/wasmill/wasmill/host/sink/files"
)

// partsBelow returns the part files in a directory and its partitions, by the batch in their names.
func partsBelow(t *testing.T, disk durable.Files, dir string) map[string]bool {
	t.Helper()
	infos, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, i := range infos {
		switch {
		case i.Dir && strings.Contains(i.Name, "="):
			for name := range partsBelow(t, disk, path.Join(dir, i.Name)) {
				found[name] = true
			}
		case strings.HasPrefix(i.Name, "part-"):
			found[strings.Split(i.Name, "-")[3]] = true
		}
	}
	return found
}

// TestRetentionOfEveryBatch follows each batch from the manifest to its deletion, across restarts: it is listed while it is
// young, dropped by the first compaction after that, there for the grace time of readers of the older manifest, then gone.
func TestRetentionOfEveryBatch(t *testing.T) {
	const retention, grace = 5 * time.Hour, 2 * time.Hour
	start := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)
	c := &clock{start}
	fsys := faulty.New()
	fsys.SetClock(c.now)
	disk := fsys.Process()
	cfg := files.Config{
		Dir: "/out", Format: files.JSONL, Files: disk, Clock: c.now, Retention: retention, Grace: grace,
		Schema: rowstest.SchemaOf(t, "p", "string", "i", "int32"), PartitionBy: []string{"p"},
	}
	target := newTarget(t, cfg)
	open(t, target, 0)
	dropped := map[string]time.Time{}
	deleted := 0
	for n := range checkpoint.BatchID(50) {
		if n%7 == 3 {
			if err := target.Close(); err != nil {
				t.Fatal(err)
			}
			target = newTarget(t, cfg)
			open(t, target, n)
		}
		publish(t, target, n, fmt.Sprintf(`{"p":"%d","i":1}`, n%3))
		listed := map[string]bool{}
		for _, e := range sparkEntries(t, disk, "/out") {
			listed[strings.Split(path.Base(e.Path), "-")[3]] = true
		}
		there := partsBelow(t, disk, "/out")
		for b := range n + 1 {
			id, age := fmt.Sprint(b), time.Duration(n-b)*time.Hour
			if _, known := dropped[id]; !listed[id] && !known {
				dropped[id] = c.t
			}
			since := c.t.Sub(dropped[id])
			switch {
			case listed[id] && !there[id]:
				t.Fatalf("at batch %d the data of %d is gone, and listed", n, b)
			case age <= retention && !listed[id]:
				t.Fatalf("at batch %d, %d is dropped after %v", n, b, age)
			case age > retention+10*time.Hour && listed[id]:
				t.Fatalf("at batch %d, %d is still listed after %v", n, b, age)
			case !listed[id] && since <= grace && !there[id]:
				t.Fatalf("at batch %d the data of %d is deleted %v after it was dropped", n, b, since)
			case !listed[id] && since > 2*grace+time.Hour && there[id]:
				t.Fatalf("at batch %d the data of %d is there %v after it was dropped", n, b, since)
			case !listed[id] && !there[id]:
				deleted++
			}
		}
		c.t = c.t.Add(time.Hour)
	}
	if len(dropped) < 30 || deleted < 30 {
		t.Errorf("%d batches were dropped, and deletion was seen %d times", len(dropped), deleted)
	}
}

// TestOrphansHaveTheGraceTime: a sweep takes what is older than the grace time to the second, and not what is younger.
func TestOrphansHaveTheGraceTime(t *testing.T) {
	for age, gone := range map[time.Duration]bool{
		0: false, time.Hour - time.Second: false, time.Hour: false, time.Hour + time.Second: true, 100 * time.Hour: true,
	} {
		c := &clock{time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)}
		fsys := faulty.New()
		fsys.SetClock(c.now)
		disk := fsys.Process()
		target := newTarget(t, files.Config{Dir: "/out", Format: files.JSONL, Files: disk, Clock: c.now, Grace: time.Hour})
		open(t, target, 0)
		const orphan = "/out/part-00000-0c0ffee0-3-0123456789abcdef.c000.jsonl"
		if err := durable.WriteFile(disk, orphan, []byte("1\n")); err != nil {
			t.Fatal(err)
		}
		c.t = c.t.Add(age)
		if err := target.Sealed(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		if _, err := disk.Stat(orphan); err != nil {
			t.Errorf("age %v: an orphan of the sealed batch itself is gone: %v", age, err)
		}
		c.t = c.t.Add(time.Hour) // the next sweep; the first one has seen the file an hour younger
		if err := disk.Chtimes(orphan, c.t.Add(-age)); err != nil {
			t.Fatal(err)
		}
		if err := target.Sealed(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		if _, err := disk.Stat(orphan); (err != nil) != gone {
			t.Errorf("age %v: gone is %v, want %v", age, err != nil, gone)
		}
	}
}
