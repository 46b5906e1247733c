package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/source"
)

func (r *rig) log(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.state, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *rig) writeLog(name, content string) {
	r.t.Helper()
	if err := os.MkdirAll(r.state, 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.state, name), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// logNames lists what is in the state folder.
func (r *rig) logNames() []string {
	r.t.Helper()
	entries, err := os.ReadDir(r.state)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// code returns the code of a fault, and fails when err is none or has no way out.
func code(t *testing.T, err error) string {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("not a fault: %v", err)
	}
	if f.Hint() == "" {
		t.Errorf("no way out: %v", err)
	}
	return f.Code()
}

// hint returns the way out of an error.
func hint(t *testing.T, err error) string {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Fatalf("not a fault: %v", err)
	}
	return f.Hint()
}

// steps plans n batches of one new file each.
func (r *rig) steps(from checkpoint.Position, first, n int) []checkpoint.Position {
	r.t.Helper()
	ends := []checkpoint.Position{from}
	for i := first; i < first+n; i++ {
		r.put(fmt.Sprintf("f-%03d", i), fmt.Sprintf("%d\n", i))
		ends = append(ends, r.latest(ends[len(ends)-1], 0))
	}
	return ends
}

// TestLogText pins what Spark must be able to read.
func TestLogText(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a b%.json", "1\n")
	r.put("ü#.json", "2\n")
	end := r.latest(checkpoint.Position{}, 0)
	same(t, "line", end.Line, `{"logOffset":0}`)
	want := `v1
{"path":"file://DIR/a%20b%25.json","timestamp":1767322985000,"batchId":0,"size":2,"etag":"2ef3a1a12238c2e5","end":{"offset":2,"line":1}}
{"path":"file://DIR/ü%23.json","timestamp":1767322985000,"batchId":0,"size":2,"etag":"83c698766637de45","end":{"offset":2,"line":1}}`
	same(t, "log", strings.ReplaceAll(r.log("0"), r.in, "DIR"), want)
}

// TestSpark goes on from a log that Spark wrote, with its checksum files.
func TestSpark(t *testing.T) {
	r := newRig(t, JSONL)
	var compact strings.Builder
	compact.WriteString("v1")
	for i := range 10 {
		name := fmt.Sprintf("in %03d ü.json", i)
		r.put(name, "old\n")
		fmt.Fprintf(&compact, "\n{\"path\":%q,\"timestamp\":1767400000000,\"batchId\":%d}", "file://"+strings.ReplaceAll(r.in+"/"+name, " ", "%20"), i)
	}
	r.put("x.json", "old\n")
	r.writeLog("9.compact", compact.String())
	r.writeLog("10", "v1\n{\"path\":\"file:"+r.in+"/x.json\",\"timestamp\":1767400010000,\"batchId\":10}")
	r.writeLog(".10.crc", "crc")
	r.writeLog(".11.crc", "crc")
	r.put("y.json", "new\n")
	from := checkpoint.Position{Line: `{"logOffset":10}`}
	to := r.latest(from, 0)
	same(t, "position", to.Line, `{"logOffset":11}`)
	same(t, "records", r.read(from, to), []string{"0:new"})
	same(t, "files", r.logNames(), []string{".10.crc", "10", "11", "9.compact"})

	_, err := r.src.Splits(context.Background(), source.Range{From: checkpoint.Position{Line: "9"}, To: from})
	same(t, "code of reading Spark's own batch", code(t, err), CodeLog)
}

// TestSyncs counts what a batch costs: nothing but the plan is synced, except where the log is compacted.
func TestSyncs(t *testing.T) {
	r := newRig(t, JSONL)
	count := durable.Count(durable.OS())
	r.cfg.Files = count
	r.open()
	var got []string
	at := checkpoint.Position{}
	for i := range 12 {
		before, beforeDir := count.Syncs()
		at = r.steps(at, i, 1)[1]
		after, afterDir := count.Syncs()
		got = append(got, fmt.Sprintf("%d+%d", after-before, afterDir-beforeDir))
	}
	want := slices.Repeat([]string{"0+0"}, 12)
	want[9] = "1+1"
	same(t, "syncs of files + directories", got, want)
	same(t, "files", r.logNames(), []string{"0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9.compact"})
	if n := len(strings.Split(r.log("9.compact"), "\n")); n != 11 {
		t.Errorf("9.compact has %d lines", n)
	}
}

