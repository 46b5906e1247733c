package files

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/wasmill/wasmill/checkpoint/durable"
	"github.com/wasmill/wasmill/host/source"
	"github.com/wasmill/wasmill/host/source/sourcetest"
)

func zstdPacked(b []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil
	}
	return w.EncodeAll(b, nil)
}

// rows returns n lines, CSV rows or Parquet rows from number from on.
func rows(format Format, from, n int) []byte {
	var b bytes.Buffer
	switch format {
	case CSV:
		b.WriteString("id,text\r\n")
		for i := from; i < from+n; i++ {
			fmt.Fprintf(&b, "%d,\"row\n\"\"%d\"\"\"\r\n", i, i)
		}
	case Parquet:
		type row struct {
			ID   int64
			Text *string
		}
		w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(20))
		for i := from; i < from+n; i++ {
			text := strings.Repeat("x", i%40)
			r := row{ID: int64(i), Text: &text}
			if i%5 == 0 {
				r.Text = nil
			}
			if _, err := w.Write([]row{r}); err != nil {
				return nil
			}
		}
		if err := w.Close(); err != nil {
			return nil
		}
	default:
		for i := from; i < from+n; i++ {
			fmt.Fprintf(&b, "{\"id\":%d}\n", i)
		}
	}
	return b.Bytes()
}

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name   string
		format Format
		ending string
		pack   func([]byte) []byte
	}{
		{"lines", Lines, ".txt", bytes.Clone},
		{"jsonl", JSONL, ".jsonl", bytes.Clone},
		{"jsonl gzip", JSONL, ".jsonl.gz", packed},
		{"jsonl zstd", JSONL, ".jsonl.zst", zstdPacked},
		{"csv", CSV, ".csv", bytes.Clone},
		{"csv gzip", CSV, ".csv.gz", packed},
		{"parquet", Parquet, ".parquet", bytes.Clone},
	} {
		t.Run(c.name, func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) sourcetest.Input {
				r := &rig{t: t, now: epoch, in: t.TempDir()}
				state := filepath.Join(t.TempDir(), "sources", "0")
				files := 0
				more := func(*testing.T) {
					r.put(fmt.Sprintf("in-%03d%s", files, c.ending), string(c.pack(rows(c.format, files*30, 30))))
					files++
				}
				for range 5 {
					more(t)
				}
				open := func(t *testing.T) source.Source {
					src, err := New(Config{
						Name: "in", Path: r.in, Format: c.format, Attach: []string{"path"}, State: state,
						Files: durable.OS(), Clock: func() time.Time { return epoch },
					})
					if err != nil {
						t.Fatal(err)
					}
					return src
				}
				return sourcetest.Input{Open: open, More: more}
			})
		})
	}
}
