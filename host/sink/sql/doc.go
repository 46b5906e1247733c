// Package sql publishes the output of its sinks to the tables of one SQL database.
//
// Exactly once: the rows of a batch, of all sinks of one connection, and the batch's number in the table wasmill_epoch go
// into one transaction, which is committed after the decision. The epoch row belongs to a query and a target:
//
//	query_id, target   the primary key: the query's UUID and the connection's name
//	version            of the row's form; a newer one is refused
//	owner              counts who has opened the target; a transaction of an earlier owner finds another number and fails
//	batch, digest      the newest batch that is published, -1 before the first
//	attempt, job, updated_at   for people
//
// Rows whose query_id ends in /table name tables that a job may make and has published in, as target/table.
//
// Staging begins the transaction with UPDATE .. WHERE owner = mine AND batch = the one before, which locks the row, writes
// the rows and has all deferred constraints checked; publishing is COMMIT alone. Whoever opens the target raises owner,
// which waits for the lock of an earlier owner's transaction, or ends its connection where the database allows that; after
// it the row is the truth about what is published. Nothing is concluded from an error of a commit: the row is locked again on
// a new connection and read.
//
// What differs between databases is behind Database and Conn; the drivers are in the folders postgres and sqlite, pass one
// suite, and know nothing of batches. The package decides nothing: it neither skips nor repeats a batch by itself.
package sql
