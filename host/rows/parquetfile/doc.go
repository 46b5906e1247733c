// Package parquetfile writes rows.Table columns as Apache Parquet files that every common reader accepts, tells the statistics
// of what it wrote, and reads files of any writer back into tables. Values go through github.com/parquet-go/parquet-go.
//
// Writing chooses the oldest forms that do the job: version 1 data pages, PLAIN or dictionary values, columns in the order of
// the table, optional unless null does not fit them, lists of three levels, maps as key_value groups, decimals of up to 18
// digits as INT32 or INT64, timestamps as microseconds adjusted to UTC. Where the library's bounds would be wrong or without
// limit, types of this package correct them. The library keeps the compressed pages of a row group in memory until the row
// group ends; so does the writer. The same rows and options give the same bytes for one version of the libraries.
//
// Reading takes the old forms too: INT96 timestamps, lists of two levels, decimals in any physical type. What a file lacks is
// null; what does not fit its column exactly is an error, as is a broken file. Dates and times that Spark counted by its old
// calendar are brought into that of everyone else, or refused where the footer does not say enough.
//
// The package opens no file, and knows no sink and no source.
package parquetfile
