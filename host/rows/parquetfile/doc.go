// Package parquetfile writes rows.Table columns as Apache Parquet files that every common reader accepts. It hands the values
// to github.com/parquet-go/parquet-go and chooses the oldest forms that do the job: version 1 data pages, PLAIN or dictionary
// values, optional flat columns in the order of the table, decimals of up to 18 digits as INT32 or INT64, timestamps as
// microseconds adjusted to UTC. Where the library's bounds would be wrong or without limit, types of this package correct
// them.
//
// The library keeps the compressed pages of a row group in memory until the row group ends; so does the writer. The same
// rows and options give the same bytes for one version of the libraries.
//
// The package opens no file and knows no sink; reading is not its business.
package parquetfile
