package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// left lists what the source said that it leaves out.
func (r *rig) left() []string {
	var out []string
	for _, err := range r.warn {
		if l, ok := errors.AsType[*source.LeftOutError](err); ok {
			out = append(out, fmt.Sprintf("%s: %d records, %d bytes", filepath.Base(l.Split), l.Records, l.Bytes))
		}
	}
	return out
}

// skipping makes the source one that takes changed files as they are, or one that does not.
func (r *rig) skipping(skip bool) {
	r.cfg.SkipLost, r.warn = skip, nil
	r.open()
}

func numbered(from, to int) (out []string) {
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("row %d", i))
	}
	return out
}

// form is how rows are laid out in a file.
type form struct {
	format Format
	name   string
	file   func(t testing.TB, rows []string) string
	value  func(row string) string
}

func forms() map[string]form {
	text := func(rows []string) []byte { return []byte(strings.Join(rows, "\n") + "\n") }
	object := func(row string) string { return `{"v":"` + row + `"}` }
	type parquetRow struct {
		V string `parquet:"v"`
	}
	return map[string]form{
		"lines":  {Lines, "a", func(_ testing.TB, rows []string) string { return string(text(rows)) }, strings.Clone},
		"gzip":   {JSONL, "a.gz", func(_ testing.TB, rows []string) string { return string(packed(text(rows))) }, strings.Clone},
		"zstd":   {JSONL, "a.zst", func(_ testing.TB, rows []string) string { return string(zstdPacked(text(rows))) }, strings.Clone},
		"csv":    {CSV, "a.csv", func(_ testing.TB, rows []string) string { return "v\n" + string(text(rows)) }, object},
		"csv.gz": {CSV, "a.csv.gz", func(_ testing.TB, rows []string) string { return string(packed(append([]byte("v\n"), text(rows)...))) }, object},
		"parquet": {Parquet, "a.parquet", func(t testing.TB, rows []string) string {
			var all []parquetRow
			for _, row := range rows {
				all = append(all, parquetRow{row})
			}
			return parquetFile(t, all...)
		}, object},
	}
}

func (f *form) want(from int, rows []string) (out []string) {
	for i, row := range rows {
		out = append(out, fmt.Sprintf("%d:%s", from+i, f.value(row)))
	}
	return out
}