// TestLostLogs takes away, cuts or replaces what was never synced: the position brings it back.
func TestLostLogs(t *testing.T) {
	r := newRig(t, JSONL)
	ends := r.steps(checkpoint.Position{}, 0, 14)
	end := ends[len(ends)-1]
	want := map[string]string{}
	for _, k := range []string{"10", "11", "12", "13"} {
		want[k] = r.log(k)
	}
	if err := os.Remove(filepath.Join(r.state, "11")); err != nil {
		t.Fatal(err)
	}
	r.writeLog("12", "")
	r.writeLog("13", strings.Replace(r.log("13"), "f-013", "f-zzz", 1))
	r.writeLog("14", "v1\n{\"path\":\"file://"+r.in+"/f-014\",\"timestamp\":0,\"batchId\":14}") // of an attempt that was never planned
	r.open()
	same(t, "records from the position alone", r.read(ends[10], end), []string{"0:10", "0:11", "0:12", "0:13"})
	same(t, "nothing is new", r.latest(end, 0), end)
	for k, text := range want {
		same(t, "log "+k, r.log(k), text)
	}
	r.put("f-014", "14\n")
	next := r.latest(end, 0)
	same(t, "records after", r.read(end, next), []string{"0:14"})
}

// TestManyFiles syncs at once what is too much for a position to carry.
func TestManyFiles(t *testing.T) {
	r := newRig(t, JSONL)
	count := durable.Count(durable.OS())
	r.cfg.Files = count
	r.open()
	put := func(from, n int) {
		for i := from; i < from+n; i++ {
			r.put(fmt.Sprintf("f-%03d", i), "1\n")
		}
	}
	put(0, 60)
	first := r.latest(checkpoint.Position{}, 0)
	if files, _ := count.Syncs(); files != 0 || strings.Contains(first.Extra, `"synced":0`) {
		t.Errorf("%d syncs, position %s", files, first.Extra[:40])
	}
	put(60, 5)
	second := r.latest(first, 0)
	if files, dirs := count.Syncs(); files != 2 || dirs != 2 || len(second.Extra) > 200 {
		t.Errorf("%d+%d syncs, position of %d bytes", files, dirs, len(second.Extra))
	}
	r.open()
	same(t, "records", len(r.read(first, second)), 5)
	same(t, "all records", len(r.read(checkpoint.Position{}, first)), 60)
}

func TestTrim(t *testing.T) {
	r := newRig(t, JSONL)
	ends := r.steps(checkpoint.Position{}, 0, 32)
	r.writeLog(".3.crc", "crc")
	if err := r.src.Release(context.Background(), ends[31]); err != nil {
		t.Fatal(err)
	}
	names := r.logNames()
	for _, gone := range []string{"0", "8", "9.compact", "18", ".3.crc"} {
		if slices.Contains(names, gone) {
			t.Errorf("%s is still there", gone)
		}
	}
	for _, kept := range []string{"19.compact", "20", "29.compact", "30", "31"} {
		if !slices.Contains(names, kept) {
			t.Errorf("%s is gone", kept)
		}
	}
	r.open()
	for _, k := range []int{0, 8, 9, 12, 19, 25, 29, 30} {
		same(t, fmt.Sprint("batch ", k), r.read(ends[k], ends[k+1]), []string{fmt.Sprint("0:", k)})
	}
	same(t, "nothing is new", r.latest(ends[32], 0), ends[32])

	// A fork begins anew from an old position, whose logs a newer compacted one holds.
	r.open()
	again := r.latest(ends[6], 0)
	want := []string{}
	for k := 6; k < 32; k++ {
		want = append(want, fmt.Sprint("0:", k))
	}
	same(t, "the fork's records", r.read(ends[6], again), want)
	r.open()
	same(t, "the fork goes on", r.latest(again, 0), again)
}

