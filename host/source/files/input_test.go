package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/source"
)

// readAfter plans one file, changes it, and reads what was planned in a new instance.
func readAfter(t *testing.T, format Format, name, content string, change func(r *rig, path string)) ([]string, error) {
	t.Helper()
	r := newRig(t, format)
	path := r.put(name, content)
	to := r.latest(checkpoint.Position{}, 0)
	change(r, path)
	r.open()
	splits, err := r.src.Splits(context.Background(), source.Range{To: to})
	if err != nil {
		return nil, err
	}
	var g got
	for _, s := range splits {
		if err := r.src.Read(context.Background(), s, &g); err != nil {
			return nil, err
		}
	}
	return g.lines, nil
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestChangedAfterPlanning: whatever happens to a planned file, it reads as planned or fails by name.
func TestChangedAfterPlanning(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *rig, path string)
		want   []string
	}{
		"vanished":            {func(_ *rig, path string) { _ = os.Remove(path) }, nil},
		"shrank":              {func(r *rig, path string) { write(r.t, path, []byte("1\n2\n")) }, nil},
		"replaced, same size": {func(r *rig, path string) { write(r.t, path, []byte("1\n2\n4\n")) }, nil},
		"became a directory":  {func(r *rig, path string) { _ = os.Remove(path); _ = os.Mkdir(path, 0o755) }, nil},
		"grew":                {func(r *rig, path string) { write(r.t, path, []byte("1\n2\n3\n4\n")) }, []string{"0:1", "1:2", "2:3"}},
		"touched":             {func(r *rig, path string) { r.age(path, time.Hour) }, []string{"0:1", "1:2", "2:3"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []Format{Lines, JSONL} {
				lines, err := readAfter(t, format, "a", "1\n2\n3\n", c.change)
				if c.want != nil {
					if err != nil {
						t.Fatal(err)
					}
					same(t, "records", lines, c.want)
					continue
				}
				if name == "became a directory" {
					same(t, "code", code(t, err), CodeUnreadable)
					continue
				}
				same(t, "code", code(t, err), CodeChanged)
				var changed *source.ChangedError
				if !errors.As(err, &changed) || !strings.HasSuffix(changed.Split, "/a") {
					t.Errorf("not a ChangedError of the file: %v", err)
				}
			}
		})
	}
}

func TestChangedPacked(t *testing.T) {
	content := packed(bytes.Repeat([]byte("{\"n\":1}\n"), 5000))
	_, err := readAfter(t, JSONL, "a.gz", string(content), func(r *rig, path string) {
		write(t, path, content[:len(content)-9])
	})
	same(t, "code of a gzip file cut after planning", code(t, err), CodeChanged)
	lines, err := readAfter(t, JSONL, "a.gz", string(content), func(r *rig, path string) {
		write(t, path, append(bytes.Clone(content), packed([]byte("more\n"))...))
	})
	if err != nil || len(lines) != 5000 {
		t.Errorf("a gzip file that grew after planning: %d records, %v", len(lines), err)
	}
}

// TestGrownAfterReading: appended data is never lost in silence.
func TestGrownAfterReading(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a", "1\n")
	end := r.latest(checkpoint.Position{}, 0)
	r.put("a", "1\n2\n")
	r.now = r.now.Add(time.Minute) // the listing is made anew
	_, err := r.src.Latest(context.Background(), end, source.Limit{})
	same(t, "code", code(t, err), CodeChanged)

	r.cfg.SkipLost = true
	r.open()
	r.put("b", "3\n")
	next := r.latest(end, 0)
	same(t, "records", r.read(end, next), []string{"0:3"})
	r.now = r.now.Add(time.Minute)
	same(t, "nothing is new", r.latest(next, 0), next)
	same(t, "what is left out", r.left(), []string{"a: -1 records, 2 bytes"})

	r.cfg.SkipLost = false
	r.open()
	same(t, "nothing is new for one who must not skip", r.latest(next, 0), next)
}