// TestMended takes up a file that changed after some of it was read, in every format: before reading the rest was planned,
// and after.
func TestMended(t *testing.T) {
	mended := append(append(numbered(0, 3), "row 4 mended"), numbered(5, 7)...)
	for name, c := range map[string]struct {
		now  []string // nil: gone
		read []string // of what comes after three rows
		left string
		way  string
		gone bool // a later file of that name is another one
	}{
		"the rest is mended":    {now: mended, read: mended[3:], way: "is as it was, and its rest is then read as it is now"},
		"the rest is longer":    {now: append(slices.Clone(mended), numbered(8, 20)...), read: append(slices.Clone(mended[3:]), numbered(8, 20)...), way: "is as it was, and its rest is then read"},
		"the rest is shorter":   {now: mended[:5], read: mended[3:5], way: "is as it was, and its rest is then read"},
		"the rest is cut off":   {now: mended[:3], way: "is as it was, and its rest is then read"},
		"what was read differs": {now: append([]string{"row 0 mended"}, mended[1:]...), left: "5 records", way: "is not as it was, so that its rest is then LEFT OUT (5 "},
		"it is shorter":         {now: mended[:2], left: "0 records", way: "is not as it was, so that its rest is then LEFT OUT (0 "},
		"it is gone":            {left: "-1 records", way: "is then LEFT OUT (", gone: true},
	} {
		for kind, f := range forms() {
			for _, planned := range []bool{false, true} {
				t.Run(fmt.Sprint(name, "/", kind, "/planned ", planned), func(t *testing.T) {
					r := newRig(t, f.format)
					r.put(f.name, f.file(t, numbered(0, 7)))
					at := r.latest(checkpoint.Position{}, 3)
					same(t, "before", r.read(checkpoint.Position{}, at), f.want(0, numbered(0, 2)))
					was := at
					if planned {
						was = r.latest(at, 3)
					}
					if c.now == nil {
						if err := os.Remove(filepath.Join(r.in, f.name)); err != nil {
							t.Fatal(err)
						}
					} else {
						r.put(f.name, f.file(t, c.now))
					}
					r.now = r.now.Add(time.Hour)

					want, left, way := c.read, c.left, c.way
					if f.format == Parquet && c.now != nil {
						want, left, way = nil, fmt.Sprint(max(0, len(c.now)-3), " records"), "is not known to be as it was, so that its rest is then LEFT OUT"
					}
					r.open()
					err := r.fails(at, was)
					same(t, "code", code(t, err), CodeChanged)
					if !strings.Contains(hint(t, err), way) {
						t.Errorf("way out: %s", hint(t, err))
					}

					r.skipping(true)
					if planned {
						r.src.Review(context.Background(), source.Range{From: at, To: was})
					}
					var got []string
					next := at
					for range 10 {
						to := r.latest(next, 2)
						got = append(got, r.read(next, to)...)
						next = to
					}
					same(t, "the rest", got, f.want(3, want))
					if lost := r.left(); left == "" && lost != nil || left != "" && (len(lost) == 0 || !strings.HasPrefix(lost[0], f.name+": "+left)) {
						t.Errorf("left out: %q, want %s", lost, left)
					}
					same(t, "warnings", len(r.warn), 1)

					// From here on it needs no word.
					r.skipping(false)
					r.now = r.now.Add(time.Hour)
					same(t, "nothing is new", r.latest(next, 0), next)
					r.put("z"+f.name, f.file(t, []string{"later"}))
					r.now = r.now.Add(time.Hour)
					same(t, "what comes later", r.read(next, r.latest(next, 0)), f.want(0, []string{"later"}))
				})
			}
		}
	}
}

// fails returns the error of planning on from at, or of reading what was planned.
func (r *rig) fails(at, planned checkpoint.Position) error {
	r.t.Helper()
	if at == planned {
		_, err := r.src.Latest(context.Background(), at, source.Limit{})
		return err
	}
	splits, err := r.src.Splits(context.Background(), source.Range{From: at, To: planned})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range splits {
		if err := r.src.Read(context.Background(), s, &got{}); err != nil {
			return err
		}
	}
	return nil
}

// TestMendedFromTheStart: a file that the failing batch begins with is read anew as it is.
func TestMendedFromTheStart(t *testing.T) {
	for kind, f := range forms() {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, f.format)
			r.put(f.name, f.file(t, numbered(0, 7)))
			was := r.latest(checkpoint.Position{}, 3)
			r.put(f.name, f.file(t, numbered(10, 14)))
			r.open()
			err := r.fails(checkpoint.Position{}, was)
			if !strings.Contains(hint(t, err), "it is then read from its beginning, as it is now") {
				t.Errorf("way out: %s", hint(t, err))
			}
			r.skipping(true)
			to := r.latest(checkpoint.Position{}, 0)
			same(t, "records", r.read(checkpoint.Position{}, to), f.want(0, numbered(10, 14)))
			same(t, "left out", r.left(), []string(nil))
			r.skipping(false)
			same(t, "nothing is new", r.latest(to, 0), to)
		})
	}
}

