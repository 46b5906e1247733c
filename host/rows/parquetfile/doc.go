// Package parquetfile writes rows.Table columns as Apache Parquet files that every common reader accepts.
//
// It writes the oldest forms that do the job: format version 1 data pages, PLAIN or dictionary values, optional flat
// columns, decimals of up to 18 digits as INT32 or INT64, timestamps as microseconds adjusted to UTC, statistics per
// column chunk. A column is encoded page by page straight from the table into the output, so memory stays at a few pages
// whatever the number of rows. The same rows and options give the same bytes for one version of the codecs.
//
// The formats are Parquet's (parquet-format: Encodings.md, LogicalTypes.md, parquet.thrift) and Thrift's compact protocol.
// The package opens no file and knows no sink; reading is not its business.
package parquetfile