// TestChangedInTheMiddle: a file that was cut by a batch and then replaced.
func TestChangedInTheMiddle(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a", "1\n2\n3\n")
	r.put("b", "4\n")
	end := r.latest(checkpoint.Position{}, 1)
	r.put("a", "x\ny\nz\n")
	_, err := r.src.Latest(context.Background(), end, source.Limit{})
	same(t, "code", code(t, err), CodeChanged)
	r.cfg.SkipLost = true
	r.open()
	next := r.latest(end, 0)
	same(t, "records", r.read(end, next), []string{"0:4"})
	same(t, "what is left out", r.left(), []string{"a: 2 records, 4 bytes"})
}

func TestBrokenPacked(t *testing.T) {
	whole := packed(bytes.Repeat([]byte("some text and more\n"), 50_000))
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 0x55
	for name, c := range map[string]struct {
		file    string
		content []byte
		code    string
	}{
		"gzip cut in the body":    {"b.gz", whole[:len(whole)/2], CodeTruncated},
		"gzip cut in the trailer": {"b.gz", whole[:len(whole)-4], CodeTruncated},
		"gzip cut in the header":  {"b.gz", whole[:5], CodeTruncated},
		"gzip damaged":            {"b.gz", flipped, CodeCorrupt},
		"gzip with more behind":   {"b.gz", append(bytes.Clone(whole), "garbage of more than a header"...), CodeCorrupt},
		"text named .gz":          {"b.gz", []byte("no gzip at all, but text"), CodeCorrupt},
		"text named .zst":         {"b.zst", []byte("no zstd at all, but text"), CodeCorrupt},
		"zstd cut":                {"b.zst", zstdPacked(whole)[:100], CodeTruncated},
		"gzip without its ending": {"b", whole[:len(whole)-4], CodeTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Lines)
			r.put("a", "1\n")
			r.put(c.file, string(c.content))
			end := r.latest(checkpoint.Position{}, 0)
			same(t, "records before it", r.read(checkpoint.Position{}, end), []string{"0:1"})
			_, err := r.src.Latest(context.Background(), end, source.Limit{})
			same(t, "code", code(t, err), c.code)
			if !strings.Contains(err.Error(), c.file) {
				t.Errorf("the error does not name the file: %v", err)
			}
		})
	}
}

// TestBehindGzip: what follows a gzip file is named for what it is, however long it is.
func TestBehindGzip(t *testing.T) {
	whole := packed([]byte("1\n"))
	for name, c := range map[string]struct{ behind, code, words string }{
		"a byte":              {"x", CodeCorrupt, "no gzip"},
		"a line end":          {"\r\n", CodeCorrupt, "no gzip"},
		"less than a header":  {"garbage", CodeCorrupt, "no gzip"},
		"more than a header":  {"garbage of more than a header", CodeCorrupt, "no gzip"},
		"zeros":               {strings.Repeat("\x00", 512), CodeCorrupt, "no gzip"},
		"one byte of a magic": {"\x1f", CodeTruncated, "ends too early"},
		"a magic":             {"\x1f\x8b", CodeTruncated, "ends too early"},
		"half a member":       {string(whole[:len(whole)-3]), CodeTruncated, "ends too early"},
	} {
		r := newRig(t, Lines)
		r.put("b.gz", string(whole)+c.behind)
		_, err := r.src.Latest(context.Background(), checkpoint.Position{}, source.Limit{})
		if got := code(t, err); got != c.code || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want code %s", name, err, c.code)
		}
	}
}

func TestPackedByContentOrName(t *testing.T) {
	for name, content := range map[string]string{
		"a.gz": string(packed([]byte("1\n"))), "a": string(packed([]byte("1\n"))), "a.txt": "1\n",
		"a.zst": string(zstdPacked([]byte("1\n"))), "a.log": string(zstdPacked([]byte("1\n"))),
		"two members.gz": string(packed([]byte("1"))) + string(packed([]byte("\n"))),
	} {
		r := newRig(t, Lines)
		r.put(name, content)
		end := r.latest(checkpoint.Position{}, 0)
		same(t, name, r.read(checkpoint.Position{}, end), []string{"0:1"})
	}
}