func TestDamagedLogs(t *testing.T) {
	entry := "\n{\"path\":\"file:///x\",\"timestamp\":0,\"batchId\":0}"
	for name, c := range map[string]struct {
		damage func(r *rig)
		code   string
	}{
		"gone":              {func(r *rig) { _ = os.Remove(filepath.Join(r.state, "9.compact")) }, CodeLog},
		"empty":             {func(r *rig) { r.writeLog("9.compact", "") }, CodeLog},
		"cut":               {func(r *rig) { r.writeLog("9.compact", r.log("9.compact")[:100]) }, CodeLog},
		"newer":             {func(r *rig) { r.writeLog("9.compact", "v2"+entry) }, CodeVersion},
		"no version":        {func(r *rig) { r.writeLog("9.compact", "{}"+entry) }, CodeLog},
		"not a path":        {func(r *rig) { r.writeLog("9.compact", strings.Replace("v1"+entry, "file:///x", "s3://x", 1)) }, CodeLog},
		"a bad escape":      {func(r *rig) { r.writeLog("9.compact", strings.Replace("v1"+entry, "///x", "///%x", 1)) }, CodeLog},
		"negative size":     {func(r *rig) { r.writeLog("9.compact", strings.Replace("v1"+entry, `0}`, `0,"size":-1}`, 1)) }, CodeLog},
		"an endless line":   {func(r *rig) { r.writeLog("9.compact", "v1\n"+strings.Repeat("x", maxLogLine+1)) }, CodeLog},
		"another's entries": {func(r *rig) { r.writeLog("9.compact", strings.Replace(r.log("9.compact"), `f-009`, `f-900`, 1)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, JSONL)
			ends := r.steps(checkpoint.Position{}, 0, 10)
			c.damage(r)
			r.open()
			if _, err := r.src.Splits(context.Background(), source.Range{From: ends[9], To: ends[10]}); err == nil {
				t.Error("a range is read from a damaged log")
			}
			_, err := r.src.Latest(context.Background(), ends[10], source.Limit{})
			if c.code == "" {
				return // the digest in the position serves reading; membership alone cannot tell
			}
			same(t, "code", code(t, err), c.code)
			if !strings.Contains(err.Error(), "9.compact") && !strings.Contains(err.Error(), r.state) {
				t.Errorf("the error does not name the file: %v", err)
			}
		})
	}
}

// TestLogFailures fails each operation on the state folder once: an error, and the next try is as if nothing happened.
func TestLogFailures(t *testing.T) {
	broken := errors.New("the disk is broken")
	for n := 0; ; n++ {
		r := newRig(t, JSONL)
		left, done, armed := n, false, false
		r.cfg.Files = durable.Tap(durable.OS(), func(op, path string) error {
			if !armed || !strings.HasPrefix(path, r.state) {
				return nil
			}
			if left--; left == -1 {
				done = true
				return fmt.Errorf("%s %s: %w", op, path, broken)
			}
			return nil
		})
		r.open()
		at := checkpoint.Position{}
		var got []string
		for i := range 11 {
			r.put(fmt.Sprintf("f-%03d", i), fmt.Sprintf("%d\n", i))
			armed = i >= 8
			to, err := r.src.Latest(context.Background(), at, source.Limit{})
			armed = false
			if err != nil {
				if !errors.Is(err, broken) {
					t.Fatalf("operation %d: %v", n, err)
				}
				to = r.latest(at, 0)
			}
			got = append(got, r.read(at, to)...)
			at = to
		}
		same(t, fmt.Sprint("records with operation ", n, " failing"), len(got), 11)
		if !done {
			if n < 30 {
				t.Errorf("only %d operations were seen", n)
			}
			return
		}
	}
}