// TestMendedAgain: a file that is taken up twice, each time behind what was read of it by then.
func TestMendedAgain(t *testing.T) {
	r := newRig(t, JSONL)
	text := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	r.put("a", text("1", "2", "3", "4", "5", "6"))
	one := r.latest(checkpoint.Position{}, 2)
	r.put("a", text("1", "2", "three", "4", "5", "6"))
	r.skipping(true)
	two := r.latest(one, 1)
	same(t, "second", r.read(one, two), []string{"2:three"})
	r.put("a", text("1", "2", "three", "four", "5"))
	r.open()
	three := r.latest(two, 1)
	same(t, "third", r.read(two, three), []string{"3:four"})
	r.skipping(false)
	four := r.latest(three, 0)
	same(t, "fourth", r.read(three, four), []string{"4:5"})
	same(t, "version of a position with such entries", r.src.seen.pos.version(), 2)
	same(t, "nothing is new", r.latest(four, 0), four)
}

// TestMendedBetweenItsEnds: a change far from both ends of a large file leaves its etag as it was.
func TestMendedBetweenItsEnds(t *testing.T) {
	for kind, f := range forms() {
		if f.format == Parquet {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			all := numbered(0, 5000)
			r := newRig(t, f.format)
			r.put(f.name, f.file(t, all))
			at := r.latest(checkpoint.Position{}, 2000)
			was := r.latest(at, 1000)
			all[2500] = "a longer one"
			r.put(f.name, f.file(t, all))
			r.skipping(true)
			r.src.Review(context.Background(), source.Range{From: at, To: was})
			var got []string
			for range 5 {
				to := r.latest(at, 1000)
				got = append(got, r.read(at, to)...)
				at = to
			}
			same(t, "the rest", got, f.want(2000, all[2000:]))
			same(t, "left out", r.left(), []string(nil))
		})
	}
}

// TestMendedWithoutDigest: a checkpoint that does not say what was read before a cut gets no rest of a changed file.
func TestMendedWithoutDigest(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a", "1\n2\n3\n")
	at := r.latest(checkpoint.Position{}, 1)
	i := strings.LastIndex(at.Extra, `,"sum":"`)
	at.Extra = at.Extra[:i] + at.Extra[i+len(`,"sum":"01234567"`):]
	r.open()
	to := r.latest(at, 1)
	same(t, "unchanged", r.read(at, to), []string{"1:2"})
	r.put("a", "1\n2\n33\n")
	r.open()
	_, err := r.src.Latest(context.Background(), to, source.Limit{})
	if !strings.Contains(hint(t, err), "is not known to be as it was, so that its rest is then LEFT OUT (1 line, 3 bytes)") {
		t.Errorf("way out: %s", hint(t, err))
	}
	r.skipping(true)
	next := r.latest(to, 0)
	same(t, "records", r.read(to, next), []string(nil))
	same(t, "left out", r.left(), []string{"a: 1 records, 3 bytes"})
}

// TestMendedRestIsBroken: what cannot be decoded is left out by name.
func TestMendedRestIsBroken(t *testing.T) {
	r := newRig(t, JSONL)
	text := []byte(strings.Repeat("some line of text\n", 200_000))
	whole := packed(text)
	r.put("a.gz", string(whole))
	at := r.latest(checkpoint.Position{}, 1000)
	broken := slices.Clone(whole)
	broken = broken[:len(broken)-20]
	r.put("a.gz", string(broken))
	r.skipping(true)
	to := r.latest(at, 0)
	same(t, "records", r.read(at, to), []string(nil))
	same(t, "left out", r.left(), []string{"a.gz: -1 records, -1 bytes"})
	r.skipping(false)
	same(t, "nothing is new", r.latest(to, 0), to)
}

// TestMendedNotSettled waits for a file that is being written.
func TestMendedNotSettled(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a", "1\n2\n3\n")
	at := r.latest(checkpoint.Position{}, 1)
	path := r.put("a", "1\n2\n")
	r.age(path, 0)
	r.skipping(true)
	same(t, "not settled", r.latest(at, 0), at)
	r.now = r.now.Add(DefaultSettle)
	same(t, "settled", r.read(at, r.latest(at, 0)), []string{"1:2"})
}