// TestLongLine: a line of 20 MB among others is set aside, wherever its ends lie in blocks and splits.
func TestLongLine(t *testing.T) {
	long := strings.Repeat("x", 20<<20)
	for _, format := range []Format{Lines, JSONL, CSV} {
		for _, limit := range []source.Limit{{}, {Records: 1}, {Bytes: 1 << 20}} {
			r := newRig(t, format)
			r.cfg.CSV.NoHeader, r.cfg.CSV.Columns = true, []string{"c"}
			r.open()
			r.put("a", "1\n"+long+"\n2\n"+long+"\r\n3")
			var at checkpoint.Position
			var lines []string
			for {
				to, err := r.src.Latest(context.Background(), at, limit)
				if err != nil {
					t.Fatal(err)
				}
				if to == at {
					break
				}
				lines = append(lines, r.read(at, to)...)
				at = to
			}
			want := []string{"0:1", "1!too_large", "2:2", "3!too_large", "4:3"}
			if format == CSV {
				want = []string{`0:{"c":"1"}`, "1!too_large", `2:{"c":"2"}`, "3!too_large", `4:{"c":"3"}`}
			}
			same(t, fmt.Sprint(format, limit), lines, want)
		}
	}
}

func TestMaxLineIsExact(t *testing.T) {
	r := newRig(t, Lines)
	r.cfg.MaxLine = 4
	r.open()
	r.put("a", "1234\n12345\n1234")
	end := r.latest(checkpoint.Position{}, 0)
	same(t, "records", r.read(checkpoint.Position{}, end), []string{"0:1234", "1!too_large", "2:1234"})
}

func TestSettling(t *testing.T) {
	r := newRig(t, JSONL)
	fresh := r.put("fresh", "1\n")
	r.put("old", "2\n")
	future := r.put("zfuture", "3\n")
	r.age(fresh, 500*time.Millisecond)
	r.age(future, -time.Hour)
	r.put("empty", "")
	var zero checkpoint.Position
	first := r.latest(zero, 0)
	same(t, "the file left alone", r.read(zero, first), []string{"0:2"})
	r.now = r.now.Add(400 * time.Millisecond)
	same(t, "too early", r.latest(first, 0), first)
	r.now = r.now.Add(100 * time.Millisecond)
	second := r.latest(first, 0)
	same(t, "a second after it was written", r.read(first, second), []string{"0:1"})
	r.now = r.now.Add(500 * time.Millisecond)
	third := r.latest(second, 0)
	same(t, "a second after it was first seen", r.read(second, third), []string{"0:3"})
	r.put("empty", "4\n")
	r.now = r.now.Add(time.Minute)
	fourth := r.latest(third, 0)
	same(t, "no more empty", r.read(third, fourth), []string{"0:4"})
}

func TestFrozen(t *testing.T) {
	r := newRig(t, JSONL)
	path := r.put("a", "1\n")
	r.age(path, 0)
	if err := r.src.Freeze(context.Background()); err != nil {
		t.Fatal(err)
	}
	write(t, path, []byte("1\n2\n"))
	r.put("b", "3\n")
	var zero checkpoint.Position
	end := r.latest(zero, 0)
	same(t, "unsettled, at its size of then", r.read(zero, end), []string{"0:1"})
	same(t, "nothing is new", r.latest(end, 0), end)
}

