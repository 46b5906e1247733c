package parquetfile_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"

	"github.com/wasmill/wasmill/host/rows/parquetfile"
	"github.com/wasmill/wasmill/host/rows/rowstest"
)

// named is a codec under another one's name.
type named struct {
	compress.Codec
	name format.CompressionCodec
}

func (c named) CompressionCodec() format.CompressionCodec { return c.name }

// TestUnreadCodecs: a file with a compression that the library has no reader for is refused by its footer, and not as broken.
func TestUnreadCodecs(t *testing.T) {
	for name, codec := range map[string]format.CompressionCodec{"old LZ4 as in Hadoop: LZ4": format.Lz4, "LZO": format.LZO, "a later one: CompressionCodec(?)": 99, "": format.Lz4Raw} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := parquet.NewGenericWriter[any](&out, parquet.NewSchema("other", parquet.Group{"v": parquet.Leaf(parquet.Int64Type)}), parquet.Compression(named{&parquet.Lz4Raw, codec}))
			_, err := w.WriteRows([]parquet.Row{{parquet.Int64Value(7).Level(0, 0, 0)}})
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			_, openErr := parquetfile.OpenReader(bytes.NewReader(out.Bytes()), int64(out.Len()), rowstest.SchemaOf(t, "v", "int64"), parquetfile.ReadOptions{})
			_, footerErr := parquetfile.ReadFooter(bytes.NewReader(out.Bytes()), int64(out.Len()))
			_, spoken, _ := strings.Cut(name, ": ")
			for _, err := range []error{openErr, footerErr} {
				if name == "" {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				no, ok := errors.AsType[*parquetfile.UnsupportedError](err)
				if !ok || !strings.Contains(no.Error(), spoken) || !strings.Contains(no.Hint(), "lz4_raw") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}
