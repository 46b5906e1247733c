package parquetfile

import (
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// UnsupportedError says that a file is whole and holds what this package does not read.
type UnsupportedError struct{ what, wayOut string }

func (e *UnsupportedError) Error() string { return e.what }

// Hint is the way out.
func (e *UnsupportedError) Hint() string { return e.wayOut }

// CheckCodecs refuses a file with a compression that the library has no reader for, by its footer: the error, an
// *UnsupportedError, would otherwise come with the first page.
func CheckCodecs(file *parquet.File) error {
	groups := file.Metadata().RowGroups
	for g := range groups {
		for c := range groups[g].Columns {
			switch codec := groups[g].Columns[c].MetaData.Codec; codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd, format.Lz4Raw:
			case format.Lz4:
				return unreadCodec("LZ4 in Hadoop's frames, which Parquet has given up for LZ4_RAW")
			default:
				return unreadCodec(codec.String())
			}
		}
	}
	return nil
}

func unreadCodec(name string) error {
	return &UnsupportedError{
		what:   "it is compressed with " + name + ", which is not read",
		wayOut: "let the engine that wrote the file write it anew with another compression, as `spark.sql.parquet.compression.codec`: zstd, snappy, gzip, lz4_raw",
	}
}