// FuzzPosition: any text is a position that reads back the same, or an error.
func FuzzPosition(f *testing.F) {
	r := newRig(f, JSONL)
	r.put("a", "1\n2\n")
	end := r.latest(checkpoint.Position{}, 1)
	f.Add(end.Line, end.Extra)
	f.Add("3", "")
	f.Fuzz(func(t *testing.T, line, extra string) {
		in := checkpoint.Position{Line: line, Extra: extra}
		p, err := parsePosition(in)
		if err != nil || in.IsZero() {
			return
		}
		text, err := p.format()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parsePosition(text)
		if err != nil {
			t.Fatalf("%+v is not read back: %v", text, err)
		}
		twice, err := again.format()
		if err != nil || twice != text {
			t.Fatalf("%+v becomes %+v: %v", text, twice, err)
		}
	})
}

func TestReadOnly(t *testing.T) {
	r := newRig(t, JSONL)
	r.cfg.ReadOnly = true
	r.open()
	for i := range 70 {
		r.put(fmt.Sprintf("f-%03d", i), "1\n")
	}
	end := r.latest(checkpoint.Position{}, 0)
	same(t, "records", len(r.read(checkpoint.Position{}, end)), 70)
	same(t, "nothing is new", r.latest(end, 0), end)
	if _, err := os.Stat(r.state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state folder was touched: %v", err)
	}
}

func TestBadPositions(t *testing.T) {
	r := newRig(t, JSONL)
	file := `{"path":"file:///x","size":1,"etag":"e","batchId":%d}`
	for name, c := range map[string]struct {
		p    checkpoint.Position
		code string
	}{
		"not JSON":        {checkpoint.Position{Line: "x"}, CodePosition},
		"no offset":       {checkpoint.Position{Line: "{}"}, CodePosition},
		"negative":        {checkpoint.Position{Line: `{"logOffset":-2}`}, CodePosition},
		"extra not JSON":  {checkpoint.Position{Line: "0", Extra: "x"}, CodePosition},
		"newer":           {checkpoint.Position{Line: "0", Extra: `{"v":3}`}, CodeVersion},
		"synced beyond":   {checkpoint.Position{Line: "0", Extra: `{"v":1,"synced":1}`}, CodePosition},
		"tail synced":     {checkpoint.Position{Line: "1", Extra: `{"v":1,"synced":0,"tail":[` + fmt.Sprintf(file, 0) + `]}`}, CodePosition},
		"tail disordered": {checkpoint.Position{Line: "2", Extra: `{"v":1,"synced":-1,"tail":[` + fmt.Sprintf(file, 1) + `,` + fmt.Sprintf(file, 0) + `]}`}, CodePosition},
		"relative base":   {checkpoint.Position{Line: "0", Extra: `{"v":1,"synced":0,"base":"in"}`}, CodePosition},
		"negative place":  {checkpoint.Position{Line: "0", Extra: `{"v":1,"synced":0,"at":{"file":` + fmt.Sprintf(file, 0) + `,"offset":-1}}`}, CodePosition},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.src.Latest(context.Background(), c.p, source.Limit{})
			same(t, "code", code(t, err), c.code)
		})
	}
	backwards := `{"v":2,"synced":-1,"tail":[{"path":"file:///x","size":1,"etag":"e","batchId":0,"end":{"offset":1,"line":1},"begin":{"offset":2,"line":1}}]}`
	_, err := r.src.Splits(context.Background(), source.Range{To: checkpoint.Position{Line: "0", Extra: backwards}})
	same(t, "code of an entry that ends before it begins", code(t, err), CodeLog)
	cut := checkpoint.Position{Line: "0", Extra: `{"v":1,"synced":0,"at":{"file":` + fmt.Sprintf(file, 0) + `,"offset":5,"line":1}}`}
	for name, to := range map[string]checkpoint.Position{
		"backwards":   {Line: "0", Extra: strings.Replace(cut.Extra, `"offset":5`, `"offset":4`, 1)},
		"without end": {Line: "0", Extra: `{"v":1,"synced":0}`},
	} {
		_, err := r.src.Splits(context.Background(), source.Range{From: cut, To: to})
		same(t, "code of a range "+name, code(t, err), CodePosition)
	}
}