// TestGoneFiles names each file of a planned range that is gone, once.
func TestGoneFiles(t *testing.T) {
	r := newRig(t, JSONL)
	for _, name := range []string{"a", "b", "c"} {
		r.put(name, "1\n2\n")
	}
	to := r.latest(checkpoint.Position{}, 0)
	for _, name := range []string{"a", "c"} {
		if err := os.Remove(filepath.Join(r.in, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.skipping(true)
	for range 2 {
		r.src.Review(context.Background(), source.Range{To: to})
	}
	same(t, "left out", r.left(), []string{"a: 2 records, 4 bytes", "c: 2 records, 4 bytes"})
}

// TestShrankAfterReading: a file that was read whole may become shorter, once somebody says so.
func TestShrankAfterReading(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a", "1\n2\n")
	end := r.latest(checkpoint.Position{}, 0)
	r.put("a", "1\n")
	r.open()
	_, err := r.src.Latest(context.Background(), end, source.Limit{})
	if !strings.Contains(hint(t, err), "nothing of it is read again") {
		t.Errorf("way out: %s", hint(t, err))
	}
	r.skipping(true)
	to := r.latest(end, 0)
	same(t, "records", r.read(end, to), []string(nil))
	same(t, "left out", r.left(), []string(nil))
	same(t, "words", len(r.warn), 1)
	r.skipping(false)
	same(t, "nothing is new", r.latest(to, 0), to)
}

// TestShrankSinceTheJobBegan: a frozen input takes what is left of a file, where that may be.
func TestShrankSinceTheJobBegan(t *testing.T) {
	for _, skip := range []bool{false, true} {
		r := newRig(t, JSONL)
		r.put("a", "1\n2\n3\n")
		r.skipping(skip)
		if err := r.src.Freeze(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.put("a", "1\n2\n")
		to, err := r.src.Latest(context.Background(), checkpoint.Position{}, source.Limit{})
		if !skip {
			same(t, "code", code(t, err), CodeChanged)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		same(t, "records", r.read(checkpoint.Position{}, to), []string{"0:1", "1:2"})
	}
}

// TestMendedAnywhere: whatever is read of a file before it is mended, its rest comes as it is afterwards, and nothing twice.
func TestMendedAnywhere(t *testing.T) {
	r := newRig(t, Lines)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		content := drawContent(t)
		name := fmt.Sprintf("%d", n)
		pack := func(b []byte) []byte { return b }
		if rapid.Bool().Draw(t, "packed") {
			pack = packed
		}
		r.in = filepath.Join(filepath.Dir(r.in), name)
		r.cfg.Path, r.cfg.State = r.in, filepath.Join(filepath.Dir(r.in), "sources", name)
		r.skipping(false)
		r.put("a", string(pack(append(content, "\nmore\n"...))))
		content = append(content, "\nmore\n"...)
		at := r.latest(checkpoint.Position{}, int64(rapid.IntRange(1, 10).Draw(t, "records")))
		head := r.read(checkpoint.Position{}, at)
		pos, err := parsePosition(at)
		if err != nil {
			t.Fatal(err)
		}
		if pos.At == nil {
			return
		}
		now := append(slices.Clone(content[:pos.At.Off]), rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n")), 0, 50).Draw(t, "rest")...)
		r.put("a", string(pack(now)))
		r.skipping(true)
		var tail []string
		for range 100 {
			to := r.latest(at, int64(rapid.IntRange(1, 5).Draw(t, "more")))
			if to == at {
				break
			}
			tail = append(tail, r.read(at, to)...)
			at = to
		}
		if got, want := append(head, tail...), wantLines(now); !slices.Equal(got, want) {
			t.Fatalf("%d records, want %d: %.300q, want %.300q", len(got), len(want), got, want)
		}
		if bytes.Equal(now, content) {
			return
		}
		if r.left() != nil {
			t.Fatalf("left out: %v", r.left())
		}
	})
}
