package examples

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of so many pages that holds nothing yet, or skips the test where that is not allowed.
func smallDisk(t *testing.T, pages int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", pages*os.Getpagesize()))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("a small file system needs the right to mount one")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves so many pages free.
func fill(t *testing.T, dir string, free uint64) {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	if s.Bfree < free {
		t.Fatalf("%s has %d blocks left, want %d", dir, s.Bfree, free)
	}
	if err := os.WriteFile(filepath.Join(dir, filler), make([]byte, (s.Bfree-free)*uint64(s.Bsize)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// filler is a file that sinks look past.
const filler = ".filler"

// full are the codes of a disk that is full, by kind of target. One that is full only when the batch is committed is told of as the loss
// of what was staged.
func full(kind string) []string {
	if strings.HasPrefix(kind, toSQLite) {
		return []string{"sql.full", "target.staged_lost"}
	}
	return []string{"sink.no_space", "delta.no_space"}
}

const diskPages = 400

// TestTablesDiskFull: the disk that the tables are on is full, from the first page on and some pages later each time: in the middle
// of a part, of an entry of the log, of a database. The job says so and ends, or waits, no reader sees anything of the batch, and when
// there is room it goes on. The same with a disk that the checkpoint is on.
func TestTablesDiskFull(t *testing.T) {
	var lines []string
	for _, kind := range []string{toFiles, toDelta, toDeltaKeys, toSQLite, toSQLiteKeys} {
		for what, codes := range map[string][]string{"tables": full(kind), "checkpoint": {"checkpoint.no_space", "source.no_space"}} {
			p, dir := onSmallDisk(t, kind, what)
			p.run(t)
			p.more(t)
			ends := 0
			for free := uint64(0); p.fills(t, dir, free, codes); free += 1 + free/4 {
				ends++
				p.whole(t, decided(p.checkpoint()))
			}
			p.run(t)
			p.check(t)
			if t.Failed() {
				t.Fatalf("%s: the disk of the %s is full", kind, what)
			}
			if ends < 3 {
				t.Errorf("%s: the disk of the %s was full %d times", kind, what, ends)
			}
			lines = append(lines, fmt.Sprintf("%-14s the disk of the %-10s %2d times full: %s", kind, what, ends, codesOf(p.met)))
		}
	}
	slices.Sort(lines)
	t.Logf("every target equal to its oracle in the end\n%s", strings.Join(lines, "\n"))
}

// fills runs the job with so many pages left on a disk, until it ends or waits by one of some codes; false when the pages are enough.
func (p *patient) fills(t *testing.T, dir string, free uint64, codes []string) bool {
	t.Helper()
	fill(t, dir, free)
	defer func() {
		if err := os.Remove(filepath.Join(dir, filler)); err != nil {
			t.Fatal(err)
		}
	}()
	r := launch(t, nil, p.file)
	waits := func() bool { return waitForm.MatchString(r.log.String()) }
	if !until(r, patience, waits) && r.running() {
		t.Fatalf("%s, %d pages left: it hangs:\n%s", p.kind(), free, r.tail())
	}
	if !waits() && r.exit() == 0 {
		return false
	}
	code := r.code()
	if m := waitForm.FindStringSubmatch(r.log.String()); m != nil {
		code = m[1]
		r.kill()
	}
	if !slices.Contains(codes, code) || !fullForm.MatchString(r.log.String()) {
		t.Fatalf("%s, %d pages left: %s, want one of %v:\n%s", p.kind(), free, code, codes, r.tail())
	}
	p.met[code]++
	return true
}

var (
	// waitForm is a line of a log that tells of waiting.
	waitForm = regexp.MustCompile(`(?m)level=ERROR msg=.*: waiting" .* code=([a-z_.]+) .* wait=`)
	fullForm = regexp.MustCompile(`(?i)no space left on device|database or disk is full`)
)

// onSmallDisk makes a patient of which one part is on a small disk.
func onSmallDisk(t *testing.T, kind, what string) (p *patient, dir string) {
	t.Helper()
	dir = smallDisk(t, diskPages)
	p = admit(t, kind, nil, func(j *tablesJob) {
		if what == "tables" {
			j.place = filepath.Join(dir, "tables")
			if err := os.Mkdir(j.place, 0o700); err != nil {
				t.Fatal(err)
			}
		} else {
			j.progress = filepath.Join(dir, "checkpoint")
		}
	})
	return p, dir
}

// whole demands that readers see whole batches: all up to one of the last two that are decided.
func (p *patient) whole(t *testing.T, last int) {
	t.Helper()
	got := len(p.rows(t))
	var possible []int
	for batch := max(0, last-1); batch <= last; batch++ {
		rows, _ := oracleRows(t, p.kind(), someChanges()[:(batch+1)*changeBatch])
		possible = append(possible, len(rows))
	}
	if !slices.Contains(possible, got) {
		t.Errorf("%s: readers see %d rows after batch %d, whole batches have %v", p.kind(), got, last, possible)
	}
}

// TestTablesReadOnly: the tables cannot be written to. The job ends and says so, and goes on when they can.
func TestTablesReadOnly(t *testing.T) {
	for kind, code := range map[string]string{toFiles: "sink.permission", toDelta: "sink.permission", toSQLite: "sql.read_only"} {
		p, dir := onSmallDisk(t, kind, "tables")
		p.run(t)
		p.more(t)
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		p.fails(t, code)
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, ""); err != nil {
			t.Fatal(err)
		}
		p.holds(t, someChanges()[:halfRecords])
		p.run(t)
		p.check(t)
		if t.Failed() {
			t.Fatal(kind)
		}
	}
}
