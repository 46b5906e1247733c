package files

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/source"
)

// wantLines is the rule for lines, written plainly.
func wantLines(content []byte) []string {
	var out []string
	content = bytes.TrimPrefix(content, bom)
	n := 0
	for len(content) > 0 {
		line, rest, _ := bytes.Cut(content, newline)
		content = rest
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) > 0 {
			out = append(out, fmt.Sprintf("%d:%s", n, line))
		}
		n++
	}
	return out
}

// drawContent draws lines of which some end near the borders of blocks.
func drawContent(t *rapid.T) []byte {
	var b bytes.Buffer
	if rapid.Bool().Draw(t, "bom") {
		b.Write(bom)
	}
	for range rapid.IntRange(0, 30).Draw(t, "lines") {
		n := rapid.SampledFrom([]int{0, 0, 1, 2, 100, 3000, blockSize - 1, blockSize, blockSize + 1, 3 * blockSize}).Draw(t, "length")
		b.Write(bytes.Repeat([]byte{'a' + byte(n%7)}, n))
		b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "end"))
		if free := blockSize - b.Len()%blockSize; free < 4000 && rapid.Bool().Draw(t, "fill") {
			b.Write(bytes.Repeat([]byte{'f'}, free-1))
			b.WriteByte('\n')
		}
	}
	if rapid.Bool().Draw(t, "open end") {
		b.WriteString("end")
	}
	return b.Bytes()
}

// TestAnyBatches reads any content in any batches, plain and packed, warm and cold: always the same lines.
func TestAnyBatches(t *testing.T) {
	r := newRig(t, Lines)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		content := drawContent(t)
		if len(content) == 0 {
			return
		}
		pack := rapid.Bool().Draw(t, "packed")
		limit := source.Limit{
			Records: rapid.SampledFrom([]int64{0, 1, 2, 7}).Draw(t, "records"),
			Bytes:   rapid.SampledFrom([]int64{0, 1, 5000, blockSize, blockSize + 1}).Draw(t, "bytes"),
		}
		n++
		r.cfg.Path = fmt.Sprintf("%s/%d", r.in, n)
		r.cfg.ReadOnly = true
		file := content
		if pack {
			file = packed(content)
		}
		r.put(fmt.Sprintf("%d/a", n), string(file))
		r.open()
		var at checkpoint.Position
		var got []string
		for {
			to, err := r.src.Latest(context.Background(), at, limit)
			if err != nil {
				t.Fatal(err)
			}
			if to == at {
				break
			}
			batch := r.read(at, to)
			if limit.Records > 0 && len(batch) > int(limit.Records) {
				t.Fatalf("%d records in a batch of at most %d", len(batch), limit.Records)
			}
			if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
				r.open()
				if cold := r.read(at, to); !slices.Equal(cold, batch) {
					t.Fatalf("read again in a new instance: %d records, first %d", len(cold), len(batch))
				}
			}
			got = append(got, batch...)
			at = to
			pos, err := parsePosition(at)
			if err != nil {
				t.Fatal(err)
			}
			if cut := pos.At; cut != nil {
				if want := sumText(crc32.Checksum(content[:cut.Off], castagnoli)); cut.Sum != want {
					t.Fatalf("digest of the first %d bytes: %s, want %s", cut.Off, cut.Sum, want)
				}
			}
		}
		if d := cmp.Diff(wantLines(content), got); d != "" {
			t.Fatalf("records (-want +got):\n%.2000s", d)
		}
	})
}

// TestPieces cuts large files into splits of about the same size, the same ones warm and cold, plain and packed.
func TestPieces(t *testing.T) {
	content := orders(60_000) // 14 MB
	for _, c := range []struct {
		name, file string
	}{{"plain", string(content)}, {"gzip", string(packed(content))}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, JSONL)
			r.put("a", c.file)
			mid := r.latest(checkpoint.Position{}, 30_001)
			end := r.latest(mid, 0)
			for _, rng := range []source.Range{{To: mid}, {From: mid, To: end}} {
				warm, err := r.src.Splits(context.Background(), rng)
				if err != nil {
					t.Fatal(err)
				}
				want := r.read(rng.From, rng.To)
				r.open()
				cold, err := r.src.Splits(context.Background(), rng)
				if err != nil {
					t.Fatal(err)
				}
				same(t, "splits", cold, warm)
				if len(warm) < 4 || len(warm) > pieces {
					t.Errorf("%d splits", len(warm))
				}
				for _, s := range warm {
					if s.Size < minPiece/2 || s.Size > 3*minPiece {
						t.Errorf("a split of %d bytes", s.Size)
					}
				}
				if got := r.read(rng.From, rng.To); !slices.Equal(got, want) {
					t.Errorf("%d records cold, %d warm", len(got), len(want))
				}
				same(t, "first record", want[0][:6], map[bool]string{true: `0:{"id`, false: `30001:`}[rng.From.IsZero()])
			}
		})
	}
}

