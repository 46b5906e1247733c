// Package sqlite is the driver of SQLite for host/sink/sql.
//
// A connection is used through its driver, without the pool of database/sql. A transaction begins with BEGIN IMMEDIATE, so it
// holds the one lock of writers from staging to publishing; who waits for it waits at most for the limit of locks. Foreign keys
// are enforced, commits are durable (synchronous = EXTRA), and changed pages stay in memory until the commit, so that readers
// of a database without WAL are not shut out before.
//
// SQLite converts by the affinity of a column, which its declared type says. Decimals are texts with all their digits, or
// numbers where the column is numeric and 15 digits are enough; dates and timestamps are texts in ISO 8601 with microseconds
// and, but for those without a zone, Z, or, where the column's type has INT in it, days and microseconds since 1970; booleans
// are 0 and 1; nested values are JSON texts.
//
// The package knows nothing of batches and owners.
package sqlite
