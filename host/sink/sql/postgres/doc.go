// Package postgres is the driver of PostgreSQL for host/sink/sql.
//
// Rows go from their columns into the server's binary forms without a value in between: added by COPY, or by INSERT from
// unnest(arrays) where COPY is not possible; put in place of others by INSERT .. ON CONFLICT DO UPDATE from unnest(arrays),
// deleted by DELETE .. USING unnest(arrays). That takes no temporary table, and of a role only INSERT, and for an upsert
// SELECT, UPDATE and DELETE, on the table. A statement of a user is prepared and sent for many rows at a time.
//
// Timestamps, of a zone or none, are microseconds since 2000-01-01, dates days since then, numerics digits to the base of
// 10,000; see the server's functions timestamptz_recv, timestamp_recv, date_recv, numeric_recv and array_recv.
//
// The package uses the protocol layer of pgx alone. It knows nothing of batches and owners.
package postgres