// TestCursor goes on in a packed file without decoding it anew.
func TestCursor(t *testing.T) {
	r := newRig(t, JSONL)
	r.put("a.gz", string(packed(orders(10_000))))
	at := r.latest(checkpoint.Position{}, 1000)
	for range 5 {
		if r.src.cursor == nil {
			t.Fatal("no cursor is kept")
		}
		before := r.src.cursor.stream
		next := r.latest(at, 1000)
		if r.src.cursor == nil || r.src.cursor.stream != before {
			t.Fatal("the file was opened again")
		}
		same(t, "records", len(r.read(at, next)), 1000)
		at = next
	}
}

func TestCSV(t *testing.T) {
	for name, c := range map[string]struct {
		opts    CSVOptions
		content string
		want    []string
	}{
		"header":             {CSVOptions{}, "a,b\n1,x\n2,y\n", []string{`0:{"a":"1","b":"x"}`, `1:{"a":"2","b":"y"}`}},
		"empty and null":     {CSVOptions{}, "a,b\n,\"\"\n", []string{`0:{"a":null,"b":""}`}},
		"quotes":             {CSVOptions{}, "a,b\n\"x,\"\"y\"\"\",5\" pipe\n", []string{`0:{"a":"x,\"y\"","b":"5\" pipe"}`}},
		"ends of line":       {CSVOptions{}, "a,b\r\n\"1\r\n2\",\"\n\n\"\r\n3,4", []string{`0:{"a":"1\r\n2","b":"\n\n"}`, `1:{"a":"3","b":"4"}`}},
		"BOM and blank rows": {CSVOptions{}, "\xef\xbb\xbf\"a\"\n\n1\n\r\n2\n", []string{`0:{"a":"1"}`, `1:{"a":"2"}`}},
		"ragged":             {CSVOptions{}, "a,b\n1\n1,2,3\n1,2\n", []string{"0!bad_row", "1!bad_row", `2:{"a":"1","b":"2"}`}},
		"after a quote":      {CSVOptions{}, "a\n\"x\"y\nz\n", []string{"0!bad_row", `1:{"a":"z"}`}},
		"never closed":       {CSVOptions{}, "a\nx\n\"y\nz\n", []string{`0:{"a":"x"}`, "1!bad_row"}},
		"no name":            {CSVOptions{}, ",b\n1,2\n", []string{`0:{"_c0":"1","b":"2"}`}},
		"own columns":        {CSVOptions{Columns: []string{"x", "y"}}, "a,b\n1,2\n", []string{`0:{"x":"1","y":"2"}`}},
		"no header":          {CSVOptions{NoHeader: true}, "1,2\n3\n", []string{`0:{"_c0":"1","_c1":"2"}`, `1:{"_c0":"3"}`}},
		"no header, columns": {CSVOptions{NoHeader: true, Columns: []string{"x"}}, "1\n2,\n", []string{`0:{"x":"1"}`, "1!bad_row"}},
		"tabs":               {CSVOptions{Comma: '\t'}, "a\tb\n1,1\t2\n", []string{`0:{"a":"1,1","b":"2"}`}},
		"controls":           {CSVOptions{}, "a\n\x00\x01\xff\\\n", []string{"0:{\"a\":\"\\u0000\\u0001\xff\\\\\"}"}},
		"header alone":       {CSVOptions{}, "a,b\n", nil},
		"quoted header":      {CSVOptions{}, "\"a\nb\",\"c\"\"\"\n1,2\n", []string{`0:{"a\nb":"1","c\"":"2"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, records := range []int64{0, 1, 2} {
				r := newRig(t, CSV)
				r.cfg.CSV = c.opts
				r.open()
				r.put("a.csv", c.content)
				batches, _ := r.drain(records)
				same(t, fmt.Sprint("records in batches of ", records), slices.Concat(batches...), c.want)
			}
		})
	}
}

// TestCSVHeaders: a header that cannot be one is refused before its file is planned, so that mending it is enough.
func TestCSVHeaders(t *testing.T) {
	for name, content := range map[string]string{
		"twice": "a,b,a\n1,2,3\n", "no name twice": "a,a,\n1,2,3\n", "as a place": ",_c0\n1,2\n", "not closed": "\"a\n1\n", "text after": "\"a\"b\n1\n",
		"twice behind a BOM": "\xef\xbb\xbfa,a\n1,2\n", "long": strings.Repeat("x", 101) + "\n1\n", "alone": "a,a",
	} {
		for _, frozen := range []bool{false, true} {
			for _, pack := range []func([]byte) []byte{bytes.Clone, packed} {
				r := newRig(t, CSV)
				r.cfg.MaxLine = 100
				r.open()
				r.put("a.csv", string(pack([]byte("ok\n0\n"))))
				r.put("b.csv", string(pack([]byte(content))))
				freeze := func() {
					if frozen {
						if err := r.src.Freeze(context.Background()); err != nil {
							t.Fatal(err)
						}
					}
				}
				freeze()
				first := r.latest(checkpoint.Position{}, 0)
				same(t, name+": the file before it", r.read(checkpoint.Position{}, first), []string{`0:{"ok":"0"}`})
				_, err := r.src.Latest(context.Background(), first, source.Limit{})
				same(t, name, code(t, err), CodeHeader)
				if !strings.Contains(err.Error(), "b.csv") {
					t.Errorf("the error does not name the file: %v", err)
				}
				r.put("b.csv", string(pack([]byte("mended\n1\n"))))
				if frozen {
					r.open()
					freeze()
				}
				next := r.latest(first, 0)
				same(t, name+", mended", r.read(first, next), []string{`0:{"mended":"1"}`})
			}
		}
	}
}

// TestCSVHeaderOfAPlannedFile: a plan that names such a file all the same reads on once the columns are listed.
func TestCSVHeaderOfAPlannedFile(t *testing.T) {
	r := newRig(t, CSV)
	r.cfg.CSV.Columns = []string{"a", "b"}
	r.open()
	r.put("a.csv", "x,x\n1,2\n")
	to := r.latest(checkpoint.Position{}, 0)
	r.cfg.CSV.Columns = nil
	r.open()
	splits, err := r.src.Splits(context.Background(), source.Range{To: to})
	if err != nil {
		t.Fatal(err)
	}
	err = r.src.Read(context.Background(), splits[0], &got{})
	same(t, "code", code(t, err), CodeHeader)
	if h := hint(t, err); strings.Contains(h, "Mend") || !strings.Contains(h, "csv options") {
		t.Errorf("the way out is %q", h)
	}
	r.cfg.CSV.Columns = []string{"a", "b"}
	r.open()
	same(t, "records", r.read(checkpoint.Position{}, to), []string{`0:{"a":"1","b":"2"}`})
}

// FuzzCSV: any bytes are cut the same in any batches, and what is text comes out as JSON.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "\"a\"\n\"\n\"\"\"\n\"x\n", "\xef\xbb\xbfa\r\n\r\n,", "a\n\"\"\"\",\n"} {
		f.Add([]byte(seed), int64(1))
	}
	f.Fuzz(func(t *testing.T, content []byte, records int64) {
		if len(content) == 0 {
			return
		}
		cfg := Config{Name: "in", Path: "/x", Format: CSV, MaxLine: 64, CSV: CSVOptions{NoHeader: true}}
		if err := cfg.complete(); err != nil {
			t.Fatal(err)
		}
		split := func(limit int64) []string {
			var out []string
			at := place{}
			for {
				in := memory(content, at.Off)
				got, err := scanCSV(in, at, &budget{records: max(1, limit), bytes: 1 << 40}, &cfg)
				if err != nil {
					t.Fatal(err)
				}
				rows := newCSVRows(memory(content[:got.end.Off], at.Off).next, at.Off, &cfg)
				for at.Line < got.end.Line {
					row, long, err := rows.row()
					if err != nil {
						t.Fatalf("row %d of %+v: %v", at.Line, got.end, err)
					}
					json1, reason := (&csvHead{comma: ',', bound: 1 << 20}).object(nil, row)
					if reason == "" && !long && json.Valid([]byte(strings.ToValidUTF8(string(json1), "?"))) == false {
						t.Fatalf("%q becomes %q", row, json1)
					}
					out = append(out, fmt.Sprintf("%d:%q%v", at.Line, row[:min(len(row), 64)], long))
					at.Line++
				}
				if at = got.end; got.eof {
					return out
				}
			}
		}
		all := split(1 << 40)
		if some := split(1 + records%5); !slices.Equal(all, some) {
			t.Fatalf("in one batch %q, in several %q", all, some)
		}
	})
}

// memory is a stream of bytes from an offset on.
func memory(content []byte, off int64) *blocks {
	return &blocks{
		ctx: context.Background(), buf: make([]byte, blockSize),
		st: &stream{dec: bytes.NewReader(content[off:]), off: off, end: func() {}},
	}
}