// TestEnded walks a frozen input: only its very end is one, also for a new process.
func TestEnded(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a", "1\n2\n")
	r.put("b", "3\n4\n")
	freeze := func() {
		if err := r.src.Freeze(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	var at checkpoint.Position
	same(t, "an input that is not frozen", r.src.Ended(r.latest(at, 0)), false)
	r.open()
	freeze()
	for _, last := range []bool{false, false, false, true, true} {
		at = r.latest(at, 1)
		same(t, "the end", r.src.Ended(at), last)
	}
	same(t, "the beginning", r.src.Ended(checkpoint.Position{}), false)
	r.open()
	freeze()
	same(t, "before anything is known", r.src.Ended(at), false)
	same(t, "nothing is new", r.latest(at, 0), at)
	same(t, "the end in a new process", r.src.Ended(at), true)
	r.put("c", "5\n")
	freeze()
	same(t, "more in a further run", r.src.Ended(at), false)
}

func TestUnreadable(t *testing.T) {
	denied := func(suffix string) durable.Files {
		return durable.Tap(durable.OS(), func(op, path string) error {
			if op == "open:before" && strings.HasSuffix(path, suffix) || op == "list:before" && strings.HasSuffix(path, suffix) {
				return &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
			}
			return nil
		})
	}
	for _, suffix := range []string{"/in", "/in/a"} {
		r := newRig(t, JSONL)
		r.put("a", "1\n")
		r.cfg.Files = denied(suffix)
		r.open()
		_, err := r.src.Latest(context.Background(), checkpoint.Position{}, source.Limit{})
		same(t, "code", code(t, err), CodeUnreadable)
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), suffix) {
			t.Errorf("permission denied: %v", err)
		}
	}
	r := newRig(t, JSONL)
	r.cfg.Path = filepath.Join(r.in, "nowhere")
	r.open()
	_, err := r.src.Latest(context.Background(), checkpoint.Position{}, source.Limit{})
	same(t, "code of a missing directory", code(t, err), CodeMissing)
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no path":            func(c *Config) { c.Path = "" },
		"unknown format":     func(c *Config) { c.Format = "avro" },
		"unknown packing":    func(c *Config) { c.Compression = "lzma" },
		"packed parquet":     func(c *Config) { c.Format, c.Compression = Parquet, Gzip },
		"attach a topic":     func(c *Config) { c.Attach = []string{"topic"} },
		"quote as separator": func(c *Config) { c.CSV.Comma = '"' },
		"braces":             func(c *Config) { c.Path = "/x/{a,b}*" },
		"not a pattern":      func(c *Config) { c.Path = "/x/[a" },
	} {
		cfg := Config{Name: "in", Path: "/x", Format: Lines, Files: durable.OS()}
		change(&cfg)
		_, err := New(cfg)
		if err == nil {
			t.Errorf("%s is taken", name)
			continue
		}
		same(t, name, code(t, err), CodeConfig)
	}
}

// crowd is a directory of many files of one record each, with its calls counted.
type crowd struct {
	durable.Files
	n            int
	lists, opens int
}

type crowdFile struct {
	*bytes.Reader
	info durable.Info
}

func (crowdFile) Write([]byte) (int, error)     { return 0, fs.ErrPermission }
func (crowdFile) Sync() error                   { return nil }
func (crowdFile) Close() error                  { return nil }
func (f crowdFile) Stat() (durable.Info, error) { return f.info, nil }
func (c *crowd) Stat(name string) (durable.Info, error) {
	if name == "/crowd" {
		return durable.Info{Name: "crowd", Dir: true, ModTime: epoch.Add(-time.Hour)}, nil
	}
	return c.Files.Stat(name)
}

func (c *crowd) info(name string) durable.Info {
	return durable.Info{Name: name, Size: 9, ModTime: epoch.Add(-time.Hour), Regular: true}
}

func (c *crowd) List(name string) ([]durable.Info, error) {
	if name != "/crowd" {
		return c.Files.List(name)
	}
	c.lists++
	out := make([]durable.Info, 0, c.n)
	for i := range c.n {
		out = append(out, c.info(fmt.Sprintf("f-%07d", i)))
	}
	return out, nil
}

func (c *crowd) Open(name string) (durable.File, error) {
	if !strings.HasPrefix(name, "/crowd/") {
		return c.Files.Open(name)
	}
	c.opens++
	base := filepath.Base(name)
	return crowdFile{bytes.NewReader([]byte(base[1:] + "\n")), c.info(base)}, nil
}

var _ io.ReaderAt = crowdFile{}

// TestManyFilesInDirectory: 100,000 files are listed once, and each is opened once to plan it.
func TestManyFilesInDirectory(t *testing.T) {
	const n = 100_000
	r := newRig(t, Lines)
	c := &crowd{Files: durable.OS(), n: n}
	r.cfg.Path, r.cfg.Files = "/crowd", c
	r.open()
	at := checkpoint.Position{}
	batches := 0
	for {
		to := r.latest(at, 0)
		if to == at {
			break
		}
		at = to
		batches++
	}
	if c.lists != 1 || c.opens != n || batches != n/maxFiles {
		t.Errorf("%d listings, %d files opened, %d batches", c.lists, c.opens, batches)
	}
	r.open()
	same(t, "nothing is new after a restart", r.latest(at, 0), at)
	if c.opens != n {
		t.Errorf("%d files opened", c.opens)
	}
	if len(at.Extra) > 1000 {
		t.Errorf("a position of %d bytes", len(at.Extra))
	}
}
