// Package delta publishes a sink's rows in a Delta Lake table, exactly once, beside whoever else writes to it.
//
// One target is one sink of one table. A batch is one entry of the table's log, which holds the files that came and went and
//
//	txn {appId: "<query id>/<sink>", version: batch}            what is published
//	txn {appId: "<query id>/<sink>/digest.0" and "/digest.1"}   the two halves of its batch digest, as signed numbers
//	commitInfo.tags wasmill.*                                    the same for people, with the attempt
//
// The digest stands in txn actions because those outlive the entries: a log may be cleaned up behind a checkpoint at any
// time, and with commitInfo alone nobody could prove any more that what is published is what was decided.
//
// Data files are written at their final places, where nobody sees them before an entry names them:
//
//	[col=value/..]part-<number>-<8 of query>-<batch>-<16 of sha256>.c000.<codec>.parquet
//
// The hash is over query, sink, batch, digest, attempt and number, so two attempts never meet in a name, and what a process
// that was replaced still does to files of its own harms nobody. No lock is taken: an entry is created if absent, and who
// creates one has seen all before it, so a batch that somebody else has published is always seen first.
//
// Mode upsert writes files that hold a changed or deleted row anew (copy on write). Which they are is known when the batch
// is staged; if they have changed when it is published, or somebody added rows that it may have had to change, the batch is
// lost (sink.ErrLost) and runs again.
//
// The package knows no other sink and decides nothing about batches. The log's format is the business of host/delta.
package delta
